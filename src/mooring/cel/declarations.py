"""How functions are declared: a name, its overloads, and what they do.

An overload is what the checker chooses by types; its implementation is what runs. A function may have one
implementation for all its overloads (operators do), which then looks at the values itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from mooring.cel.errors import no_such_overload
from mooring.cel.types import Type
from mooring.cel.values import Opaque, is_list, keys_of, python_type, type_name, type_of

Implementation = Callable[..., Any]


@dataclass(frozen=True)
class Overload:
    """One signature. A member is called on its first argument. Unguarded, it checks its arguments itself."""

    id: str
    args: tuple[Type, ...]
    result: Type
    implementation: Implementation | None = None
    member: bool = False
    guarded: bool = True

    def unguarded(self) -> Overload:
        """Looks at its arguments itself."""
        return replace(self, guarded=False)

    @cached_property
    def type_variables(self) -> frozenset[str]:
        return frozenset(name for each in (*self.args, self.result) for name in _variables(each))


@dataclass(frozen=True)
class Function:
    """A name with its overloads, in the order in which they are tried."""

    name: str
    overloads: tuple[Overload, ...]
    implementation: Implementation | None = None

    def joined(self, more: Function) -> Function:
        """With the overloads of another declaration of the same name behind its own."""
        known = {each.id for each in self.overloads}
        added = tuple(each for each in more.overloads if each.id not in known)
        return replace(
            self,
            overloads=self.overloads + added,
            implementation=self.implementation or more.implementation,
        )


def overload(id: str, args: Iterable[Type], result: Type, implementation: Implementation | None = None) -> Overload:
    """Called as `name(args)`."""
    return Overload(id, tuple(args), result, implementation)


def member(id: str, args: Iterable[Type], result: Type, implementation: Implementation | None = None) -> Overload:
    """Called as `args[0].name(args[1:])`."""
    return Overload(id, tuple(args), result, implementation, member=True)


def function(name: str, *overloads: Overload, implementation: Implementation | None = None) -> Function:
    return Function(name, overloads, implementation)


def _variables(of: Type) -> Iterable[str]:
    if of.kind == "variable":
        yield of.name
    for each in of.parameters:
        yield from _variables(each)


def fits(wanted: Type, value: Any) -> bool:
    """Whether a value may be given where the type is wanted. Of lists and maps, only the first entry is checked."""
    if wanted.is_dyn or wanted.kind == "variable":
        return True
    actual = type_of(value)
    if actual.kind != wanted.kind or actual.name != wanted.name:
        return False
    if wanted.kind == "list" and value and is_list(value):
        return fits(wanted.parameters[0], value[0])
    if wanted.kind == "map" and value:
        key = next(iter(keys_of(value)))
        return fits(wanted.parameters[0], key) and fits(wanted.parameters[1], next(iter(value.values())))
    return True


def _guard(wanted: Type) -> Callable[[Any], bool] | None:
    """A fast check whether a value may be given; None where any value may."""
    if wanted.is_dyn or wanted.kind == "variable":
        return None
    if (python := python_type(wanted)) is not None:
        return lambda value: type(value) is python
    if wanted.kind == "struct":
        return lambda value: isinstance(value, Opaque) and value.cel_type is wanted
    return lambda value: fits(wanted, value)


def chosen_at_run_time(name: str, overloads: Iterable[Overload]) -> Implementation:
    """Runs the first overload that the values fit."""
    candidates = [
        (
            len(each.args),
            [(at, guard) for at, of in enumerate(each.args) if each.guarded and (guard := _guard(of)) is not None],
            each.implementation,
        )
        for each in overloads
        if each.implementation is not None
    ]

    if len(candidates) == 1 and candidates[0][0] == 2 and [at for at, _ in candidates[0][1]] == [0, 1]:
        _, ((_, fits_left), (_, fits_right)), only = candidates[0]

        def two(left: Any, right: Any) -> Any:
            if fits_left(left) and fits_right(right):
                return only(left, right)
            raise no_such_overload(name, type_name(left), type_name(right))

        return two

    def dispatch(*args: Any) -> Any:
        for count, guards, implementation in candidates:
            if count == len(args) and all(guard(args[at]) for at, guard in guards):
                return implementation(*args)
        raise no_such_overload(name, *map(type_name, args))

    return dispatch
