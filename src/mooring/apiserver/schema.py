"""Types of built-in kinds, from the generated table: unknown fields, wrong types, canonical quantities.

One walk checks a document against its type, drops nulls and unknown fields as a typed decoder does, and writes
quantities in their canonical form. Types are built on first use.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache, lru_cache
from typing import Any

from mooring.apiserver.documents import Document
from mooring.apiserver.resources import read_table
from mooring.apiserver.status import MAX_ERRORS
from mooring.base.clock import parse_timestamp
from mooring.objects.quantity import BINARY, DECIMAL, BadQuantity, exact, notation

QUANTITY_SENTENCE = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
MAX_STRUCTS = 50_000
"""In one document of a built-in kind. One that is not all punctuation reaches etcd's limit of bytes first."""
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")


class WrongType(Exception):
    """A value that a typed decoder rejects; `sentence` has its path and the reason."""

    def __init__(self, sentence: str) -> None:
        self.sentence = sentence
        super().__init__(sentence)


_NOTHING = object()


class Walk:
    """One walk over one document: the current path, and the unknown fields found."""

    __slots__ = ("path", "structs", "unknown")

    def __init__(self) -> None:
        self.structs = 0
        self.path: list[str] = []
        self.unknown: list[str] = []

    def where(self) -> str:
        return "".join(self.path).removeprefix(".")

    def wrong_type(self, value: Any, expected: str) -> WrongType:
        found = {str: "string", bool: "bool", int: "number", float: "number", dict: "object", list: "array"}
        return WrongType(
            f"json: cannot unmarshal {found.get(type(value), 'value')} into Go struct field {self.where()}"
            f" of type {expected}"
        )


class ApiType:
    """A type of the API. `coerce` returns the value as stored, or raises WrongType.

    A typed encoder leaves out an empty list or map; an empty struct (`emptyDir: {}`) means something.
    """

    left_out: Any = _NOTHING

    def coerce(self, value: Any, walk: Walk) -> Any:
        return value


class TextType(ApiType):
    def coerce(self, value: Any, walk: Walk) -> Any:
        if type(value) is not str:
            raise walk.wrong_type(value, "string")
        return value


class BytesType(TextType):
    """Base64 in JSON, plain bytes in protobuf."""


class BooleanType(ApiType):
    def coerce(self, value: Any, walk: Walk) -> Any:
        if type(value) is not bool:
            raise walk.wrong_type(value, "bool")
        return value


class NumberType(ApiType):
    def coerce(self, value: Any, walk: Walk) -> Any:
        if type(value) not in (int, float):
            raise walk.wrong_type(value, "float64")
        return value


class IntegerType(ApiType):
    def __init__(self, bits: int) -> None:
        self.bits = bits

    def coerce(self, value: Any, walk: Walk) -> Any:
        if type(value) is float and value.is_integer():
            value = int(value)
        if type(value) is not int or not -(1 << (self.bits - 1)) <= value < 1 << (self.bits - 1):
            raise walk.wrong_type(value, f"int{self.bits}")
        return value


class IntOrStringType(ApiType):
    def coerce(self, value: Any, walk: Walk) -> Any:
        if type(value) not in (int, str):
            raise walk.wrong_type(value, "intstr.IntOrString")
        return value


class TimeType(ApiType):
    def coerce(self, value: Any, walk: Walk) -> Any:
        if type(value) is str and _TIME.fullmatch(value):
            try:
                parse_timestamp(value)
            except ValueError:
                pass
            else:
                return value
        raise WrongType(f'{walk.where()}: parsing time "{value}" as "2006-01-02T15:04:05Z07:00": cannot parse')


class MicroTimeType(TimeType):
    """A time with microseconds."""


class QuantityType(ApiType):
    def coerce(self, value: Any, walk: Walk) -> Any:
        if type(value) not in (str, int, float):
            raise walk.wrong_type(value, "resource.Quantity")
        try:
            return canonical_quantity(value)
        except BadQuantity:
            raise WrongType(f"{walk.where()}: {QUANTITY_SENTENCE}") from None


class ListType(ApiType):
    left_out = []

    def __init__(self, of: ApiType, merge_key: str | None = None, strategy: str | None = None) -> None:
        self.of = of
        self.merge_key = merge_key
        self.merges = "merge" in (strategy or "")

    def coerce(self, value: Any, walk: Walk) -> Any:
        if type(value) is not list:
            raise walk.wrong_type(value, "slice")
        coerce, path = self.of.coerce, walk.path
        coerced = []
        path.append("")
        for index, item in enumerate(value):
            path[-1] = f"[{index}]"
            coerced.append(coerce(item, walk))
        path.pop()
        return coerced


class MapType(ApiType):
    left_out = {}

    def __init__(self, of: ApiType) -> None:
        self.of = of

    def coerce(self, value: Any, walk: Walk) -> Any:
        if type(value) is not dict:
            raise walk.wrong_type(value, "map")
        coerce, path = self.of.coerce, walk.path
        path.append("")
        for key, item in value.items():
            path[-1] = f"[{key}]"
            value[key] = coerce(item, walk)
        path.pop()
        return value


