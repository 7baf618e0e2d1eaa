"""What the macros `transformMap` and `transformMapEntry` are made of."""

from __future__ import annotations

from typing import Any

from mooring.cel.declarations import Function, function, overload
from mooring.cel.errors import CelError
from mooring.cel.operators import shown
from mooring.cel.types import map_of, variable
from mooring.cel.values import GrowingMap, from_key, key_of

_K, _V = variable("K"), variable("V")
_MAP = map_of(_K, _V)


def _inserted(mapping: dict[Any, Any], key: Any, value: Any) -> dict[Any, Any]:
    if key_of(key) in mapping:
        raise CelError(f"insert failed: key {shown(key)} already exists")
    if type(mapping) is not GrowingMap:
        mapping = dict(mapping)
    mapping[key_of(key)] = value
    return mapping


def _updated(mapping: dict[Any, Any], more: dict[Any, Any]) -> dict[Any, Any]:
    for key, value in more.items():
        mapping = _inserted(mapping, from_key(key), value)
    return mapping


FUNCTIONS: list[Function] = [
    function(
        "cel.@mapInsert",
        overload("@mapInsert_map_key_value", (_MAP, _K, _V), _MAP, _inserted),
        overload("@mapInsert_map_map", (_MAP, _MAP), _MAP, _updated),
    ),
]
