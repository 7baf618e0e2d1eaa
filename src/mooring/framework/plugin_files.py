"""Plugin files: which files a path names, and how they are run.

The folder of a plugin file is a package: files in it import each other by `from .helpers import …`. Every folder is a
package of its own, so two folders may hold files of one name. A file that has changed is run again, and with it every
file that imports it; the others stay the modules they are. A file that fails changes nothing.
"""

from __future__ import annotations

import ast
import hashlib
import importlib
import os
import re
import sys
import threading
import traceback
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache, partial
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any, NamedTuple

from mooring.base.errors import OperatorMistake, Problem
from mooring.base.foreign_code import described
from mooring.base.log import Log
from mooring.framework.api_version import another_needed_by

SLOW_IMPORT_SECONDS = 5.0
PREFIX = "mooring_plugin_"
"""Of the packages' names."""
_DIGEST = "__mooring_digest__"
"""In a module: what its file held when it was run."""
_IMPORTS = "__mooring_imports__"
"""In a module: the names of the modules of its package that it imports, or `ANY`."""
ANY = "*"
_BY_NAME = re.compile(rb"\b(import_module|__import__)\b")
"""Imports that the text does not show."""
_INIT = "__init__.py"

_log = Log("plugins")


def is_module_path(path: str) -> bool:
    """Whether it names a class in a module, and no file or folder."""
    return ":" in path and not Path(path).exists()


def plugin_files(path: str) -> list[Path]:
    """The plugin file, or those of the folder, in order."""
    where = Path(path)
    if where.is_dir():
        return sorted(
            file for file in where.glob("*.py") if not file.name.startswith(("_", ".")) and not is_test_file(file.name)
        )
    if not where.is_file():
        raise OperatorMistake(f"{path}: no such plugin file or folder (a module is named as module:Class).")
    return [where]


def is_test_file(name: str) -> bool:
    return name.startswith("test_") or name.endswith("_test.py") or name == "conftest.py"


def with_helpers(path: str) -> list[Path]:
    """The plugin files of a path, and the files of their package that they import. Some of these may not exist."""
    found: dict[Path, None] = {}
    for plugin_file in plugin_files(path):
        folder = plugin_file.parent
        waiting = [plugin_file, *([folder / _INIT] if (folder / _INIT).is_file() else [])]
        while waiting:
            file = waiting.pop(0)
            if file not in found:
                found[file] = None
                waiting += _imported_files(file, folder)
    return list(found)


def _imported_files(file: Path, folder: Path) -> Iterator[Path]:
    try:
        source = file.read_bytes()
    except OSError:
        return
    if _BY_NAME.search(source):
        yield from (each for each in sorted(folder.rglob("*.py")) if not is_test_file(each.name))
    inside = file.relative_to(folder).parts
    for parts, is_certain in _targets(source, inside[:-1]):
        stem = folder.joinpath(*parts)
        candidates = [stem.with_name(f"{stem.name}.py"), stem / _INIT]
        there = [each for each in candidates if each.is_file()]
        yield from there or (candidates[:1] if is_certain and not stem.is_dir() else [])


class _RelativeImport(NamedTuple):
    level: int
    module: str
    names: tuple[str, ...]


