"""Values that are computed once per object."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

import msgspec

V = TypeVar("V")


class computed_once(Generic[V]):  # noqa: N801  # it is written as a decorator
    """`functools.cached_property` without the lock that it takes before Python 3.12: each pod has several of these."""

    def __init__(self, compute: Callable[[Any], V]) -> None:
        self._compute = compute
        self._name = compute.__name__
        self.__doc__ = compute.__doc__
        self._store: Callable[[Any, str, Any], None] = setattr

    def __set_name__(self, owner: type, name: str) -> None:
        if issubclass(owner, msgspec.Struct):
            self._store = msgspec.Struct.__setattr__  # also where the struct is read-only

    @overload
    def __get__(self, instance: None, owner: type) -> computed_once[V]: ...
    @overload
    def __get__(self, instance: object, owner: type) -> V: ...
    def __get__(self, instance: object | None, owner: type) -> computed_once[V] | V:
        if instance is None:
            return self
        value = self._compute(instance)
        # Not through `__dict__`: Python 3.11 calls methods faster on objects whose dictionary nothing has read.
        self._store(instance, self._name, value)
        return value
