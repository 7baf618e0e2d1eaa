"""Structural schemas: prune what is unknown, fill in defaults, say what is wrong, with kube-apiserver's words."""

from __future__ import annotations

import re
from typing import Any

from mooring.apiserver.documents import Document, decode, encode, items_of
from mooring.apiserver.status import (
    MOST_ERRORS,
    FieldError,
    duplicate,
    invalid_value,
    required,
    too_large,
    unsupported,
)
from mooring.base.regex import BadPattern, compiled

_KEEP = "x-kubernetes-preserve-unknown-fields"
_INT_OR_STRING = "x-kubernetes-int-or-string"
_EMBEDDED = "x-kubernetes-embedded-resource"
_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
}
_NAMES: dict[type, str] = {
    dict: "object",
    list: "array",
    str: "string",
    bool: "boolean",
    int: "integer",
    float: "number",
}
_MOST_STEPS = 20_000_000
"""Of a regular expression over one value: a fifth of a second."""
_INSTRUCTIONS_AT_ONCE = 300
"""Instructions of a regular expression that cost as much as one pair of a value and a schema."""
_MOST_COMPARISONS = 300_000
"""Pairs of a value and a schema for one object: about a second. An object of a megabyte has a few 10,000 values."""
_COMPARED_AT_ONCE = 50
"""Values of an enumeration that cost as much as one pair."""
_MOST_DEFAULTED = 3 * 1024 * 1024
_LONGEST_PLACE = 1024
_DATE_TIME = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)")


class Place:
    """Where a value stands. Its text is made only for errors: a key may be long, and have many values below it."""

    __slots__ = ("_parent", "_part")

    def __init__(self, parent: Place | None = None, part: str | int = "") -> None:
        self._parent, self._part = parent, part

    def __str__(self) -> str:
        parts: list[str] = []
        here: Place | None = self
        while here is not None:
            parts.append(f"[{here._part}]" if isinstance(here._part, int) else f".{here._part}" if here._part else "")
            here = here._parent
        return "".join(reversed(parts)).removeprefix(".")[:_LONGEST_PLACE] or "<root>"


def prune(value: Any, schema: Document) -> list[str]:
    """Drop unknown fields of an object in place; returns the paths of the first of them."""
    dropped: list[Place] = []
    _prune(value, schema, Place(), dropped, is_root=True)
    return [str(place) for place in dropped]


def _prune(value: Any, schema: Document, place: Place, dropped: list[Place], *, is_root: bool = False) -> None:
    if isinstance(value, dict):
        keeps = schema.get(_KEEP) or (not schema.get("properties") and schema.get("type") is None)
        properties: Document = schema.get("properties") or {}
        additional = schema.get("additionalProperties")
        for key in list(value):
            if (is_root or schema.get(_EMBEDDED)) and key in ("apiVersion", "kind", "metadata"):
                continue
            if key in properties:
                _prune(value[key], properties[key], Place(place, key), dropped)
            elif isinstance(additional, dict):
                _prune(value[key], additional, Place(place, key), dropped)
            elif not additional and not keeps:
                del value[key]
                if len(dropped) < MOST_ERRORS:
                    dropped.append(Place(place, key))
    elif isinstance(value, list):
        items = schema.get("items")
        if isinstance(items, dict):
            for index, item in enumerate(value):
                _prune(item, items, Place(place, index), dropped)


def fill_defaults(value: Any, schema: Document) -> None:
    """Fill in defaults in place; a null where null is not allowed counts as absent."""
    _Defaulting().fill(value, schema)


class _Defaulting:
    """Defaults of one object. Together they are bounded: a list may ask for the same large default many times."""

    def __init__(self) -> None:
        self._bytes = 0

    def fill(self, value: Any, schema: Document) -> None:
        if isinstance(value, dict):
            for key, property in (schema.get("properties") or {}).items():
                is_null = key in value and value[key] is None and not property.get("nullable")
                if "default" in property and (key not in value or is_null):
                    value[key] = self._copied(property["default"])
                elif is_null:
                    del value[key]
                if key in value:
                    self.fill(value[key], property)
            additional = schema.get("additionalProperties")
            if isinstance(additional, dict):
                for key, item in value.items():
                    if key not in (schema.get("properties") or {}):
                        self.fill(item, additional)
        elif isinstance(value, list) and isinstance(schema.get("items"), dict):
            for item in value:
                self.fill(item, schema["items"])

    def _copied(self, default: Any) -> Any:
        encoded = encode(default)
        self._bytes += len(encoded)
        if self._bytes > _MOST_DEFAULTED:
            raise too_large(f"the defaults of the object's fields have more than {_MOST_DEFAULTED} bytes")
        return decode(encoded)


