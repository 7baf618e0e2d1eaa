"""Methods that look like an extension point under a wrong name: `scores`, `preFilter`, `Filter`.

A plugin has the points whose methods it defines, so a misspelt one would never be called. A public method is reported
when its name differs from the contract's in case and underscores alone; or when the name is close to that of a method
which the class lacks, and it takes the same arguments. Other public methods are the plugin's own business.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterator
from difflib import get_close_matches
from typing import Any

from mooring.base.errors import Problem, folded
from mooring.framework.plugin import Plugin
from mooring.framework.points import METHODS, Point

CLOSE = 0.8
"""The similarity (difflib) from which on a name is taken for a misspelling: `socre`, `filters`, `normalise`."""

_GO_NAMES = {
    "EventsToRegister": "events",
    "NormalizeScore": "normalize",
    "SignPod": "sign",
    "PreBindPreFlight": "needs_pre_bind",
}
_MEANT: dict[str, str] = (
    {folded(name): method for name, method in _GO_NAMES.items()}
    | {folded(point.config_name): point.methods[0] for point in Point}
    | {folded(name): name for name in (*METHODS, "events")}
)
"""What is meant by a name, whatever its case and underscores: ours, that of configuration files, that of Go plugins."""


def misspelt_points(cls: type[Plugin]) -> list[Problem]:
    """Each public method that is probably meant to be an extension point, with the name it should have."""
    return [_problem(cls, name, meant) for name, meant in _candidates(cls) if _is_misspelt(cls, name, meant)]


def without_points(cls: type[Plugin]) -> Problem:
    """The problem of a class that has no extension point at all: what its methods may be meant for."""
    for name, meant in _candidates(cls):
        return _problem(cls, name, meant)
    return Problem(
        f"{_place(cls)}: {cls.name}",
        "has no method of an extension point; there are " + ", ".join(method for method in METHODS),
    )


def _candidates(cls: type[Plugin]) -> Iterator[tuple[str, str]]:
    """The public methods outside the contract, each with the nearest name in it."""
    for name in _public_methods(cls):
        close = get_close_matches(folded(name), _MEANT, n=1, cutoff=CLOSE)
        if close and _MEANT[close[0]] != name:
            yield name, _MEANT[close[0]]


def _public_methods(cls: type[Plugin]) -> Iterator[str]:
    owners = [owner for owner in cls.__mro__ if owner not in Plugin.__mro__]
    names = dict.fromkeys(name for owner in reversed(owners) for name in vars(owner))
    for name in names:
        if not name.startswith("_") and name not in METHODS and inspect.isroutine(getattr(cls, name, None)):
            yield name


def _is_misspelt(cls: type[Plugin], name: str, meant: str) -> bool:
    if _MEANT.get(folded(name)) == meant:
        return True
    has_it = getattr(cls, meant, None) is not getattr(Plugin, meant, None)
    return not has_it and fits(getattr(cls, name), METHODS.get(meant, Plugin.events))


def fits(method: Callable[..., Any], declared: Callable[..., Any]) -> bool:
    """Whether it can be called with the arguments of the declared one."""
    try:
        inspect.signature(method).bind(*inspect.signature(declared).parameters)
    except (TypeError, ValueError):
        return False
    return True


def _problem(cls: type[Plugin], name: str, meant: str) -> Problem:
    place = f"{_place(getattr(cls, name))}: {cls.name}.{name}"
    return Problem(place, f'"{name}" is no extension point. Did you mean "{meant}"? Name a helper "_{name}".')


def _place(found: Any) -> str:
    """File and line of a class or method, by the path that is shorter to read."""
    try:
        file, line = inspect.getsourcefile(found) or "", inspect.getsourcelines(found)[1]
    except (OSError, TypeError):  # made on the spot
        return "no file"
    near = os.path.relpath(file)
    return f"{file if near.startswith('..') else near}:{line}"
