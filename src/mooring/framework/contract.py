"""Whether a class keeps the contract: methods that can be called as `points` declares them, a constructor that takes
services that exist. All mistakes at once.
"""

from __future__ import annotations

import inspect
import typing
from collections.abc import Iterator
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import msgspec

from mooring.base.clock import Clock
from mooring.base.errors import OperatorMistake, Problem
from mooring.base.foreign_code import described
from mooring.base.log import Log
from mooring.framework.args import Args
from mooring.framework.claims import ClaimsInFlight
from mooring.framework.gates import FeatureGates
from mooring.framework.misspelt import fits, misspelt_points
from mooring.framework.plugin import Plugin
from mooring.framework.points import METHODS
from mooring.framework.resource_metrics import ResourceMetrics
from mooring.framework.services import (
    Background,
    Binder,
    ClaimWriter,
    Http,
    Metrics,
    Objects,
    PodEvents,
    PodGroups,
    Pods,
    PodWriter,
    Preemptions,
    ProblemReports,
    Published,
    Queue,
    VolumeWriter,
    WaitingPods,
)

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
    ProblemReports,
    PodWriter,
    ResourceMetrics,
    PodGroups,
)
"""What a constructor may take besides its `Args`, `Objects[…]` and `Published[…]`."""
_MUST_BE_ASYNC = frozenset(name for name, method in METHODS.items() if inspect.iscoroutinefunction(method))
_MAY_BE_ASYNC = _MUST_BE_ASYNC | {"unreserve"}


def check_contract(cls: type[Plugin], source: str) -> None:
    """Refuse a class whose methods cannot be called as the contract declares; all mistakes at once."""
    problems = [*_method_problems(cls), *misspelt_points(cls), *_constructor_problems(cls), *_default_problems(cls)]
    if problems:
        raise OperatorMistake(f"{source}: plugin {cls.name} does not keep the contract.", problems)


def _method_problems(cls: type[Plugin]) -> Iterator[Problem]:
    for method, declared in METHODS.items():
        found = getattr(cls, method, None)
        if not callable(found):
            continue
        where = f"{cls.name}.{method}"
        if not fits(found, declared):
            names = [name for name in inspect.signature(declared).parameters if name != "self"]
            yield Problem(where, f"must take ({', '.join(names)}) besides self")
        if inspect.iscoroutinefunction(found) and method not in _MAY_BE_ASYNC:
            yield Problem(where, "must not be async: this point never waits")
        if method in _MUST_BE_ASYNC and not inspect.iscoroutinefunction(found):
            yield Problem(where, "must be async (`async def`)")


def _constructor_problems(cls: type[Plugin]) -> Iterator[Problem]:
    for parameter, wanted in needs(cls).items():
        where = f"{cls.name}.__init__({parameter})"
        if wanted is inspect.Parameter.empty:
            yield Problem(where, "has no type; the type names the service")
        elif isinstance(wanted, Unreadable):
            yield Problem(where, f"its type cannot be read: {wanted.why}")
        elif not is_service(wanted):
            yield Problem(where, no_service(wanted))


def _default_problems(cls: type[Plugin]) -> Iterator[Problem]:
    """Defaults of arguments that a configuration could not give: msgspec checks what it reads, and no defaults."""
    for wanted in needs(cls).values():
        if not inspect.isclass(wanted) or not issubclass(wanted, Args):
            continue
        for field in msgspec.structs.fields(wanted):
            if field.default is msgspec.NODEFAULT:
                continue
            try:
                msgspec.convert(msgspec.to_builtins(field.default), field.type)
            except msgspec.ValidationError as error:
                yield Problem(f"{wanted.__name__}.{field.name}", f"its default does not fit its type: {error}")


def is_service(wanted: Any) -> bool:
    if typing.get_origin(wanted) in (Objects, Published):
        return True
    return wanted in SERVICES or (inspect.isclass(wanted) and issubclass(wanted, Args))


def no_service(wanted: Any) -> str:
    shown = wanted.__name__ if inspect.isclass(wanted) else str(wanted)
    known = ", ".join(service.__name__ for service in SERVICES)
    return f"there is no service of type {shown}; there are its Args class, Objects[…], Published[…], {known}"


@dataclass(frozen=True)
class Unreadable:
    """Stands for an annotation that cannot be evaluated."""

    why: str


def needs(cls: type[Plugin]) -> dict[str, Any]:
    """What the constructor takes: parameter → type. One without a type is `Parameter.empty`."""
    if cls.__init__ is object.__init__:
        return {}
    init = inspect.unwrap(cls.__init__)
    parameters = list(inspect.signature(init).parameters.values())[1:]
    return {parameter.name: _type_of(parameter, getattr(init, "__globals__", {})) for parameter in parameters}


def _type_of(parameter: inspect.Parameter, names: dict[str, Any]) -> Any:
    if parameter.annotation is parameter.empty:
        return parameter.empty
    alone = SimpleNamespace(__annotations__={parameter.name: parameter.annotation})
    try:
        return typing.get_type_hints(alone, names)[parameter.name]
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # whatever evaluating the author's annotation may raise
        return Unreadable(described(error))