def check(value: Any, schema: Document) -> list[FieldError]:
    """What is wrong with a value; of many errors the first."""
    checking = _Checking(_Steps())
    try:
        checking.check(value, schema, Place())
    except _Enough:
        pass
    except _TooManySteps:
        sentence = "Invalid value: the object and its schema are too large to be compared; shorten one of them"
        checking.wrong.append(FieldError("<root>", "FieldValueInvalid", sentence))
    return checking.wrong


class _Enough(Exception):
    """There are errors enough to refuse the object."""


class _TooManySteps(Exception):
    """The check would take too long."""


class _Steps:
    """How much work a check may still do."""

    def __init__(self) -> None:
        self._left = _MOST_COMPARISONS

    def take(self, count: int) -> None:
        self._left -= count
        if self._left < 0:
            raise _TooManySteps


class _Checking:
    """One walk over a value and its schema."""

    def __init__(self, steps: _Steps) -> None:
        self.wrong: list[FieldError] = []
        self._steps = steps

    def _add(self, *errors: FieldError) -> None:
        self.wrong += errors
        if len(self.wrong) >= MOST_ERRORS:
            raise _Enough

    def _is_valid(self, value: Any, schema: Document, place: Place) -> bool:
        inner = _Checking(self._steps)
        try:
            inner.check(value, schema, place)
        except _Enough:
            return False
        return not inner.wrong

    def check(self, value: Any, schema: Document, place: Place) -> None:
        self._steps.take(1)
        if value is None:
            if schema.get("type") and not schema.get("nullable"):
                self._add(_wrong_type(str(place), schema["type"], "null"))
            return
        if schema.get(_INT_OR_STRING):
            if type(value) not in (int, str):
                self._add(_wrong_type(str(place), "integer,string", _NAMES.get(type(value), "unknown")))
                return
        elif schema.get("type") and not _is_of(value, schema["type"]):
            self._add(_wrong_type(str(place), schema["type"], _NAMES.get(type(value), "unknown")))
            return
        if "enum" in schema:
            self._steps.take(len(schema["enum"]) // _COMPARED_AT_ONCE)
            if value not in schema["enum"]:
                self._add(unsupported(str(place), value, [str(each) for each in schema["enum"][:MOST_ERRORS]]))
        if isinstance(value, str):
            self._add(*_check_text(value, schema, place, self._steps))
        elif isinstance(value, bool):
            pass
        elif isinstance(value, int | float):
            self._add(*_check_number(value, schema, place))
        elif isinstance(value, list):
            self._check_list(value, schema, place)
        elif isinstance(value, dict):
            self._check_object(value, schema, place)
        self._check_combined(value, schema, place)

    def _check_list(self, value: list[Any], schema: Document, place: Place) -> None:
        if len(value) < schema.get("minItems", 0):
            self._add(_says(place, len(value), f"should have at least {schema['minItems']} items"))
        if "maxItems" in schema and len(value) > schema["maxItems"]:
            sentence = f"Too many: {len(value)}: must have at most {schema['maxItems']} items"
            self._add(FieldError(str(place), "FieldValueTooMany", sentence))
        kind = schema.get("x-kubernetes-list-type")
        if kind in ("set", "map"):
            keys = items_of(schema, "x-kubernetes-list-map-keys")
            seen: set[bytes] = set()
            for index, item in enumerate(value):
                name = {key: item.get(key) for key in keys} if kind == "map" and isinstance(item, dict) else item
                identity = encode(name, order="sorted")
                if identity in seen:
                    self._add(duplicate(str(Place(place, index)), name))
                seen.add(identity)
        if isinstance(schema.get("items"), dict):
            for index, item in enumerate(value):
                self.check(item, schema["items"], Place(place, index))

    def _check_object(self, value: Document, schema: Document, place: Place) -> None:
        for name in items_of(schema, "required"):
            self._steps.take(1)
            if name not in value:
                self._add(required(str(Place(place, name))))
        if len(value) < schema.get("minProperties", 0):
            self._add(_says(place, len(value), f"should have at least {schema['minProperties']} properties"))
        if "maxProperties" in schema and len(value) > schema["maxProperties"]:
            sentence = f"Too many: {len(value)}: must have at most {schema['maxProperties']} items"
            self._add(FieldError(str(place), "FieldValueTooMany", sentence))
        properties, additional = schema.get("properties") or {}, schema.get("additionalProperties")
        for key, item in value.items():
            if key in properties:
                self.check(item, properties[key], Place(place, key))
            elif isinstance(additional, dict):
                self.check(item, additional, Place(place, key))

    def _check_combined(self, value: Any, schema: Document, place: Place) -> None:
        for each in items_of(schema, "allOf"):
            self.check(value, each, place)
        if (any_of := schema.get("anyOf")) and not any(self._is_valid(value, each, place) for each in any_of):
            self._add(_says(place, value, "must validate at least one schema (anyOf)"))
        if one_of := schema.get("oneOf"):
            matching = sum(self._is_valid(value, each, place) for each in one_of)
            if matching != 1:
                found = "Found none valid" if not matching else f"Found {matching} valid alternatives"
                self._add(_says(place, value, f"must validate one and only one schema (oneOf). {found}"))
        if isinstance(schema.get("not"), dict) and self._is_valid(value, schema["not"], place):
            self._add(_says(place, value, "must not validate the schema (not)"))


def _is_of(value: Any, name: str) -> bool:
    if isinstance(value, bool):
        return name == "boolean"
    if name == "integer" and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, _TYPES.get(name, (object,)))


