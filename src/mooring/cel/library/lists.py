"""List functions: Kubernetes' (isSorted, sum, min, max, indexOf) CEL's extension (sort, slice, distinct, …), sets."""

from __future__ import annotations

from collections.abc import Callable
from functools import cmp_to_key
from itertools import pairwise
from typing import Any

from mooring.cel.budget import PER_CALL, PER_COMPARISON, PER_ELEMENT, spend
from mooring.cel.declarations import Function, Implementation, function, member, overload
from mooring.cel.errors import NO_SUCH_OVERLOAD, CelError
from mooring.cel.operators import add, contains
from mooring.cel.types import BOOL, BYTES, DOUBLE, DURATION, DYN, INT, STRING, TIMESTAMP, UINT, Type, list_of, variable
from mooring.cel.values import Duration, Uint, compare, is_list, same, type_name, type_of

_COMPARABLE = {
    "int": INT,
    "uint": UINT,
    "double": DOUBLE,
    "bool": BOOL,
    "duration": DURATION,
    "timestamp": TIMESTAMP,
    "string": STRING,
    "bytes": BYTES,
}
_ZEROS: dict[str, Any] = {"int": 0, "uint": Uint(0), "double": 0.0, "duration": Duration(0)}
_A, _T = variable("A"), variable("T")
_LIST = list_of(_T)
_TWO_LISTS = (_LIST, _LIST)


def _order(one: Any, other: Any) -> int | None:
    """None where there is no order: upstream then goes on as if nothing was wrong."""
    try:
        return compare(one, other)
    except CelError:
        return None


def _is_sorted(elements: list[Any]) -> bool:
    return not any(_order(one, other) == 1 for one, other in pairwise(elements))


def _sum_from(zero: Any) -> Implementation:
    def total(elements: list[Any]) -> Any:
        result = zero
        for each in elements:
            result = add(result, each)
        return result

    return total


def _best(name: str, replaced_at: int) -> Implementation:
    def best(elements: list[Any]) -> Any:
        if not elements:
            raise CelError(f"{name} called on empty list")
        found = elements[0]
        for each in elements[1:]:
            if _order(found, each) == replaced_at:
                found = each
        return found

    return best


def _index_of(elements: list[Any], item: Any) -> int:
    return next((at for at, each in enumerate(elements) if same(each, item)), -1)


def _last_index_of(elements: list[Any], item: Any) -> int:
    return next((at for at in range(len(elements) - 1, -1, -1) if same(elements[at], item)), -1)


def _slice(elements: list[Any], start: int, end: int) -> list[Any]:
    what = f"cannot slice({start}, {end})"
    if start < 0 or end < 0:
        raise CelError(f"{what}, negative indexes not supported")
    if start > end:
        raise CelError(f"{what}, start index must be less than or equal to end index")
    if len(elements) < end:
        raise CelError(f"{what}, list is length {len(elements)}")
    return list(elements[start:end])


def _flatten(elements: Any, depth: Any = 1) -> list[Any]:
    if not is_list(elements):
        raise CelError(f"{NO_SUCH_OVERLOAD}: {type_name(elements)}.flatten()")
    if type(depth) is not int:
        raise CelError(f"{NO_SUCH_OVERLOAD}: {type_name(elements)}.flatten({type_name(depth)})")
    if depth < 0:
        raise CelError("level must be non-negative")
    spend(PER_CALL + len(elements) * PER_ELEMENT)
    flat: list[Any] = []
    for each in elements:
        flat += _flatten(each, depth - 1) if is_list(each) and depth > 0 else [each]
    return flat


def _sort(elements: Any) -> list[Any]:
    if not is_list(elements):
        raise CelError(f"{NO_SUCH_OVERLOAD}: sort")
    return _sort_by(elements, elements)


_ORDERED_KINDS = frozenset(_COMPARABLE)


