"""What calls cost, now that their values are known.

The numbers are upstream's: cel-go's for the standard functions and the list and set extensions, Kubernetes' for its
own. A character of text costs a tenth, a character of a regular expression a quarter per character of text.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from mooring.cel.budget import PER_CALL, PER_ELEMENT, spend
from mooring.cel.library.addresses import IPAddress, Network
from mooring.cel.library.formats import Format
from mooring.cel.values import Opaque, Optional

TEXT, PATTERN = 0.1, 0.25
LIST, MAP = 10, 30
Cost = Callable[[str, list[Any], Any], int | None]


def size(value: Any) -> int:
    """How big upstream takes a value to be: what has no size counts as one."""
    if isinstance(value, (str, bytes, list, tuple, dict)):
        return len(value)
    if isinstance(value, IPAddress):
        return value.value.max_prefixlen // 8
    if isinstance(value, Network):
        return math.ceil(value.bits / 8)
    return 1


def _up(value: float) -> int:
    return math.ceil(value)


def _one(*_: object) -> int:
    return 1


def _first(factor: float) -> Cost:
    return lambda _, args, __: _up(size(args[0]) * factor)


def _traversed(value: Any) -> int:
    if isinstance(value, str):
        return int(len(value.encode()) * TEXT)
    if isinstance(value, bytes):
        return int(len(value) * TEXT)
    if isinstance(value, (list, tuple)):
        spend(PER_CALL + len(value) * PER_ELEMENT)
        return sum(map(_traversed, value))
    if isinstance(value, dict):
        spend(PER_CALL + len(value) * PER_ELEMENT)
        return sum(_traversed(key) + _traversed(of) for key, of in value.items())
    return 1


def _matched(text: Any, pattern_size: int) -> int:
    return _up((1.0 + size(text)) * TEXT) * _up(pattern_size * PATTERN)


def _contains_address(overload: str, args: list[Any], _: Any) -> int:
    cost = _up(2 * size(args[0]) * TEXT)
    return cost + _up(size(args[1]) * TEXT) if overload == "cidr_contains_ip_string" else cost


def _contains_network(overload: str, args: list[Any], _: Any) -> int:
    cost = _up(2 * size(args[0]) * TEXT) + _up(size(args[0]) * TEXT) + 1
    return cost + _up(size(args[1]) * TEXT) if overload == "cidr_contains_cidr_string" else cost


def _validate(_: str, args: list[Any], __: Any) -> int | None:
    return _matched(args[1], args[0].pattern_size) if isinstance(args[0], Format) else None


def _equality(_: str, args: list[Any], __: Any) -> int | None:
    return 1 if isinstance(args[0], Opaque) else None


_BY_FUNCTION: dict[str, Cost] = {
    **dict.fromkeys(
        ("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf"), lambda _, args, __: _traversed(args[0])
    ),
    **dict.fromkeys(("url", "lowerAscii", "upperAscii", "substring", "trim", "cidr", "isIP", "isCIDR"), _first(TEXT)),
    **dict.fromkeys(("quantity", "isQuantity", "semver", "isSemver"), _first(TEXT)),
    **dict.fromkeys(("replace", "split", "ip.isCanonical"), _first(2 * TEXT)),
    "join": lambda _, __, result: _up(size(result) * 2 * TEXT),
    **dict.fromkeys(("find", "findAll"), lambda _, args, __: _matched(args[0], size(args[1]))),
    "ip": lambda overload, args, _: 1 if overload == "cidr_ip" else _up(size(args[0]) * TEXT),
    **dict.fromkeys(("masked", "prefixLength", "family", "isUnspecified", "isLoopback", "isLinkLocalMulticast"), _one),
    **dict.fromkeys(("isLinkLocalUnicast", "isGlobalUnicast", "format.named"), _one),
    "containsIP": _contains_address,
    "containsCIDR": _contains_network,
    "validate": _validate,
    "_==_": _equality,
}


def _allocated(factor: float, count: int) -> int:
    return int(float(count) * factor) + 1 + LIST


def _self_compared(elements: Any) -> int:
    if not isinstance(elements, (list, tuple)):
        return 1
    factor = 2 + TEXT if len(elements) and isinstance(elements[0], (str, bytes)) else 2.0
    return _allocated(factor, len(elements) ** 2)


def _result_list(_: str, __: list[Any], result: Any) -> int:
    return _allocated(1, size(result))


def _flatten(_: str, args: list[Any], __: Any) -> int:
    return _allocated(float(args[1]) if len(args) == 2 else 1.0, size(args[0]))


def _sets(factor: int) -> Cost:
    return lambda _, args, __: 1 + size(args[0]) * size(args[1]) * factor


_SORTED = ("int", "uint", "double", "bool", "google.protobuf.Duration", "google.protobuf.Timestamp", "string", "bytes")
_BY_OVERLOAD: dict[str, Cost] = {
    "list_slice": _result_list,
    "list_flatten": _flatten,
    "list_flatten_int": _flatten,
    "lists_range": _result_list,
    "list_reverse": _result_list,
    "list_distinct": lambda _, args, __: _self_compared(args[0]),
    **{f"list_{of}_sort": lambda _, args, __: _self_compared(args[0]) for of in _SORTED},
    **{f"list_{of}_sortByAssociatedKeys": lambda _, args, __: _self_compared(args[1]) for of in _SORTED},
    "list_sets_contains_list": _sets(1),
    "list_sets_intersects_list": _sets(1),
    "list_sets_equivalent_list": _sets(2),
}


def _size_through_optional(value: Any) -> int:
    return _size_through_optional(value.value) if isinstance(value, Optional) and value.present else size(value)


def _sized(cost: Callable[[list[int]], int]) -> Cost:
    return lambda _, args, __: cost([_size_through_optional(each) for each in args])


_SHORTER = _sized(lambda sizes: _up(min(sizes) * TEXT))
_STANDARD: dict[str, Cost] = {
    **dict.fromkeys(
        (
            "starts_with_string",
            "ends_with_string",
            "string_to_bytes",
            "bytes_to_string",
            "strings_quote",
            "string_format",
        ),
        _sized(lambda sizes: _up(sizes[0] * TEXT)),
    ),
    "in_list": _sized(lambda sizes: sizes[1]),
    **dict.fromkeys(("add_string", "add_bytes"), _sized(lambda sizes: _up((sizes[0] + sizes[1]) * TEXT))),
    "matches_string": lambda _, args, __: _matched(args[0], _size_through_optional(args[1])),
    "contains_string": _sized(lambda sizes: _up(sizes[0] * TEXT) * _up(sizes[1] * TEXT)),
    **dict.fromkeys(("equals", "not_equals"), _SHORTER),
}


def _standard(overload: str) -> Cost | None:
    if overload.endswith(("_string", "_bytes")) and overload.startswith(("less", "greater")):
        return _SHORTER
    return _STANDARD.get(overload)


def cost_of(function: str, overload: str) -> Callable[[list[Any], Any], int] | None:
    """What a call costs, by arguments and result; None: one. `overload` is empty where it is chosen only then."""
    specials = [each for each in (_BY_OVERLOAD.get(overload), _BY_FUNCTION.get(function)) if each is not None]
    standard = _standard(overload)
    if not specials and standard is None:
        return None

    def cost(args: list[Any], result: Any) -> int:
        for special in specials:
            if (found := special(overload, args, result)) is not None:
                return found
        return (standard(overload, args, result) or 0) if standard is not None else 1

    return cost