def _wrong_type(path: str, expected: str, found: str) -> FieldError:
    return FieldError(
        path,
        "FieldValueTypeInvalid",
        f'Invalid value: "{found}": {path} in body must be of type {expected}: "{found}"',
    )


def _says(place: Place, value: Any, sentence: str) -> FieldError:
    return invalid_value(str(place), value, f"{place} in body {sentence}")


def _check_text(value: str, schema: Document, place: Place, steps: _Steps) -> list[FieldError]:
    wrong: list[FieldError] = []
    if len(value) < schema.get("minLength", 0):
        wrong.append(_says(place, value, f"should be at least {schema['minLength']} chars long"))
    if "maxLength" in schema and len(value) > schema["maxLength"]:
        sentence = f"Too long: may not be more than {schema['maxLength']} bytes"
        wrong.append(FieldError(str(place), "FieldValueTooLong", sentence))
    if schema.get("pattern"):
        wrong += _check_pattern(value, schema["pattern"], place, steps)
    if schema.get("format") == "date-time" and not _DATE_TIME.fullmatch(value):
        wrong.append(_says(place, value, f'must be of type date-time: "{value}"'))
    return wrong


def _check_pattern(value: str, pattern: str, place: Place, steps: _Steps) -> list[FieldError]:
    try:
        made = compiled(pattern)
    except BadPattern as problem:
        return [_says(place, value, f"cannot be checked: {problem}; repair the definition's pattern")]
    if made.steps(value) > _MOST_STEPS:
        return [_says(place, value[:64], f"is too long for its pattern '{pattern}': shorten one of them")]
    steps.take(made.steps(value) // _INSTRUCTIONS_AT_ONCE)
    return [] if made.is_in(value) else [_says(place, value, f"should match '{pattern}'")]


def _check_number(value: int | float, schema: Document, place: Place) -> list[FieldError]:
    wrong: list[FieldError] = []
    least, most = schema.get("minimum"), schema.get("maximum")
    if least is not None:
        if schema.get("exclusiveMinimum") and value <= least:
            wrong.append(_says(place, value, f"should be greater than {least}"))
        elif value < least:
            wrong.append(_says(place, value, f"should be greater than or equal to {least}"))
    if most is not None:
        if schema.get("exclusiveMaximum") and value >= most:
            wrong.append(_says(place, value, f"should be less than {most}"))
        elif value > most:
            wrong.append(_says(place, value, f"should be less than or equal to {most}"))
    if schema.get("multipleOf") and value % schema["multipleOf"]:
        wrong.append(_says(place, value, f"should be a multiple of {schema['multipleOf']}"))
    if schema.get("format") == "int32" and not -(2**31) <= value < 2**31:
        wrong.append(_says(place, value, f"must be of type int32: {value}"))
    return wrong
