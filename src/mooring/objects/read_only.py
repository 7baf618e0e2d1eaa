"""What plugins see and cannot change: mappings, lists and attributes whose writes fail, on the line that writes.

Objects are shared by all that reads them: the state's indexes, caches, every plugin. A write would change decisions
about other pods, or make the state disagree with itself.
"""

from __future__ import annotations

from typing import Any, Generic, Never, TypeVar

import msgspec
from msgspec.structs import force_setattr

K = TypeVar("K")
V = TypeVar("V")


INSTEAD = "change a copy, such as dict(pod.labels), or the pod itself by the service PodWriter"


class ReadOnlyError(AttributeError, TypeError):
    """A write to what is shared. Python raises the one type for attributes and the other for items."""


def _refuse_item(*_: object, **__: object) -> Never:
    raise ReadOnlyError(f"objects that plugins see are read-only; {INSTEAD}")


def refuse_attribute(self: object, name: str, *_: object) -> Never:
    """`__setattr__` and `__delattr__` of what is read-only."""
    raise ReadOnlyError(f"{type(self).__name__}.{name} is read-only; {INSTEAD}")


class ReadOnlyDict(dict[K, V], Generic[K, V]):
    """A dictionary that keeps the content it was made with. Its `copy()` can be changed."""

    __slots__ = ()

    __setitem__ = __delitem__ = __ior__ = _refuse_item
    setdefault = pop = popitem = update = clear = _refuse_item

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (dict(self),)


class ReadOnlyList(list[V], Generic[V]):
    """A list that keeps the content it was made with. Its `copy()` can be changed."""

    __slots__ = ()

    __setitem__ = __delitem__ = __iadd__ = __imul__ = _refuse_item
    append = extend = insert = pop = remove = clear = sort = reverse = _refuse_item

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (list(self),)


_CHANGEABLE = (dict, list, tuple, set, bytearray)
"""What `read_only` replaces; a tuple may hold one of them."""

EMPTY: ReadOnlyDict[Any, Any] = ReadOnlyDict()
"""The default of fields: one object, so that it is left out of JSON."""


def read_only(value: Any) -> Any:
    """The value as it cannot be changed: dictionaries, lists and sets in it are copied, down to the last."""
    kind = type(value)
    if kind is dict:
        return ReadOnlyDict({key: read_only(each) for key, each in value.items()}) if value else EMPTY
    if kind is list:
        return ReadOnlyList([read_only(each) for each in value])
    if kind is tuple:
        return tuple([read_only(each) for each in value])
    if kind is set or kind is bytearray:
        return frozenset(value) if kind is set else bytes(value)
    return value


def seal(struct: msgspec.Struct, *fields: str) -> None:
    """From `__post_init__`: makes these mappings read-only. Their values hold no others."""
    for field in fields:
        value = getattr(struct, field)
        if type(value) is not ReadOnlyDict and value is not None:
            force_setattr(struct, field, ReadOnlyDict(value) if value else EMPTY)


def seal_deeply(struct: msgspec.Struct, *fields: str) -> None:
    """As `seal`, for values that hold dictionaries and lists; these fields, or all."""
    for field in fields or struct.__struct_fields__:
        value = getattr(struct, field)
        if type(value) in _CHANGEABLE:
            force_setattr(struct, field, read_only(value))
