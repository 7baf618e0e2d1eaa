"""Finding plugins, and building them: which classes there are under which name, and what their constructors ask for.

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

from mooring.base.clock import Clock
from mooring.base.errors import OperatorMistake, Problem
from mooring.base.foreign_code import described
from mooring.base.log import Log
from mooring.framework.api_version import check_api_version
from mooring.framework.args import Args
from mooring.framework.claims import ClaimsInFlight
from mooring.framework.gates import FeatureGates
from mooring.framework.plugin import Plugin
from mooring.framework.plugin_files import importing, is_module_path, load_files
from mooring.framework.points import Point, points_of
from mooring.framework.services import (
    Background,
    Binder,
    ClaimWriter,
    Http,
    Metrics,
    Objects,
    PodEvents,
    Pods,
    Preemptions,
    Published,
    Queue,
    VolumeWriter,
    WaitingPods,
)
from mooring.objects.meta import KubeObject

ENTRY_POINTS = "mooring.plugins"


@dataclass(frozen=True)
class PluginEntry:
    """A plugin that can be configured by name."""

    name: str
    cls: type[Plugin]
    source: str
    """Where it was found: `default`, `example`, a package, a file."""

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
            typing.get_args(asked)[0] for asked in needs(self.cls).values() if typing.get_origin(asked) is Objects
        )


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

    def add(self, cls: type[Plugin], source: str) -> None:
        """Make a plugin known. The same name from two places is refused, whichever was first."""
        known = self._entries.get(cls.name)
        if known is not None and known.cls is not cls:
            raise OperatorMistake(
                f'two plugins are called "{cls.name}".',
                [Problem(source, f"also in {known.source}; give one of them another `name`")],
            )
        check_api_version(cls, source)
        check_contract(cls, source)
        self._entries[cls.name] = PluginEntry(cls.name, cls, source)

    def add_entry_points(self) -> None:
        """What installed packages offer."""
        for point in importlib.metadata.entry_points(group=ENTRY_POINTS):
            package = point.dist.name if point.dist else point.module
            with_source = f"package {package}"
            found = importing(with_source, point.load)
            for cls in plugins_in(found) if isinstance(found, ModuleType) else [found]:
                self.add(cls, with_source)

    def add_path(self, path: str) -> list[PluginEntry]:
        """What a file, a folder of files, or `module:Class` on the command line names. Returns what was added."""
        if is_module_path(path):
            module_name, _, class_name = path.partition(":")
            found = getattr(importing(path, lambda: importlib.import_module(module_name)), class_name, None)
            if not (inspect.isclass(found) and issubclass(found, Plugin)):
                raise OperatorMistake(f"{path} names no plugin: {module_name} has no Plugin class {class_name}.")
            classes: list[type[Plugin]] = [found]
        else:
            classes = [cls for module in load_files(path) for cls in plugins_in(module)]
            if not classes:
                raise OperatorMistake(
                    f"{path} holds no plugin: a plugin is a class that inherits from mooring.framework.Plugin and has "
                    "the method of an extension point, such as filter or score."
                )
        for cls in classes:
            self.add(cls, path)
        return [self._entries[cls.name] for cls in classes]


def plugins_in(module: ModuleType) -> list[type[Plugin]]:
    """The plugin classes that a module defines (not those it imports)."""
    return [
        found
        for found in vars(module).values()
        if inspect.isclass(found)
        and issubclass(found, Plugin)
        and found.__module__ == module.__name__
        and points_of(found)
    ]


_SIGNATURES: dict[str, int] = {
    "pre_enqueue": 1,
    "sort_key": 1,
    "sign": 1,
    "pre_filter": 2,
    "filter": 3,
    "filter_nodes": 3,
    "post_filter": 3,
    "pre_score": 3,
    "score": 3,
    "score_nodes": 3,
    "normalize": 4,
    "reserve": 3,
    "unreserve": 3,
    "permit": 3,
    "needs_pre_bind": 3,
    "pre_bind": 3,
    "bind": 3,
    "post_bind": 3,
    "start": 0,
    "stop": 0,
}
SERVICES: tuple[type, ...] = (
    Metrics,
    Clock,
    Log,
    FeatureGates,
    Pods,
    WaitingPods,
    Queue,
    Http,
    Background,
    Binder,
    VolumeWriter,
    Preemptions,
    ClaimWriter,
    ClaimsInFlight,
    PodEvents,
)
"""What a constructor may ask for besides its `Args`, `Objects[…]` and `Published[…]`."""
_MAY_BE_ASYNC = ("unreserve", "pre_bind", "bind", "post_bind", "start", "stop")
_MUST_BE_ASYNC = ("pre_bind", "bind", "post_bind", "start", "stop")


def check_contract(cls: type[Plugin], source: str) -> None:
    """Refuse a class whose methods cannot be called as the contract says; all mistakes at once."""
    problems = []
    for method, count in _SIGNATURES.items():
        found = getattr(cls, method, None)
        if not callable(found):
            continue
        where = f"{cls.name}.{method}"
        try:
            inspect.signature(found).bind(*range(count + 1))
        except TypeError:
            problems.append(Problem(where, f"must take {count} argument(s) besides self"))
        if inspect.iscoroutinefunction(found) and method not in _MAY_BE_ASYNC:
            problems.append(Problem(where, "must not be async: this point never waits"))
        if method in _MUST_BE_ASYNC and not inspect.iscoroutinefunction(found):
            problems.append(Problem(where, "must be async (`async def`)"))
    try:
        asked_for = needs(cls)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # whatever evaluating the author's annotations may raise
        problems.append(Problem(f"{cls.name}.__init__", f"its type hints cannot be read: {described(error)}"))
    else:
        problems += [
            Problem(f"{cls.name}.__init__({parameter})", _no_service(asked))
            for parameter, asked in asked_for.items()
            if not _is_service(asked)
        ]
    if problems:
        raise OperatorMistake(f"{source}: plugin {cls.name} does not keep the contract.", problems)


def _is_service(asked: Any) -> bool:
    if typing.get_origin(asked) in (Objects, Published):
        return True
    return asked in SERVICES or (inspect.isclass(asked) and issubclass(asked, Args))


def _no_service(asked: Any) -> str:
    shown = asked.__name__ if inspect.isclass(asked) else str(asked)
    known = ", ".join(service.__name__ for service in SERVICES)
    return f"there is no service of type {shown}; there are its Args class, Objects[…], Published[…], {known}"


def needs(cls: type[Plugin]) -> dict[str, Any]:
    """What the constructor asks for: parameter → type."""
    if cls.__init__ is object.__init__:
        return {}
    hints = typing.get_type_hints(cls.__init__, include_extras=False)
    parameters = list(inspect.signature(cls.__init__).parameters.values())[1:]
    missing = [parameter.name for parameter in parameters if parameter.name not in hints]
    if missing:
        raise TypeError(f"{', '.join(missing)} has no type; the type says which service is wanted")
    return {parameter.name: hints[parameter.name] for parameter in parameters}


def args_type(cls: type[Plugin]) -> type[Args] | None:
    """The class of the plugin's arguments, if it takes any."""
    for asked in needs(cls).values():
        if inspect.isclass(asked) and issubclass(asked, Args):
            return asked
    return None


def build(cls: type[Plugin], provide: Callable[[Any], Any]) -> Plugin:
    """Make an instance, asking `provide` for each thing its constructor wants.

    `provide` gets the parameter's type and raises LookupError for a type it does not know.
    """
    given: dict[str, Any] = {}
    problems: list[Problem] = []
    for parameter, asked in needs(cls).items():
        try:
            given[parameter] = provide(asked)
        except LookupError:
            problems.append(Problem(f"{cls.name}.__init__({parameter})", _no_service(asked)))
    if problems:
        raise OperatorMistake(f"plugin {cls.name} cannot be built.", problems)
    return cls(**given)


def all_object_types(entries: Iterable[PluginEntry]) -> tuple[type[KubeObject], ...]:
    """The kinds that these plugins watch, each once."""
    return tuple(dict.fromkeys(kind for entry in entries for kind in entry.object_types))
