"""CEL's standard functions and operators."""

from __future__ import annotations

from typing import Any

from mooring.cel import conversions, operators
from mooring.cel.declarations import Function, Implementation, Overload, function, member, overload
from mooring.cel.errors import NO_SUCH_OVERLOAD, CelError
from mooring.cel.regex import matches
from mooring.cel.times import DURATION_PARTS, TIMESTAMP_PARTS, timestamp_milliseconds
from mooring.cel.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    STRING,
    TIMESTAMP,
    UINT,
    Type,
    list_of,
    map_of,
    type_of,
    variable,
)

A, B = variable("A"), variable("B")
_LIST, _MAP = list_of(A), map_of(A, B)
_NUMBERS = {"int64": INT, "uint64": UINT, "double": DOUBLE}


def _without_implementation(*_: Any) -> Any:
    raise CelError(NO_SUCH_OVERLOAD)


def _not_strictly_false(value: Any) -> bool:
    return value is not False


def _comparison(operator: str, name: str, implementation: Implementation) -> Function:
    signatures: list[tuple[str, Type, Type]] = [(f"{name}_bool", BOOL, BOOL)]
    for left, left_type in _NUMBERS.items():
        signatures.append((f"{name}_{left}", left_type, left_type))
        signatures += [
            (f"{name}_{left}_{right}", left_type, right_type) for right, right_type in _NUMBERS.items() if right != left
        ]
    for kind, of in {"string": STRING, "bytes": BYTES, "timestamp": TIMESTAMP, "duration": DURATION}.items():
        signatures.append((f"{name}_{kind}", of, of))
    return function(
        operator,
        *(overload(id, (left, right), BOOL) for id, left, right in signatures),
        implementation=implementation,
    )


def _arithmetic(operator: str, name: str, kinds: str, implementation: Implementation) -> Function:
    return function(
        operator,
        *(overload(f"{name}_{kind}", (_NUMBERS[kind],) * 2, _NUMBERS[kind]) for kind in kinds.split()),
        implementation=implementation,
    )


def _both_styles(name: str, id: str, args: tuple[Type, ...], result: Type) -> list[Overload]:
    return [overload(id, args, result), member(f"{args[0].kind}_{name}", args, result)]


def _conversion(name: str, result: Type, implementation: Implementation, **sources: Type) -> Function:
    return function(name, *(overload(id, (of,), result, implementation) for id, of in sources.items()))


def _string_test(name: str, implementation: Implementation) -> Function:
    def test(text: Any, part: Any) -> Any:
        if type(text) is not str or type(part) is not str:
            raise CelError(NO_SUCH_OVERLOAD)
        return implementation(text, part)

    id = {"contains": "contains_string", "endsWith": "ends_with_string", "startsWith": "starts_with_string"}[name]
    return function(name, Overload(id, (STRING, STRING), BOOL, test, member=True, guarded=False))


def _time_function(name: str, id: str, implementation: Implementation) -> Function:
    signatures = [
        member(f"timestamp_to_{id}", (TIMESTAMP,), INT, implementation),
        member(f"timestamp_to_{id}_with_tz", (TIMESTAMP, STRING), INT, implementation),
    ]
    if name in DURATION_PARTS:
        signatures.append(member(f"duration_to_{id}", (DURATION,), INT, DURATION_PARTS[name]))
    return function(name, *signatures)


_TIME_IDS = {
    "getFullYear": "year",
    "getMonth": "month",
    "getDayOfYear": "day_of_year",
    "getDayOfMonth": "day_of_month",
    "getDate": "day_of_month_1_based",
    "getDayOfWeek": "day_of_week",
    "getHours": "hours",
    "getMinutes": "minutes",
    "getSeconds": "seconds",
}

