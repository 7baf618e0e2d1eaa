"""What the operators do with values of any type.

An int or uint that leaves 64 bits is an error, never a wrap-around. Where the left side knows the operator and the
right side does not fit, cel-go reports `no such overload`; where the left side does not know it, it names the operator.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from mooring.cel.budget import PER_CALL, PER_CHARACTER, PER_COMPARISON, PER_ELEMENT, spend
from mooring.cel.errors import NO_SUCH_OVERLOAD, CelError
from mooring.cel.types import Type
from mooring.cel.values import (
    INT_LEAST,
    INT_MOST,
    UINT_MOST,
    Duration,
    GrowingList,
    Timestamp,
    Uint,
    WithDefault,
    compare,
    is_list,
    key_of,
    same,
    type_of,
)

INT_OVERFLOW = "integer overflow"
UINT_OVERFLOW = "unsigned integer overflow"
TIMESTAMP_OVERFLOW = "timestamp overflow"
_SECOND = 10**9
_LEAST_MOMENT, _MOST_MOMENT = -62_135_596_800 * _SECOND, 253_402_300_799 * _SECOND + 999_999_999
# Values that implement every operator, and refuse an operand without naming the operator.
_RECEIVERS = (str, Timestamp, Duration)


def _refused(operator: str, left: Any, *, knows: bool) -> CelError:
    if knows or isinstance(left, _RECEIVERS):
        return CelError(NO_SUCH_OVERLOAD)
    return CelError(f"{NO_SUCH_OVERLOAD}: {operator}")


def int64(value: int) -> int:
    """The value, if it is an int64."""
    if INT_LEAST <= value <= INT_MOST:
        return value
    raise CelError(INT_OVERFLOW)


def uint64(value: int) -> Uint:
    if 0 <= value <= UINT_MOST:
        return Uint(value)
    raise CelError(UINT_OVERFLOW)


def duration(nanoseconds: int) -> Duration:
    if INT_LEAST <= nanoseconds <= INT_MOST:
        return Duration(nanoseconds)
    raise CelError(INT_OVERFLOW)


def timestamp(nanoseconds: int, zone_seconds: int = 0) -> Timestamp:
    if _LEAST_MOMENT <= nanoseconds <= _MOST_MOMENT:
        return Timestamp(nanoseconds, zone_seconds)
    raise CelError(TIMESTAMP_OVERFLOW)


def add_ints(left: int, right: int) -> int:
    total = left + right
    if INT_LEAST <= total <= INT_MOST:
        return total
    raise CelError(INT_OVERFLOW)


def add(left: Any, right: Any) -> Any:
    kind = type(left)
    same = kind is type(right)
    if kind is int and same:
        return add_ints(left, right)
    if same and kind in (str, bytes, float):
        return left + right
    if kind is Uint and same:
        return uint64(int(left) + int(right))
    if is_list(left) and is_list(right):
        if kind is GrowingList:
            spend(len(right) * PER_ELEMENT)
            left.extend(right)
            return left
        spend((len(left) + len(right)) * PER_ELEMENT)
        return [*left, *right]
    if kind is Duration and same:
        return duration(left.nanoseconds + right.nanoseconds)
    if kind is Duration and type(right) is Timestamp:
        return timestamp(left.nanoseconds + right.nanoseconds, right.zone_seconds)
    if kind is Timestamp and type(right) is Duration:
        return timestamp(left.nanoseconds + right.nanoseconds, left.zone_seconds)
    knows = kind in (int, Uint, str, bytes, float, Duration, Timestamp) or is_list(left)
    raise _refused("_+_", left, knows=knows)


def subtract(left: Any, right: Any) -> Any:
    kind = type(left)
    same = kind is type(right)
    if kind is int and same:
        return int64(left - right)
    if kind is float and same:
        return left - right
    if kind is Uint and same:
        return uint64(int(left) - int(right))
    if kind is Duration and same:
        return duration(left.nanoseconds - right.nanoseconds)
    if kind is Timestamp and same:
        return duration(left.nanoseconds - right.nanoseconds)
    if kind is Timestamp and type(right) is Duration:
        return timestamp(left.nanoseconds - right.nanoseconds, left.zone_seconds)
    raise _refused("_-_", left, knows=kind in (int, float, Uint, Duration, Timestamp))


def multiply(left: Any, right: Any) -> Any:
    kind = type(left)
    same = kind is type(right)
    if kind is int and same:
        return int64(left * right)
    if kind is float and same:
        return left * right
    if kind is Uint and same:
        return uint64(int(left) * int(right))
    raise _refused("_*_", left, knows=kind in (int, float, Uint))


def divide(left: Any, right: Any) -> Any:
    kind = type(left)
    if kind is not type(right) or kind not in (int, float, Uint):
        raise _refused("_/_", left, knows=kind in (int, float, Uint))
    if kind is float:
        if right != 0:
            return left / right
        if left == 0 or math.isnan(left):
            return math.nan
        return math.copysign(math.inf, left) * math.copysign(1.0, right)
    if right == 0:
        raise CelError("division by zero")
    # Towards zero, where Python goes down.
    quotient = abs(left) // abs(right)
    quotient = quotient if (left < 0) == (right < 0) else -quotient
    return Uint(quotient) if kind is Uint else int64(quotient)


def modulo(left: Any, right: Any) -> Any:
    kind = type(left)
    if kind is not type(right) or kind not in (int, Uint):
        raise _refused("_%_", left, knows=kind in (int, Uint))
    if right == 0:
        raise CelError("modulus by zero")
    if kind is int and left == INT_LEAST and right == -1:
        raise CelError(INT_OVERFLOW)
    remainder = abs(left) % abs(right)
    return Uint(remainder) if kind is Uint else (-remainder if left < 0 else remainder)


def negate(value: Any) -> Any:
    kind = type(value)
    if kind is int:
        return int64(-value)
    if kind is float:
        return -value
    if kind is Duration:
        return duration(-value.nanoseconds)
    raise _refused("-_", value, knows=kind is bool)


def negated(value: Any) -> bool:
    """Logical not."""
    if value is True:
        return False
    if value is False:
        return True
    raise CelError(NO_SUCH_OVERLOAD)


def _ordering(operator: str, accepts: tuple[int, ...]) -> Callable[[Any, Any], bool]:
    def ordered(left: Any, right: Any) -> bool:
        try:
            return compare(left, right) in accepts
        except CelError as problem:
            if str(problem) == f"{NO_SUCH_OVERLOAD}: _<_":
                raise CelError(f"{NO_SUCH_OVERLOAD}: {operator}") from None
            raise

    return ordered


less = _ordering("_<_", (-1,))
less_equals = _ordering("_<=_", (-1, 0))
greater = _ordering("_>_", (1,))
greater_equals = _ordering("_>=_", (1, 0))


def contains(value: Any, container: Any) -> bool:
    """`value in container`."""
    if isinstance(container, dict):
        return _hashable(value) and key_of(value) in container
    if is_list(container):
        spend(len(container) * PER_COMPARISON)
        return any(same(value, each) for each in container)
    raise CelError(NO_SUCH_OVERLOAD)


def _hashable(value: Any) -> bool:
    return isinstance(value, (str, int, float))


def size(value: Any) -> int:
    if isinstance(value, (str, bytes, list, tuple, dict)):
        return len(value)
    raise _refused("size", value, knows=False)


def type_value(value: Any) -> Type:
    return type_of(value)


_ABSENT = object()


def look_up(container: Any, key: Any) -> Any:
    """`container[key]` and `container.key`."""
    if isinstance(container, dict):
        found = _in_map(container, key)
        if found is not _ABSENT:
            return found
    elif is_list(container):
        position = _position(key)
        if 0 <= position < len(container):
            return container[position]
        raise CelError(f"index out of bounds: {shown(key)}")
    raise CelError(f"no such key: {shown(key)}")


def look_up_if_present(container: Any, key: Any) -> tuple[Any, bool]:
    """The value and whether there is one. What is no container has nothing."""
    if isinstance(container, dict):
        found = _in_map(container, key)
        return (None, False) if found is _ABSENT else (found, True)
    if is_list(container):
        position = _position(key)
        return (container[position], True) if 0 <= position < len(container) else (None, False)
    return None, False


def _in_map(container: dict[Any, Any], key: Any) -> Any:
    if not _hashable(key):
        raise CelError(f"invalid qualifier type: {go_type_name(key)}")
    found = container.get(key_of(key), _ABSENT)
    if found is _ABSENT and type(container) is WithDefault:
        return container.default
    return found


def _position(key: Any) -> int:
    kind = type(key)
    if kind is int or kind is Uint:
        return int(key)
    if kind is float and key.is_integer():
        return int(key)
    raise CelError(
        f"unsupported index value {shown(key)} in list"
        if kind is float
        else f"unsupported index type '{type_of(key).name}' in list"
    )


def shown(value: Any) -> str:
    """A key in a message."""
    if value is True or value is False:
        return "true" if value else "false"
    if isinstance(value, float):
        from mooring.cel.conversions import double_text  # conversions stand on operators

        return double_text(value)
    _charge_text(value)
    return str(value)


def _charge_text(value: Any) -> None:
    """A value that holds another one twice has it twice in its text."""
    if isinstance(value, (list, tuple, dict)):
        spend(PER_CALL + len(value) * PER_CHARACTER)
        for each in value.values() if isinstance(value, dict) else value:
            _charge_text(each)


_GO_NAMES = {
    "int": "types.Int",
    "uint": "types.Uint",
    "double": "types.Double",
    "bool": "types.Bool",
    "string": "types.String",
    "bytes": "types.Bytes",
    "null": "types.Null",
    "duration": "types.Duration",
    "timestamp": "types.Timestamp",
    "type": "*types.Type",
    "list": "*types.baseList",
    "map": "*types.baseMap",
    "kubernetes.Quantity": "cel.Quantity",
    "kubernetes.Semver": "cel.Semver",
    "kubernetes.URL": "cel.URL",
    "kubernetes.NamedFormat": "cel.Format",
    "net.IP": "cel.IP",
    "net.CIDR": "cel.CIDR",
}


def go_type_name(value: Any) -> str:
    """Some of upstream's messages name its own Go type."""
    of = type_of(value)
    return _GO_NAMES.get(of.kind) or _GO_NAMES.get(of.name) or "*types.Optional"
