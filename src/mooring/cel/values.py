"""CEL's values in Python, and what every value can do: have a type, be equal, be ordered, be a key.

bool, int, float, str, bytes, None, list and dict stand for themselves; an int is an int64 (operators see to it). What
Python lacks is here: unsigned integers, optionals, durations, timestamps, types as values. Python takes True for 1, in
dicts too; CEL does not, so a bool as a key of a map is a `BoolKey`.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import total_ordering
from typing import Any, ClassVar

from mooring.cel import types
from mooring.cel.budget import PER_CALL, PER_COMPARISON, spend
from mooring.cel.errors import NO_SUCH_OVERLOAD, CelError
from mooring.cel.types import Type

INT_LEAST, INT_MOST, UINT_MOST = -(2**63), 2**63 - 1, 2**64 - 1


class Uint(int):
    """An unsigned integer of 64 bits. Equal to the int of the same number, as in CEL."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Optional:
    """A value, or that there is none."""

    value: Any = None
    present: bool = True


NONE = Optional(None, False)


@total_ordering
@dataclass(frozen=True, slots=True)
class Duration:
    """A length of time in nanoseconds."""

    nanoseconds: int

    def __lt__(self, other: Duration) -> bool:
        return self.nanoseconds < other.nanoseconds


@total_ordering
@dataclass(frozen=True, slots=True, eq=False)
class Timestamp:
    """A moment, in nanoseconds since 1970, and the offset of the zone it was written in, which only its text shows."""

    nanoseconds: int
    zone_seconds: int = 0

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Timestamp) and self.nanoseconds == other.nanoseconds

    def __hash__(self) -> int:
        return hash(self.nanoseconds)

    def __lt__(self, other: Timestamp) -> bool:
        return self.nanoseconds < other.nanoseconds


class BoolKey(enum.Enum):
    """true and false as keys of a map, apart from 1 and 0."""

    FALSE = False
    TRUE = True


_BOOL_KEYS = (BoolKey.FALSE, BoolKey.TRUE)


class Opaque:
    """The root of values that a library brings along: quantities, versions, addresses."""

    __slots__ = ()
    cel_type: ClassVar[Type]

    def comparable_with(self, other: object) -> bool:
        """Whether `==` has an overload for the value; where it has none, `!=` is true."""
        return type(self) is type(other)


class WithDefault(dict[Any, Any]):
    """A map in which every key can be looked up: an absent one has the default. Only `in` distinguishes the two."""

    __slots__ = ("default",)

    def __init__(self, entries: Mapping[Any, Any], default: Any) -> None:
        super().__init__(entries)
        self.default = default

    def __missing__(self, key: Any) -> Any:
        return self.default


class GrowingList(list[Any]):
    """The accumulator of a loop that collects: `+` appends to it. No expression gets hold of it while it grows."""

    __slots__ = ()


class GrowingMap(dict[Any, Any]):
    """As GrowingList, of a loop that makes a map."""

    __slots__ = ()


_TYPES: dict[type, Type] = {
    bool: types.BOOL,
    int: types.INT,
    Uint: types.UINT,
    float: types.DOUBLE,
    str: types.STRING,
    bytes: types.BYTES,
    type(None): types.NULL,
    list: Type("list", "list"),
    tuple: Type("list", "list"),
    dict: Type("map", "map"),
    WithDefault: Type("map", "map"),
    GrowingList: Type("list", "list"),
    GrowingMap: Type("map", "map"),
    Optional: Type("opaque", "optional_type"),
    Duration: types.DURATION,
    Timestamp: types.TIMESTAMP,
    Type: types.TYPE,
}


def type_of(value: Any) -> Type:
    """The type as `type(value)` gives it: without parameters."""
    found = _TYPES.get(type(value))
    if found is not None:
        return found
    if isinstance(value, Opaque):
        return value.cel_type
    if isinstance(value, Mapping):
        return _TYPES[dict]
    if isinstance(value, Sequence):
        return _TYPES[list]
    raise TypeError(f"{type(value).__name__} is no CEL value")


_SCALARS = {of: python for python, of in _TYPES.items() if of.kind not in ("list", "map", "type")}


def python_type(of: Type) -> type | None:
    """The Python type whose values are exactly the values of a scalar type."""
    return _SCALARS.get(of)


def type_name(value: Any) -> str:
    """The type's name in messages."""
    return type_of(value).name


def is_list(value: Any) -> bool:
    return isinstance(value, (list, tuple))