FUNCTIONS: list[Function] = [
    function("_?_:_", overload("conditional", (BOOL, A, A), A), implementation=_without_implementation),
    function("_&&_", overload("logical_and", (BOOL, BOOL), BOOL), implementation=_without_implementation),
    function("_||_", overload("logical_or", (BOOL, BOOL), BOOL), implementation=_without_implementation),
    function("!_", overload("logical_not", (BOOL,), BOOL), implementation=operators.negated),
    function("@not_strictly_false", overload("not_strictly_false", (BOOL,), BOOL, _not_strictly_false)),
    function("_==_", overload("equals", (A, A), BOOL), implementation=_without_implementation),
    function("_!=_", overload("not_equals", (A, A), BOOL), implementation=_without_implementation),
    function(
        "_+_",
        overload("add_bytes", (BYTES, BYTES), BYTES),
        overload("add_double", (DOUBLE, DOUBLE), DOUBLE),
        overload("add_duration_duration", (DURATION, DURATION), DURATION),
        overload("add_duration_timestamp", (DURATION, TIMESTAMP), TIMESTAMP),
        overload("add_timestamp_duration", (TIMESTAMP, DURATION), TIMESTAMP),
        overload("add_int64", (INT, INT), INT),
        overload("add_list", (_LIST, _LIST), _LIST),
        overload("add_string", (STRING, STRING), STRING),
        overload("add_uint64", (UINT, UINT), UINT),
        implementation=operators.add,
    ),
    _arithmetic("_/_", "divide", "double int64 uint64", operators.divide),
    _arithmetic("_%_", "modulo", "int64 uint64", operators.modulo),
    _arithmetic("_*_", "multiply", "double int64 uint64", operators.multiply),
    function(
        "-_",
        overload("negate_double", (DOUBLE,), DOUBLE),
        overload("negate_int64", (INT,), INT),
        implementation=operators.negate,
    ),
    function(
        "_-_",
        overload("subtract_double", (DOUBLE, DOUBLE), DOUBLE),
        overload("subtract_duration_duration", (DURATION, DURATION), DURATION),
        overload("subtract_int64", (INT, INT), INT),
        overload("subtract_timestamp_duration", (TIMESTAMP, DURATION), TIMESTAMP),
        overload("subtract_timestamp_timestamp", (TIMESTAMP, TIMESTAMP), DURATION),
        overload("subtract_uint64", (UINT, UINT), UINT),
        implementation=operators.subtract,
    ),
    _comparison("_<_", "less", operators.less),
    _comparison("_<=_", "less_equals", operators.less_equals),
    _comparison("_>_", "greater", operators.greater),
    _comparison("_>=_", "greater_equals", operators.greater_equals),
    function(
        "_[_]",
        overload("index_list", (_LIST, INT), A),
        overload("index_map", (_MAP, A), B),
        implementation=operators.look_up,
    ),
    function(
        "@in",
        overload("in_list", (A, _LIST), BOOL),
        overload("in_map", (A, _MAP), BOOL),
        implementation=operators.contains,
    ),
    function(
        "size",
        *(
            signature
            for of in (BYTES, _LIST, _MAP, STRING)
            for signature in _both_styles("size", f"size_{of.kind}", (of,), INT)
        ),
        implementation=operators.size,
    ),
    function("type", overload("type", (A,), type_of(A)), implementation=operators.type_value),
    _conversion("bool", BOOL, conversions.to_bool, bool_to_bool=BOOL, string_to_bool=STRING),
    _conversion("bytes", BYTES, conversions.to_bytes, bytes_to_bytes=BYTES, string_to_bytes=STRING),
    _conversion(
        "double",
        DOUBLE,
        conversions.to_double,
        double_to_double=DOUBLE,
        int64_to_double=INT,
        string_to_double=STRING,
        uint64_to_double=UINT,
    ),
    _conversion(
        "duration",
        DURATION,
        conversions.to_duration,
        duration_to_duration=DURATION,
        int64_to_duration=INT,
        string_to_duration=STRING,
    ),
    function("dyn", overload("to_dyn", (A,), DYN), implementation=lambda value: value),
    _conversion(
        "int",
        INT,
        conversions.to_int,
        int64_to_int64=INT,
        double_to_int64=DOUBLE,
        duration_to_int64=DURATION,
        string_to_int64=STRING,
        timestamp_to_int64=TIMESTAMP,
        uint64_to_int64=UINT,
    ),
    _conversion(
        "string",
        STRING,
        conversions.to_string,
        string_to_string=STRING,
        bool_to_string=BOOL,
        bytes_to_string=BYTES,
        double_to_string=DOUBLE,
        duration_to_string=DURATION,
        int64_to_string=INT,
        timestamp_to_string=TIMESTAMP,
        uint64_to_string=UINT,
    ),
    _conversion(
        "timestamp",
        TIMESTAMP,
        conversions.to_timestamp,
        timestamp_to_timestamp=TIMESTAMP,
        int64_to_timestamp=INT,
        string_to_timestamp=STRING,
    ),
    _conversion(
        "uint",
        UINT,
        conversions.to_uint,
        uint64_to_uint64=UINT,
        double_to_uint64=DOUBLE,
        int64_to_uint64=INT,
        string_to_uint64=STRING,
    ),
    _string_test("contains", lambda text, part: part in text),
    _string_test("endsWith", str.endswith),
    _string_test("startsWith", str.startswith),
    function(
        "matches",
        overload("matches", (STRING, STRING), BOOL),
        member("matches_string", (STRING, STRING), BOOL),
        implementation=matches,
    ),
    *(_time_function(name, id, TIMESTAMP_PARTS[name]) for name, id in _TIME_IDS.items()),
    _time_function("getMilliseconds", "milliseconds", timestamp_milliseconds),
]
