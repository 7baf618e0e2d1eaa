"""Optional values: `optional.of(x)`, `a.?b.orValue(c)`, `list[?i]`."""

from __future__ import annotations

from typing import Any

from mooring.cel.declarations import Function, function, member, overload
from mooring.cel.errors import CelError
from mooring.cel.operators import shown
from mooring.cel.types import BOOL, DYN, INT, STRING, list_of, map_of, optional_of, variable
from mooring.cel.values import NONE, Optional, is_zero

_K, _V = variable("K"), variable("V")
_OPTIONAL, _LIST, _MAP = optional_of(_V), list_of(_V), map_of(_K, _V)
_OPTIONALS = list_of(_OPTIONAL)


def _non_zero(value: Any) -> Optional:
    return NONE if is_zero(value) else Optional(value)


def _none() -> Optional:
    return NONE


def _value(optional: Optional) -> Any:
    if not optional.present:
        raise CelError("optional.none() dereference")
    return optional.value


def _unwrapped(optionals: list[Any]) -> list[Any]:
    for each in optionals:
        if type(each) is not Optional:
            raise CelError(f"value {shown(each)} is not optional")
    return [each.value for each in optionals if each.present]


def _first(elements: list[Any]) -> Optional:
    return Optional(elements[0]) if elements else NONE


def _last(elements: list[Any]) -> Optional:
    return Optional(elements[-1]) if elements else NONE


FUNCTIONS: list[Function] = [
    function("optional.of", overload("optional_of", (_V,), _OPTIONAL, Optional)),
    function("optional.ofNonZeroValue", overload("optional_ofNonZeroValue", (_V,), _OPTIONAL, _non_zero)),
    function("optional.none", overload("optional_none", (), _OPTIONAL, _none)),
    function("value", member("optional_value", (_OPTIONAL,), _V, _value)),
    function("hasValue", member("optional_hasValue", (_OPTIONAL,), BOOL, lambda optional: optional.present)),
    # The planner runs these itself: their second argument is evaluated only where it is needed.
    function("or", member("optional_or_optional", (_OPTIONAL, _OPTIONAL), _OPTIONAL)),
    function("orValue", member("optional_orValue_value", (_OPTIONAL, _V), _V)),
    function("_?._", overload("select_optional_field", (DYN, STRING), _OPTIONAL)),
    function(
        "_[?_]",
        overload("list_optindex_optional_int", (_LIST, INT), _OPTIONAL),
        overload("optional_list_optindex_optional_int", (optional_of(_LIST), INT), _OPTIONAL),
        overload("map_optindex_optional_value", (_MAP, _K), _OPTIONAL),
        overload("optional_map_optindex_optional_value", (optional_of(_MAP), _K), _OPTIONAL),
    ),
    function(
        "_[_]",
        overload("optional_list_index_int", (optional_of(_LIST), INT), _OPTIONAL),
        overload("optional_map_index_value", (optional_of(_MAP), _K), _OPTIONAL),
    ),
    function("last", member("list_last", (_LIST,), _OPTIONAL, _last)),
    function("first", member("list_first", (_LIST,), _OPTIONAL, _first)),
    function("optional.unwrap", overload("optional_unwrap", (_OPTIONALS,), _LIST, _unwrapped)),
    function("unwrapOpt", member("optional_unwrapOpt", (_OPTIONALS,), _LIST, _unwrapped)),
]