def key_of(value: Any) -> Any:
    """The value as a key of a Python dict; a key that no map has, where it cannot be one."""
    kind = type(value)
    if kind is bool:
        return _BOOL_KEYS[value]
    if kind is float:
        return int(value) if value.is_integer() and INT_LEAST <= value <= UINT_MOST else None
    return value


def from_key(key: Any) -> Any:
    """The CEL value of a key."""
    return key.value if type(key) is BoolKey else key


def keys_of(mapping: Mapping[Any, Any]) -> Iterable[Any]:
    return [from_key(each) for each in mapping]


_ORDINARY = frozenset({str, bytes, bool, type(None)})
_NUMBERS = frozenset({int, Uint, float})


def equal(one: Any, other: Any) -> bool:
    """`==` of any two values; raises where the left one refuses to be compared with the right one."""
    result = same(one, other)
    if result is None:
        raise CelError(NO_SUCH_OVERLOAD)
    return result


def same(one: Any, other: Any) -> bool | None:
    """Equality: numbers compare by value, everything else only with its own kind. None where there is no overload.

    Inside lists and maps, elements without an overload count as equal: upstream looks for elements that differ.
    """
    one_kind, other_kind = type(one), type(other)
    if one_kind is other_kind and (one_kind in _ORDINARY or one_kind is int):
        return bool(one == other)
    if one_kind in _NUMBERS:
        return other_kind in _NUMBERS and _same_number(one, other)
    if one_kind in _ORDINARY:
        return False
    if is_list(one):
        spend(PER_CALL + len(one) * PER_COMPARISON)
        return (
            is_list(other)
            and len(one) == len(other)
            and all(same(left, right) is not False for left, right in zip(one, other, strict=True))
        )
    if isinstance(one, dict):
        spend(PER_CALL + len(one) * PER_COMPARISON)
        return (
            isinstance(other, dict)
            and len(one) == len(other)
            and all(key in other and same(value, other[key]) is not False for key, value in one.items())
        )
    if one_kind is Optional:
        if other_kind is not Optional or one.present != other.present:
            return False
        return same(one.value, other.value) if one.present else True
    if one_kind is Type:
        return other_kind is Type and one.name == other.name
    if isinstance(one, Opaque) and not one.comparable_with(other):
        return False if other is None else None
    return one_kind is other_kind and bool(one == other)


def _same_number(one: Any, other: Any) -> bool:
    if type(one) is float or type(other) is float:
        # As floats, which is lossy and upstream's way; NaN equals nothing.
        return one == one and other == other and compare(one, other) == 0
    return int(one) == int(other)


def compare(one: Any, other: Any) -> int:
    """-1, 0 or 1; raises for what has no order."""
    one_kind, other_kind = type(one), type(other)
    if one_kind in _NUMBERS and other_kind in _NUMBERS:
        if one_kind is float or other_kind is float:
            if one != one or other != other:
                raise CelError("NaN values cannot be ordered")
            return _compare_floats(one, other)
    elif one_kind is not other_kind:
        raise _unordered(one)
    elif one_kind is str:
        # By UTF-8 bytes, which is the order of code points.
        pass
    elif one_kind not in _ORDERED:
        raise _unordered(one)
    return int(one > other) - int(one < other)


_ORDERED = frozenset({bool, bytes, Duration, Timestamp})


def _unordered(one: Any) -> CelError:
    kind = type(one)
    if kind in _NUMBERS or kind in _ORDERED or kind is str:
        return CelError(NO_SUCH_OVERLOAD)
    return CelError(f"{NO_SUCH_OVERLOAD}: _<_")


def _compare_floats(one: Any, other: Any) -> int:
    if type(one) is not float:
        return -_compare_floats(other, one)
    if type(other) is Uint:
        if one < 0:
            return -1
    elif type(other) is int and one < float(INT_LEAST):
        return -1
    most = float("inf") if type(other) is float else float(UINT_MOST if type(other) is Uint else INT_MOST)
    if one > most:
        return 1
    as_float = float(other)
    return (one > as_float) - (one < as_float)


def is_zero(value: Any) -> bool:
    """Whether `optional.ofNonZeroValue` takes it for nothing."""
    if value is None:
        return True
    if isinstance(value, (bool, int, float, str, bytes, list, tuple, dict)):
        return not value
    if isinstance(value, Duration):
        return value.nanoseconds == 0
    if isinstance(value, Timestamp):
        return value.nanoseconds == -62_135_596_800_000_000_000
    return False
