"""What calls can cost, and how big their results can be, before the values are known.

The numbers are upstream's: cel-go's for the standard functions and the list and set extensions, Kubernetes' for its
own. A character of text costs a tenth, a character of a regular expression a quarter per character of text.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from mooring.cel.bounds import MOST, ONE, UNKNOWN, Bounds, exactly
from mooring.cel.syntax import Literal, Node
from mooring.cel.types import Type

TEXT, PATTERN = 0.1, 0.25
LIST, MAP, STRUCT = 10, 30, 40
_FORMAT_PATTERN = 128
_LONGEST_FORMAT_NAME = 64
_MOST_INCLUDED = 48
"""Values that `includes` looks through."""


@dataclass(frozen=True)
class Operand:
    """An argument as estimates see it: its node, its type, its size as far as known, and that of its elements."""

    node: Node
    type: Type
    size: Bounds | None
    element_size: Bounds | None

    @property
    def bounds(self) -> Bounds:
        return UNKNOWN if self.size is None else self.size


@dataclass(frozen=True)
class Estimate:
    """A call's own cost, and the size of its result if it is known."""

    cost: Bounds
    size: Bounds | None = None


@dataclass(frozen=True)
class Given:
    """A call to estimate: the overload, what it is called on, and its arguments."""

    overload: str
    target: Operand | None
    args: list[Operand]


Estimator = Callable[[Given], Estimate | None]


def _one(_: Given) -> Estimate:
    return Estimate(ONE)


def _traversal(given: Given) -> Estimate | None:
    if given.target is None:
        return None
    if not given.target.type.parameters:
        return Estimate(given.target.bounds.scaled(TEXT))
    each = ONE
    if given.target.type.parameters[0].kind in ("string", "bytes"):
        each = each.plus((given.target.element_size or UNKNOWN).scaled(TEXT))
    return Estimate(given.target.bounds.times(each))


def _reading(factor: float = TEXT, *, sized: bool = False) -> Estimator:
    def estimate(given: Given) -> Estimate | None:
        if not given.args:
            return None
        size = given.args[0].bounds
        return Estimate(size.scaled(factor), size if sized else None)

    return estimate


def _target_text(given: Given) -> Estimate | None:
    return None if given.target is None else Estimate(given.target.bounds.scaled(TEXT), given.target.bounds)


def _replace(given: Given) -> Estimate | None:
    if given.target is None or len(given.args) < 2:
        return None
    whole, old, new = given.target.bounds, given.args[0].bounds, given.args[1].bounds
    most_count = least_count = most_kept = least_kept = 0
    if old.least == 0:
        most_count, most_kept = min(whole.most + 1, MOST), whole.most
    elif new.most <= old.least:
        most_kept = whole.most
    else:
        most_count = min(math.ceil(float(whole.most) / float(old.least)), MOST)
    if old.most == 0:
        least_count, least_kept = min(whole.least + 1, MOST), whole.least
    elif old.most <= new.least:
        least_kept = whole.least
    else:
        least_count = math.ceil(float(whole.least) / float(old.most))
    size = Bounds(least_count, most_count).times(new).plus(Bounds(least_kept, most_kept))
    return Estimate(whole.scaled(2 * TEXT), size)


def _split(given: Given) -> Estimate | None:
    if given.target is None:
        return None
    most = given.target.bounds.most
    if len(given.args) > 1 and (limit := _literal(given.args[1])) is not None:
        most = limit % 2**64
    return Estimate(given.target.bounds.scaled(2 * TEXT), Bounds(0, most))


def _join(given: Given) -> Estimate | None:
    if given.target is None:
        return None
    count = given.target.bounds
    size = count.times(given.target.element_size or UNKNOWN) if given.target.type.parameters else exactly(0)
    if given.args:
        between = Bounds(max(count.least - 1, 0), max(count.most - 1, 0))
        size = size.plus(given.args[0].bounds.times(between))
    return Estimate(size.scaled(TEXT), size)


