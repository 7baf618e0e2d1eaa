"""For pytest: runs the tests of plugins as they are written, with no settings of the author's.

`mooring plugin test` brings it; elsewhere `pytest -p mooring.testing.pytest_plugin` does.

- A coroutine test runs on an event loop of its own. One that carries the mark of another library (asyncio, anyio, trio)
  is left to that library.
- A test file that imports its neighbours as the plugin files do (`from .rules import …`) is imported as a part of the
  same package, also where the folder has no `__init__.py`.

Import this module only where pytest is installed; the rest of `mooring.testing` does without.
"""

from __future__ import annotations

import ast
import asyncio
import importlib
import inspect
import traceback
from pathlib import Path
from typing import Any

import pytest

from mooring.framework.plugin_files import package_for

OTHERS = ("asyncio", "anyio", "trio")


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    test = pyfuncitem.obj
    if not inspect.iscoroutinefunction(test) or any(map(pyfuncitem.get_closest_marker, OTHERS)):
        return None
    fixtures = {
        name: pyfuncitem.funcargs[name] for name in inspect.signature(test).parameters if name in pyfuncitem.funcargs
    }
    asyncio.run(test(**fixtures))
    return True


class ModuleOfPackage(pytest.Module):
    """A test file that belongs to the package of a plugin folder."""

    def _getobj(self) -> Any:
        try:
            return importlib.import_module(f"{package_for(self.path.parent)}.{self.path.stem}")
        except Exception:
            raise self.CollectError(f"{self.path} cannot be imported.\n{traceback.format_exc()}") from None


def pytest_pycollect_makemodule(module_path: Path, parent: pytest.Collector) -> pytest.Module | None:
    if _is_package(module_path.parent) or not _has_relative_import(module_path):
        return None
    module: pytest.Module = ModuleOfPackage.from_parent(parent, path=module_path)
    return module


def _is_package(folder: Path) -> bool:
    """Whether pytest takes it for one by itself."""
    return (folder / "__init__.py").is_file() and folder.name.isidentifier()


def _has_relative_import(file: Path) -> bool:
    try:
        tree = ast.parse(file.read_bytes())
    except (SyntaxError, ValueError):
        return False  # pytest shows where
    return any(isinstance(node, ast.ImportFrom) and node.level for node in ast.walk(tree))