@lru_cache(maxsize=256)
def _relative_imports(source: bytes) -> tuple[_RelativeImport, ...]:
    """Every `from .x import y` of a file, also those inside functions."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return ()
    return tuple(
        _RelativeImport(node.level, node.module or "", tuple(alias.name for alias in node.names))
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.level
    )


def _targets(source: bytes, package: Sequence[str]) -> Iterator[tuple[tuple[str, ...], bool]]:
    """What a file imports, as names below the folder, and whether that must be a module (or may be a name in one)."""
    for found in _relative_imports(source):
        if found.level - 1 > len(package):
            continue  # beyond the folder: an error when the file is run
        base = tuple(package[: len(package) - (found.level - 1)])
        module = tuple(found.module.split(".")) if found.module else ()
        for length in range(1, len(module) + 1):
            yield base + module[:length], True
        for name in found.names:
            if name != "*":
                yield (*base, *module, name), not module


def load_files(path: str) -> list[ModuleType]:
    """Import the plugin files of a path. Files that have not changed since are the modules they were."""
    files = plugin_files(path)
    if not files:
        return []
    package = package_for(files[0].parent)
    before = _modules_of(package)
    _drop_outdated(package)
    try:
        return [importing(str(file), partial(_load, file, package)) for file in files]
    except BaseException:
        _replace(_modules_of(package), before)
        raise


def package_for(folder: Path) -> str:
    """The name of the package whose modules are the files of this folder."""
    where = os.path.abspath(folder)
    readable = re.sub(r"\W", "_", os.path.basename(where))
    name = f"{PREFIX}{readable}_{hashlib.sha256(where.encode()).hexdigest()[:8]}"
    _FINDER.folders[name] = where
    if _FINDER not in sys.meta_path:
        # Before Python's own, which would run cached bytecode.
        sys.meta_path.insert(0, _FINDER)
    return name


def _load(file: Path, package: str) -> ModuleType:
    if file.suffix != ".py":
        raise ImportError("not a Python file")
    name = f"{package}.{file.stem.replace('.', '_')}"
    _FINDER.plugin_files[name] = os.path.abspath(file)
    with _reported_if_slow(file, package):
        return importlib.import_module(name)


class _Finder(MetaPathFinder):
    """Finds the modules of plugin folders."""

    def __init__(self) -> None:
        self.folders: dict[str, str] = {}
        """Package → folder."""
        self.plugin_files: dict[str, str] = {}
        """Module → file, of the files that were named, not imported by others."""

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> ModuleSpec | None:
        package, *parts = fullname.split(".")
        if (folder := self.folders.get(package)) is None:
            return None
        where = os.path.join(folder, *parts)
        file = self.plugin_files.get(fullname, f"{where}.py")
        if os.path.isfile(os.path.join(where, _INIT)):
            return _spec(fullname, os.path.join(where, _INIT), where)
        if parts and os.path.isfile(file):
            # Test files are for pytest, which rewrites their assertions.
            return None if is_test_file(os.path.basename(file)) else _spec(fullname, file)
        return _spec(fullname, None, where) if os.path.isdir(where) else None


_FINDER = _Finder()


def _spec(name: str, file: str | None, folder: str | None = None) -> ModuleSpec:
    loader = None if file is None else _SourceLoader(name, file)
    spec = ModuleSpec(name, loader, origin=file, is_package=folder is not None)
    spec.has_location = file is not None
    if folder is not None:
        spec.submodule_search_locations = [folder]
    return spec


class _SourceLoader(SourceFileLoader):
    """Runs what the file holds now. Cached bytecode knows a file by its size and the second of its last change."""

    def exec_module(self, module: ModuleType) -> None:
        source = self.get_data(self.path)
        code = self.source_to_code(source, self.path)
        module.__dict__[_DIGEST] = hashlib.sha256(source).digest()
        module.__dict__[_IMPORTS] = _imported_modules(source, module)
        exec(code, module.__dict__)


def _imported_modules(source: bytes, module: ModuleType) -> frozenset[str]:
    """The modules of its package that it imports, with the packages on the way. Some may be names in a module."""
    is_package = hasattr(module, "__path__")
    root, *inside = module.__name__.split(".")
    package = inside if is_package else inside[:-1]
    own = [".".join((root, *inside[:length])) for length in range(len(inside))]
    unseen = [ANY] if _BY_NAME.search(source) else []
    return frozenset([*own, *unseen, *(".".join((root, *parts)) for parts, _ in _targets(source, package))])


# What has been run, and what must be run again


def plugin_modules() -> dict[str, ModuleType]:
    """The plugin files that have been run and their helpers, by the names of their modules."""
    return {name: module for name, module in list(sys.modules.items()) if name.startswith(PREFIX)}


def code_digest() -> str:
    """Of all plugin files and helpers that have been run, as they were then."""
    digest = hashlib.sha256()
    for name, module in sorted(plugin_modules().items()):
        digest.update(name.encode() + b"\0" + (module.__dict__.get(_DIGEST) or b""))
    return digest.hexdigest()


def bring_back(modules: Mapping[str, ModuleType]) -> None:
    """Restore these modules of the plugin files: what was imported since failed."""
    _replace(plugin_modules(), modules)


def _modules_of(package: str) -> dict[str, ModuleType]:
    return {name: each for name, each in plugin_modules().items() if name.partition(".")[0] == package}


def _drop_outdated(package: str) -> None:
    """Let the next import run what has changed, and whatever imports it: old and new code are never mixed."""
    modules = _modules_of(package)
    changed = {name for name, module in modules.items() if _held_now(module) != module.__dict__.get(_DIGEST)}
    if not changed:
        return
    imports: dict[str, Collection[str]] = {
        name: module.__dict__.get(_IMPORTS, frozenset()) for name, module in modules.items()
    }
    outdated = {*changed, ANY}
    while more := {name for name in modules if name not in outdated and not outdated.isdisjoint(imports[name])}:
        outdated |= more
    _replace({name: module for name, module in modules.items() if name in outdated}, {})


def _held_now(module: ModuleType) -> bytes | None:
    """The digest of its file as it is now; None: there is no such file."""
    file = module.__file__ or os.path.join(next(iter(module.__path__)), _INIT)
    try:
        return hashlib.sha256(Path(file).read_bytes()).digest()
    except OSError:
        return None


def _replace(gone: Mapping[str, ModuleType], there: Mapping[str, ModuleType]) -> None:
    """Take modules out of the import system and put others in; `from . import helpers` reads the package itself."""
    for name in sorted(gone, reverse=True):  # below a package first
        module = sys.modules.pop(name, None)
        parent, _, tail = name.rpartition(".")
        if parent in sys.modules and vars(sys.modules[parent]).get(tail) is module:
            delattr(sys.modules[parent], tail)
    for name in sorted(there):
        sys.modules[name] = there[name]
        parent, _, tail = name.rpartition(".")
        if parent in sys.modules:
            setattr(sys.modules[parent], tail, there[name])


# When a file does not import


def importing(source: str, load: Callable[[], Any]) -> Any:
    """What `load` returns; whatever it raises becomes an `OperatorMistake` with file and line."""
    try:
        return load()
    except KeyboardInterrupt:
        raise
    # Also what a script does that was not meant to be imported: its SystemExit would end the scheduler.
    except BaseException as error:
        if (mistake := another_needed_by(source)) is not None:
            raise mistake from error
        problem = Problem(_place(error, source), described(error) + _hint(error, source))
        raise OperatorMistake(f"{source} cannot be imported.", [problem]) from error


def _place(error: BaseException, source: str) -> str:
    """File and line, by the path that the operator gave; of a helper, if that is where it happened."""
    folder = os.path.dirname(source)
    if isinstance(error, SyntaxError) and error.filename and _is_below(error.filename, folder):
        return f"{_shown(error.filename, folder)}:{error.lineno}" if error.lineno else source
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    lines = [line for _, line in traceback.walk_tb(error.__traceback__)]
    at = [position for position, frame in enumerate(frames) if _is_of_plugin(frame)]
    return f"{_shown(frames[at[-1]].f_code.co_filename, folder)}:{lines[at[-1]]}" if at else source


def _hint(error: BaseException, source: str) -> str:
    if not isinstance(error, ModuleNotFoundError) or not error.name or error.name.startswith(PREFIX):
        return ""
    name = error.name.partition(".")[0]
    beside = Path(source).parent / name
    if not (Path(source).is_file() and (beside.with_name(f"{name}.py").is_file() or beside.is_dir())):
        return ""
    return f"; a file beside it is imported as `from .{name} import …`, because the folder is a package"


def is_of_package(frame: FrameType, module: str) -> bool:
    """Whether code of the plugin folder runs there to which this module belongs: the plugin's own, or a helper's."""
    package = module.partition(".")[0]
    return package.startswith(PREFIX) and str(frame.f_globals.get("__name__", "")).partition(".")[0] == package


def _is_of_plugin(frame: FrameType) -> bool:
    return str(frame.f_globals.get("__name__", "")).startswith(PREFIX)


def _is_below(filename: str, folder: str) -> bool:
    return os.path.isabs(filename) and Path(filename).is_relative_to(os.path.abspath(folder))


def _shown(filename: str, folder: str) -> str:
    """Python names a module's file by its absolute path, whatever path it was loaded by."""
    return os.path.join(folder, os.path.relpath(filename, os.path.abspath(folder)))


@contextmanager
def _reported_if_slow(file: Path, package: str) -> Iterator[None]:
    """Top-level code that does not return would hold up the command without a message."""
    thread = threading.get_ident()

    def report() -> None:
        frame = sys._current_frames().get(thread)
        while frame is not None and not is_of_package(frame, package):
            frame = frame.f_back
        at = {} if frame is None else {"at": f"{_shown(frame.f_code.co_filename, str(file.parent))}:{frame.f_lineno}"}
        _log.warning(
            "A plugin file is still being imported: its top-level code has not returned. Code that only a script needs"
            ' belongs below `if __name__ == "__main__":`',
            file=str(file),
            seconds=SLOW_IMPORT_SECONDS,
            **at,
        )

    timer = threading.Timer(SLOW_IMPORT_SECONDS, report)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