def _find(given: Given) -> Estimate | None:
    if given.target is None or not given.args:
        return None
    cost = given.target.bounds.plus(ONE).scaled(TEXT).times(given.args[0].bounds.scaled(PATTERN))
    return Estimate(cost, Bounds(0, given.target.bounds.most))


def _address(given: Given) -> Estimate | None:
    return Estimate(ONE) if given.overload == "cidr_ip" else _reading()(given)


_ADDRESS_SIZE = Bounds(4, 16)


def _contains_address(given: Given) -> Estimate | None:
    if not given.args:
        return None
    cost = _ADDRESS_SIZE.plus(_ADDRESS_SIZE).scaled(TEXT)
    if given.overload == "cidr_contains_ip_string":
        cost = cost.plus(given.args[0].bounds.scaled(TEXT))
    return Estimate(cost)


def _contains_network(given: Given) -> Estimate | None:
    if not given.args:
        return None
    cost = _ADDRESS_SIZE.plus(_ADDRESS_SIZE).scaled(TEXT).plus(_ADDRESS_SIZE.scaled(TEXT)).plus(ONE)
    if given.overload == "cidr_contains_cidr_string":
        cost = cost.plus(given.args[0].bounds.scaled(TEXT))
    return Estimate(cost)


def _validate(given: Given) -> Estimate | None:
    return Estimate(given.args[0].bounds.scaled(TEXT).scaled(_FORMAT_PATTERN * PATTERN)) if given.args else None


def _equality(given: Given) -> Estimate | None:
    """Of values that libraries bring along."""
    left, right = given.args
    if left.type != right.type:
        return None
    if left.type.name in ("net.IP", "net.CIDR", "kubernetes.Quantity", "kubernetes.Semver"):
        return Estimate(ONE)
    if left.type.name == "kubernetes.NamedFormat":
        return Estimate(Bounds(1, _LONGEST_FORMAT_NAME).scaled(TEXT))
    if left.type.name == "kubernetes.URL":
        return Estimate(Bounds(1, 1 if right.size is None else right.size.most).scaled(TEXT))
    return None


BY_FUNCTION: dict[str, Estimator] = {
    **dict.fromkeys(("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf"), _traversal),
    "url": _reading(sized=True),
    **dict.fromkeys(("lowerAscii", "upperAscii", "substring", "trim"), _target_text),
    "replace": _replace,
    "split": _split,
    "join": _join,
    **dict.fromkeys(("find", "findAll"), _find),
    **dict.fromkeys(("cidr", "isIP", "isCIDR", "quantity", "isQuantity", "semver", "isSemver"), _reading()),
    "ip": _address,
    "ip.isCanonical": _reading(2 * TEXT),
    **dict.fromkeys(("masked", "prefixLength", "family", "isUnspecified", "isLoopback", "isLinkLocalMulticast"), _one),
    **dict.fromkeys(("isLinkLocalUnicast", "isGlobalUnicast", "format.named"), _one),
    "containsIP": _contains_address,
    "containsCIDR": _contains_network,
    "validate": _validate,
    **dict.fromkeys(("sign", "asInteger", "isInteger", "asApproximateFloat", "isGreaterThan", "isLessThan"), _one),
    **dict.fromkeys(("compareTo", "add", "sub", "major", "minor", "patch"), _one),
    **dict.fromkeys(("getScheme", "getHostname", "getHost", "getPort", "getEscapedPath", "getQuery"), _one),
    "_==_": _equality,
}
"""Kubernetes' functions, by name."""


def _literal(operand: Operand) -> int | None:
    """The number, where the argument is written as one."""
    node = operand.node
    return node.value if isinstance(node, Literal) and type(node.value) is int else None


def _allocating(factor: float, size: Bounds) -> Estimate:
    return Estimate(size.scaled(factor).plus(ONE).plus(exactly(LIST)), size)


def _slice(given: Given) -> Estimate | None:
    assert given.target is not None
    start, end = _literal(given.args[0]), _literal(given.args[1])
    first = max(start, 0) if start is not None else 0
    last = max(end, 0) if end is not None else given.target.bounds.most
    return _allocating(1, exactly((last - first) % 2**64))


