"""Lists taken for sets: `sets.contains`, `sets.equivalent`, `sets.intersects`."""

from __future__ import annotations

from typing import Any

from mooring.cel.declarations import Function, function, overload
from mooring.cel.operators import contains
from mooring.cel.types import BOOL, list_of, variable

_LISTS = (list_of(variable("T")), list_of(variable("T")))


def _contains(whole: list[Any], part: list[Any]) -> bool:
    return all(contains(each, whole) for each in part)


def _equivalent(one: list[Any], other: list[Any]) -> bool:
    return _contains(one, other) and _contains(other, one)


def _intersects(one: list[Any], other: list[Any]) -> bool:
    return any(contains(each, other) for each in one)


FUNCTIONS: list[Function] = [
    function("sets.contains", overload("list_sets_contains_list", _LISTS, BOOL, _contains)),
    function("sets.equivalent", overload("list_sets_equivalent_list", _LISTS, BOOL, _equivalent)),
    function("sets.intersects", overload("list_sets_intersects_list", _LISTS, BOOL, _intersects)),
]
