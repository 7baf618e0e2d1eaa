"""Finding plugins, and building them: which classes there are under which name, and what their constructors are given.

Plugins come from the catalogue of this package, from entry points (group `mooring.plugins`) of installed packages,
from `module:Class`, or from a file or folder. Never through the API.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import inspect
import typing
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from types import ModuleType
from typing import Any

from mooring.base.errors import OperatorMistake, Problem
from mooring.framework.api_version import check_api_version
from mooring.framework.args import Args
from mooring.framework.contract import check_contract, needs, no_service
from mooring.framework.misspelt import misspelt_points, without_points
from mooring.framework.plugin import Plugin
from mooring.framework.plugin_files import importing, is_module_path, load_files
from mooring.framework.points import Point, points_of
from mooring.framework.services import Objects, Published
from mooring.objects.meta import KubeObject

ENTRY_POINTS = "mooring.plugins"


@dataclass(frozen=True)
class PluginEntry:
    """A plugin that can be configured by name."""

    name: str
    cls: type[Plugin]
    source: str
    """Where it was found: `default`, `example`, `community`, a package, a file."""
    paths: tuple[str, ...] = ()
    """What the command line names it by (`--plugins`), if it is not installed."""

    @cached_property
    def points(self) -> tuple[Point, ...]:
        return points_of(self.cls)

    @cached_property
    def args(self) -> type[Args] | None:
        return args_type(self.cls)

    @cached_property
    def object_types(self) -> tuple[type[KubeObject], ...]:
        """The kinds it watches."""
        return tuple(
            typing.get_args(wanted)[0] for wanted in needs(self.cls).values() if typing.get_origin(wanted) is Objects
        )

    @property
    def publishes(self) -> bool:
        """Whether it reads data of another system, which a background task publishes."""
        return any(typing.get_origin(wanted) is Published for wanted in needs(self.cls).values())


class Registry:
    """Every known plugin by name."""

    def __init__(self) -> None:
        self._entries: dict[str, PluginEntry] = {}

    def __iter__(self) -> Iterator[PluginEntry]:
        return iter(self._entries.values())

    def __contains__(self, name: str) -> bool:
        return name in self._entries

    def get(self, name: str) -> PluginEntry | None:
        return self._entries.get(name)

    def closest(self, name: str) -> str | None:
        """The known name that was probably meant."""
        return next(iter(get_close_matches(name, self._entries, n=1)), None)

    def add(self, cls: type[Plugin], source: str, *, paths: tuple[str, ...] = ()) -> None:
        """Make a plugin known. The same name from two places is refused, whichever was first."""
        known = self._entries.get(cls.name)
        if known is not None and known.cls is not cls:
            raise OperatorMistake(
                f'two plugins are called "{cls.name}".',
                [Problem(source, f"also in {known.source}; give one of them another `name`")],
            )
        check_api_version(cls, source)
        check_contract(cls, source)
        self._entries[cls.name] = PluginEntry(cls.name, cls, source, paths)

    def add_entry_points(self) -> None:
        """What installed packages offer."""
        for point in importlib.metadata.entry_points(group=ENTRY_POINTS):
            package = point.dist.name if point.dist else point.module
            with_source = f"package {package}"
            found = importing(with_source, point.load)
            for cls in _plugins_of([found], with_source) if isinstance(found, ModuleType) else [found]:
                self.add(cls, with_source)

    def add_path(self, path: str) -> list[PluginEntry]:
        """What a file, a folder of files, or `module:Class` on the command line names. Returns what was added."""
        if is_module_path(path):
            module_name, _, class_name = path.partition(":")
            found = getattr(importing(path, lambda: importlib.import_module(module_name)), class_name, None)
            if not (inspect.isclass(found) and issubclass(found, Plugin)):
                raise OperatorMistake(f"{path} names no plugin: {module_name} has no Plugin class {class_name}.")
            if not points_of(found):
                raise OperatorMistake(f"{path} is no plugin: it has no extension point.", [without_points(found)])
            classes: list[type[Plugin]] = [found]
        else:
            modules = load_files(path)
            classes = _plugins_of(modules, path)
            if not classes:
                raise OperatorMistake(
                    f"{path} holds no plugin: a plugin is a class that inherits from mooring.framework.Plugin and has "
                    "the method of an extension point, such as filter or score.",
                    [without_points(cls) for module in modules for cls in _subclasses_in(module)],
                )
        for cls in classes:
            self.add(cls, path, paths=(path,))
        return [self._entries[cls.name] for cls in classes]


def plugins_in(module: ModuleType) -> list[type[Plugin]]:
    """The plugin classes that a module defines (not those it imports)."""
    return [cls for cls in _subclasses_in(module) if points_of(cls)]


def _subclasses_in(module: ModuleType) -> list[type[Plugin]]:
    """Also those without an extension point: perhaps a base of others, perhaps misspelt."""
    return [
        found
        for found in vars(module).values()
        if inspect.isclass(found) and issubclass(found, Plugin) and found.__module__ == module.__name__
    ]


def _plugins_of(modules: Iterable[ModuleType], source: str) -> list[type[Plugin]]:
    """The plugins of these modules. A class whose only points are misspelt is a mistake."""
    classes = [cls for module in modules for cls in _subclasses_in(module)]
    others = [cls for cls in classes if not points_of(cls)]
    if problems := [problem for cls in others for problem in misspelt_points(cls)]:
        raise OperatorMistake(f"{source} holds a class without an extension point.", problems)
    return [cls for cls in classes if cls not in others]


def args_type(cls: type[Plugin]) -> type[Args] | None:
    """The class of the plugin's arguments, if it takes any."""
    for wanted in needs(cls).values():
        if inspect.isclass(wanted) and issubclass(wanted, Args):
            return wanted
    return None


def build(cls: type[Plugin], provide: Callable[[Any], Any]) -> Plugin:
    """Make an instance, calling `provide` for each thing its constructor takes.

    `provide` gets the parameter's type and raises LookupError for a type it does not know.
    """
    given: dict[str, Any] = {}
    problems: list[Problem] = []
    for parameter, wanted in needs(cls).items():
        try:
            given[parameter] = provide(wanted)
        except LookupError:
            problems.append(Problem(f"{cls.name}.__init__({parameter})", no_service(wanted)))
    if problems:
        raise OperatorMistake(f"plugin {cls.name} cannot be built.", problems)
    return cls(**given)


def all_object_types(entries: Iterable[PluginEntry]) -> tuple[type[KubeObject], ...]:
    """The kinds that these plugins watch, each once."""
    return tuple(dict.fromkeys(kind for entry in entries for kind in entry.object_types))