def _range(given: Given) -> Estimate | None:
    count = _literal(given.args[0])
    return _allocating(1, exactly(MOST if count is None else max(count, 0)))


def _reverse(given: Given) -> Estimate | None:
    assert given.target is not None
    return _allocating(1, given.target.bounds)


def _flatten(given: Given) -> Estimate | None:
    assert given.target is not None
    depth: int | None = 1
    if given.args:
        depth = _literal(given.args[0])
    return _allocating(float(MOST if depth is None else max(depth, 0)), given.target.bounds)


def _distinct(given: Given) -> Estimate | None:
    assert given.target is not None
    return _allocating(2, given.target.bounds.times(given.target.bounds))


def _sort(given: Given) -> Estimate | None:
    keys = given.args[0] if given.args else given.target
    assert keys is not None
    factor = 2 + TEXT if given.overload.startswith(("list_string", "list_bytes")) else 2
    return _allocating(factor, keys.bounds.times(keys.bounds))


def _sets(factor: float) -> Estimator:
    def estimate(given: Given) -> Estimate | None:
        return Estimate(given.args[0].bounds.times(given.args[1].bounds).scaled(factor).plus(ONE))

    return estimate


_SORTED = ("int", "uint", "double", "bool", "google.protobuf.Duration", "google.protobuf.Timestamp", "string", "bytes")
BY_OVERLOAD: dict[str, Estimator] = {
    "dra_includes_dyn_dyn": lambda given: None if given.target is None else Estimate(Bounds(0, _MOST_INCLUDED)),
    "list_slice": _slice,
    "list_flatten": _flatten,
    "list_flatten_int": _flatten,
    "lists_range": _range,
    "list_reverse": _reverse,
    "list_distinct": _distinct,
    **{f"list_{of}_sort": _sort for of in _SORTED},
    **{f"list_{of}_sortByAssociatedKeys": _sort for of in _SORTED},
    "list_sets_contains_list": _sets(1),
    "list_sets_intersects_list": _sets(1),
    "list_sets_equivalent_list": _sets(2),
}
"""The extensions for lists and sets, which come before all others."""


def standard_estimate(overload: str, target: Operand | None, args: list[Operand]) -> Estimate:
    """Of cel-go's own functions; what is not here takes one step."""
    sizes = [each.bounds for each in args]
    match overload:
        case "string_format" if target is not None:
            return Estimate(target.bounds.scaled(TEXT))
        case "string_to_bytes":
            return Estimate(sizes[0].scaled(TEXT), Bounds(sizes[0].least, sizes[0].most * 4 % 2**64))
        case "bytes_to_string":
            return Estimate(sizes[0].scaled(TEXT), Bounds(sizes[0].least // 4, sizes[0].most))
        case "strings_quote":
            size = Bounds(sizes[0].least + 2, (sizes[0].most * 2 + 2) % 2**64)
            return Estimate(sizes[0].scaled(TEXT), size)
        case "starts_with_string" | "ends_with_string":
            return Estimate(sizes[0].scaled(TEXT))
        case "in_list":
            return Estimate(sizes[1].scaled(1))
        case "matches_string" if target is not None:
            return Estimate(target.bounds.plus(ONE).scaled(TEXT).times(sizes[0].scaled(PATTERN)))
        case "contains_string" if target is not None:
            return Estimate(target.bounds.scaled(TEXT).times(sizes[0].scaled(TEXT)))
        case "add_string" | "add_bytes":
            total = sizes[0].plus(sizes[1])
            return Estimate(total.scaled(TEXT), total)
        case "add_list":
            return Estimate(ONE, sizes[0].plus(sizes[1]))
        case "equals" | "not_equals":
            return Estimate(_smaller(sizes))
    if overload.endswith(("_string", "_bytes")) and overload.startswith(("less", "greater")):
        return Estimate(_smaller(sizes))
    return Estimate(ONE)


def _smaller(sizes: list[Bounds]) -> Bounds:
    most = min(sizes[0].most, sizes[1].most)
    return Bounds(1 if most > 0 else 0, most).scaled(TEXT)