def _sort_by(elements: Any, keys: list[Any]) -> list[Any]:
    if not is_list(elements):
        raise CelError(f"{NO_SUCH_OVERLOAD}: @sortByAssociatedKeys")
    if len(elements) != len(keys):
        raise CelError(
            "@sortByAssociatedKeys() expected a list of the same size as the associated keys list, but got "
            f"{len(elements)} and {len(keys)} elements respectively"
        )
    if not elements:
        return list(elements)
    kind = type_of(keys[0])
    if kind.kind not in _ORDERED_KINDS:
        raise CelError("list elements must be comparable")
    if len(keys) > 1 and any(type_of(each) != kind for each in keys):
        raise CelError("list elements must have the same type")

    def by_keys(one: int, other: int) -> int:
        return _order(keys[one], keys[other]) or 0

    spend(len(keys) * len(keys).bit_length() * PER_COMPARISON)
    order = sorted(range(len(keys)), key=cmp_to_key(by_keys))
    return [elements[at] for at in order]


_LONGEST_RANGE = 10_000_000
"""Beyond it, the memory is gone before the budget is."""


def _range(count: int) -> list[int]:
    if count > _LONGEST_RANGE:
        raise CelError(f"lists.range({count}) is longer than {_LONGEST_RANGE}")
    spend(count * PER_ELEMENT)
    return list(range(count))


def _distinct(elements: list[Any]) -> list[Any]:
    unique: list[Any] = []
    for each in elements:
        spend(len(unique) * PER_COMPARISON)
        if not any(same(each, other) for other in unique):
            unique.append(each)
    return unique


def _per_type(
    name: str,
    id: str,
    kinds: dict[str, Type],
    result: Callable[[Type], Type],
    implementation: Callable[[str], Implementation],
) -> Function:
    return function(
        name,
        *(member(id.format(kind), (list_of(of),), result(of), implementation(kind)) for kind, of in kinds.items()),
    )


def _contains(whole: list[Any], part: list[Any]) -> bool:
    return all(contains(each, whole) for each in part)


def _equivalent(one: list[Any], other: list[Any]) -> bool:
    return _contains(one, other) and _contains(other, one)


def _intersects(one: list[Any], other: list[Any]) -> bool:
    return any(contains(each, other) for each in one)


_SUMMABLE = {kind: _COMPARABLE[kind] for kind in _ZEROS}

KUBERNETES: list[Function] = [
    _per_type("isSorted", "list_{}_is_sorted_bool", _COMPARABLE, lambda _: BOOL, lambda _: _is_sorted),
    _per_type("sum", "list_{0}_sum_{0}", _SUMMABLE, lambda of: of, lambda kind: _sum_from(_ZEROS[kind])),
    _per_type("max", "list_{0}_max_{0}", _COMPARABLE, lambda of: of, lambda _: _best("max", -1)),
    _per_type("min", "list_{0}_min_{0}", _COMPARABLE, lambda of: of, lambda _: _best("min", 1)),
    function("indexOf", member("list_a_index_of_int", (list_of(_A), _A), INT, _index_of)),
    function("lastIndexOf", member("list_a_last_index_of_int", (list_of(_A), _A), INT, _last_index_of)),
]

EXTENSION: list[Function] = [
    function("slice", member("list_slice", (_LIST, INT, INT), _LIST, _slice)),
    function(
        "flatten",
        member("list_flatten", (list_of(_LIST),), _LIST, _flatten).unguarded(),
        member("list_flatten_int", (list_of(DYN), INT), list_of(DYN), _flatten).unguarded(),
    ),
    function(
        "sort",
        *(member(f"list_{of.name}_sort", (list_of(of),), list_of(of)) for of in _COMPARABLE.values()),
        implementation=_sort,
    ),
    function(
        "@sortByAssociatedKeys",
        *(member(f"list_{of.name}_sortByAssociatedKeys", (_LIST, list_of(of)), _LIST) for of in _COMPARABLE.values()),
        implementation=_sort_by,
    ),
    function("lists.range", overload("lists_range", (INT,), list_of(INT), _range)),
    function("reverse", member("list_reverse", (_LIST,), _LIST, lambda elements: list(reversed(elements)))),
    function("distinct", member("list_distinct", (_LIST,), _LIST, _distinct)),
]

SETS: list[Function] = [
    function("sets.contains", overload("list_sets_contains_list", _TWO_LISTS, BOOL, _contains)),
    function("sets.equivalent", overload("list_sets_equivalent_list", _TWO_LISTS, BOOL, _equivalent)),
    function("sets.intersects", overload("list_sets_intersects_list", _TWO_LISTS, BOOL, _intersects)),
]