class StructType(ApiType):
    """An object with known fields."""

    def __init__(self, name: str, compact: Document) -> None:
        self.name = name
        self.required: list[str] = compact.get("required", [])
        self.numbers: Document = compact.get("numbers", {})
        self._compact: Document = compact["fields"]
        self._fields: dict[str, ApiType] | None = None

    @property
    def fields(self) -> dict[str, ApiType]:
        if self._fields is None:
            self._fields = {field: _built(compact) for field, compact in self._compact.items()}
        return self._fields

    def coerce(self, value: Any, walk: Walk) -> Any:
        if type(value) is not dict:
            raise walk.wrong_type(value, self.name.rsplit(".", 1)[1])
        walk.structs += 1
        if walk.structs > MAX_STRUCTS:
            raise WrongType(f"{walk.where()}: the object has more than {MAX_STRUCTS} objects in it")
        fields, path = self.fields, walk.path
        gone: list[str] = []
        path.append("")
        for key, item in value.items():
            kind = fields.get(key)
            path[-1] = "." + key
            if kind is None:
                if len(walk.unknown) <= MAX_ERRORS:
                    walk.unknown.append(walk.where())
                gone.append(key)
            elif item is None or (not item and item == kind.left_out and key not in self.required):
                gone.append(key)
            else:
                value[key] = kind.coerce(item, walk)
        path.pop()
        for key in gone:
            del value[key]
        return value


_SCALARS: dict[str, ApiType] = {
    "string": TextType(),
    "bytes": BytesType(),
    "boolean": BooleanType(),
    "number": NumberType(),
    "int32": IntegerType(32),
    "int64": IntegerType(64),
    "quantity": QuantityType(),
    "int-or-string": IntOrStringType(),
    "time": TimeType(),
    "micro-time": MicroTimeType(),
    "any": ApiType(),
}


@cache
def schema_table() -> Document:
    table: Document = read_table("schemas")
    return table


def _built(compact: Any) -> ApiType:
    if isinstance(compact, str):
        return schema_of(compact[1:]) if compact.startswith("@") else _SCALARS[compact]
    match compact[0]:
        case "list":
            key, strategy = compact[2:4] if len(compact) > 2 else (None, None)
            return ListType(_built(compact[1]), key, strategy)
        case "map":
            return MapType(_built(compact[1]))
        case _:
            return _built(compact[1])


@cache
def schema_of(type_name: str) -> StructType:
    return StructType(type_name, schema_table()[type_name])


def coerce(document: Document, type_name: str) -> list[str]:
    """Check and normalise a document in place; returns the unknown fields that were dropped."""
    walk = Walk()
    schema_of(type_name).coerce(document, walk)
    return walk.unknown


def missing(document: Document, type_name: str) -> list[str]:
    """Paths of absent fields that the type requires, outside metadata and status; of many the first."""
    found: list[str] = []
    kind = schema_of(type_name)
    for field, of in kind.fields.items():
        if field not in ("metadata", "status", "apiVersion", "kind") and field in document:
            _missing(document[field], of, [field], found)
    return [*(name for name in kind.required if name not in document), *found]


def _missing(value: Any, kind: ApiType, path: list[str], found: list[str]) -> None:
    """`path` is joined only where something is missing: a key may be long, and have many values below it."""
    inner: Iterable[tuple[str, Any, ApiType]] = ()
    if isinstance(kind, ListType):
        inner = ((f"[{index}]", item, kind.of) for index, item in enumerate(value))
    elif isinstance(kind, MapType):
        inner = ((f"[{key}]", item, kind.of) for key, item in value.items())
    elif isinstance(kind, StructType):
        for name in kind.required:
            if value.get(name) in (None, "") and len(found) <= MAX_ERRORS:
                found.append(f"{''.join(path)}.{name}")
        inner = ((f".{key}", item, kind.fields[key]) for key, item in value.items() if key in kind.fields)
    path.append("")
    for part, item, of in inner:
        if len(found) > MAX_ERRORS:
            break
        path[-1] = part
        _missing(item, of, path, found)
    path.pop()


_SUFFIXES = {exponent: suffix for suffix, exponent in DECIMAL.items()}
_BINARY_SUFFIXES = ["", *BINARY]
_FINEST, _LARGEST_SUFFIX = -9, 18
_INT32 = 2**31


@lru_cache(maxsize=65_536)
def canonical_quantity(given: str | int | float) -> str:
    """The quantity as Kubernetes writes it: no fraction, the largest suffix that fits, its own family."""
    read = notation(given)
    if read.is_scientific and not -_INT32 <= read.exponent < _INT32:
        raise BadQuantity(given)
    sign = "-" if read.is_negative else ""
    if read.doublings:
        value = abs(exact(given))
        if value >= 1024 and value.denominator == 1:
            number, step = int(value), 0
            while number % 1024 == 0 and step < len(_BINARY_SUFFIXES) - 1:
                number, step = number // 1024, step + 1
            return f"{sign}{number}{_BINARY_SUFFIXES[step]}"
        digits, exponent = int(value * 10**-_FINEST), _FINEST
    else:
        digits, exponent = read.digits, read.exponent
        if exponent < _FINEST:
            # Rounded up. More places than there are digits leave one billionth.
            places = min(_FINEST - exponent, len(str(digits)) + 1)
            digits, exponent = -(-digits // 10**places), _FINEST
    if not digits:
        return "0"
    text = str(digits)
    kept = text.rstrip("0")
    exponent += len(text) - len(kept)
    least = exponent - exponent % 3 if read.is_scientific else min(exponent - exponent % 3, _LARGEST_SUFFIX)
    shown = kept + "0" * (exponent - least)
    if read.is_scientific:
        return f"{sign}{shown}e{least}" if least else sign + shown
    return f"{sign}{shown}{_SUFFIXES[least]}"
