"""Structural schemas: pruning, defaulting and validation, with kube-apiserver's messages."""

from __future__ import annotations

import re
from typing import Any

from mooring.apiserver.documents import Document, decode, encode, items_of
from mooring.apiserver.status import (
    MAX_ERRORS,
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
_MAX_STEPS = 20_000_000
"""Of a regular expression over one value: a fifth of a second."""
_INSTRUCTIONS_AT_ONCE = 300
"""Instructions of a regular expression that cost as much as one pair of a value and a schema."""
_MAX_COMPARISONS = 300_000
"""Pairs of a value and a schema for one object: about a second. An object of a megabyte has a few 10,000 values."""
_COMPARED_AT_ONCE = 50
"""Values of an enumeration that cost as much as one pair."""
_MAX_DEFAULTED = 3 * 1024 * 1024
_MAX_PATH_LENGTH = 1024
_DATE_TIME = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)")


class FieldPath:
    """The path of a value, rendered only for errors: a key may be long, and have many values below it."""

    __slots__ = ("_parent", "_part")

    def __init__(self, parent: FieldPath | None = None, part: str | int = "") -> None:
        self._parent, self._part = parent, part

    def __str__(self) -> str:
        parts: list[str] = []
        here: FieldPath | None = self
        while here is not None:
            parts.append(f"[{here._part}]" if isinstance(here._part, int) else f".{here._part}" if here._part else "")
            here = here._parent
        return "".join(reversed(parts)).removeprefix(".")[:_MAX_PATH_LENGTH] or "<root>"


def prune(value: Any, schema: Document) -> list[str]:
    """Drop unknown fields of an object in place; returns the paths of the first of them."""
    dropped: list[FieldPath] = []
    _prune(value, schema, FieldPath(), dropped, is_root=True)
    return [str(path) for path in dropped]


def _prune(value: Any, schema: Document, path: FieldPath, dropped: list[FieldPath], *, is_root: bool = False) -> None:
    if isinstance(value, dict):
        keeps = schema.get(_KEEP) or (not schema.get("properties") and schema.get("type") is None)
        properties: Document = schema.get("properties") or {}
        additional = schema.get("additionalProperties")
        for key in list(value):
            if (is_root or schema.get(_EMBEDDED)) and key in ("apiVersion", "kind", "metadata"):
                continue
            if key in properties:
                _prune(value[key], properties[key], FieldPath(path, key), dropped)
            elif isinstance(additional, dict):
                _prune(value[key], additional, FieldPath(path, key), dropped)
            elif not additional and not keeps:
                del value[key]
                if len(dropped) < MAX_ERRORS:
                    dropped.append(FieldPath(path, key))
    elif isinstance(value, list):
        items = schema.get("items")
        if isinstance(items, dict):
            for index, item in enumerate(value):
                _prune(item, items, FieldPath(path, index), dropped)


def fill_defaults(value: Any, schema: Document) -> None:
    """Apply defaults in place; a null of a field that is not nullable counts as absent."""
    _Defaulting().fill(value, schema)


class _Defaulting:
    """Defaults of one object. Their total size is bounded: the items of a list may all have the same large default."""

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
        if self._bytes > _MAX_DEFAULTED:
            raise too_large(f"the defaults of the object's fields have more than {_MAX_DEFAULTED} bytes")
        return decode(encoded)


def check(value: Any, schema: Document) -> list[FieldError]:
    """Validate a value against its schema; of many errors the first."""
    validation = _Validation(_Steps())
    try:
        validation.check(value, schema, FieldPath())
    except _Enough:
        pass
    except _TooManySteps:
        sentence = "Invalid value: the object and its schema are too large to be compared; shorten one of them"
        validation.errors.append(FieldError("<root>", "FieldValueInvalid", sentence))
    return validation.errors


class _Enough(Exception):
    """There are enough errors to reject the object."""


class _TooManySteps(Exception):
    """The validation would take too long."""


class _Steps:
    """The work that a validation may still do."""

    def __init__(self) -> None:
        self._left = _MAX_COMPARISONS

    def spend(self, count: int) -> None:
        self._left -= count
        if self._left < 0:
            raise _TooManySteps


class _Validation:
    """One walk over a value and its schema."""

    def __init__(self, steps: _Steps) -> None:
        self.errors: list[FieldError] = []
        self._steps = steps

    def _add(self, *errors: FieldError) -> None:
        self.errors += errors
        if len(self.errors) >= MAX_ERRORS:
            raise _Enough

    def _is_valid(self, value: Any, schema: Document, path: FieldPath) -> bool:
        inner = _Validation(self._steps)
        try:
            inner.check(value, schema, path)
        except _Enough:
            return False
        return not inner.errors

    def check(self, value: Any, schema: Document, path: FieldPath) -> None:
        self._steps.spend(1)
        if value is None:
            if schema.get("type") and not schema.get("nullable"):
                self._add(_wrong_type(str(path), schema["type"], "null"))
            return
        if schema.get(_INT_OR_STRING):
            if type(value) not in (int, str):
                self._add(_wrong_type(str(path), "integer,string", _NAMES.get(type(value), "unknown")))
                return
        elif schema.get("type") and not _is_of(value, schema["type"]):
            self._add(_wrong_type(str(path), schema["type"], _NAMES.get(type(value), "unknown")))
            return
        if "enum" in schema:
            self._steps.spend(len(schema["enum"]) // _COMPARED_AT_ONCE)
            if value not in schema["enum"]:
                self._add(unsupported(str(path), value, [str(each) for each in schema["enum"][:MAX_ERRORS]]))
        if isinstance(value, str):
            self._add(*_check_text(value, schema, path, self._steps))
        elif isinstance(value, bool):
            pass
        elif isinstance(value, int | float):
            self._add(*_check_number(value, schema, path))
        elif isinstance(value, list):
            self._check_list(value, schema, path)
        elif isinstance(value, dict):
            self._check_object(value, schema, path)
        self._check_combined(value, schema, path)

    def _check_list(self, value: list[Any], schema: Document, path: FieldPath) -> None:
        if len(value) < schema.get("minItems", 0):
            self._add(_in_body(path, len(value), f"should have at least {schema['minItems']} items"))
        if "maxItems" in schema and len(value) > schema["maxItems"]:
            sentence = f"Too many: {len(value)}: must have at most {schema['maxItems']} items"
            self._add(FieldError(str(path), "FieldValueTooMany", sentence))
        kind = schema.get("x-kubernetes-list-type")
        if kind in ("set", "map"):
            keys = items_of(schema, "x-kubernetes-list-map-keys")
            seen: set[bytes] = set()
            for index, item in enumerate(value):
                name = {key: item.get(key) for key in keys} if kind == "map" and isinstance(item, dict) else item
                identity = encode(name, order="sorted")
                if identity in seen:
                    self._add(duplicate(str(FieldPath(path, index)), name))
                seen.add(identity)
        if isinstance(schema.get("items"), dict):
            for index, item in enumerate(value):
                self.check(item, schema["items"], FieldPath(path, index))

    def _check_object(self, value: Document, schema: Document, path: FieldPath) -> None:
        for name in items_of(schema, "required"):
            self._steps.spend(1)
            if name not in value:
                self._add(required(str(FieldPath(path, name))))
        if len(value) < schema.get("minProperties", 0):
            self._add(_in_body(path, len(value), f"should have at least {schema['minProperties']} properties"))
        if "maxProperties" in schema and len(value) > schema["maxProperties"]:
            sentence = f"Too many: {len(value)}: must have at most {schema['maxProperties']} items"
            self._add(FieldError(str(path), "FieldValueTooMany", sentence))
        properties, additional = schema.get("properties") or {}, schema.get("additionalProperties")
        for key, item in value.items():
            if key in properties:
                self.check(item, properties[key], FieldPath(path, key))
            elif isinstance(additional, dict):
                self.check(item, additional, FieldPath(path, key))

    def _check_combined(self, value: Any, schema: Document, path: FieldPath) -> None:
        for each in items_of(schema, "allOf"):
            self.check(value, each, path)
        if (any_of := schema.get("anyOf")) and not any(self._is_valid(value, each, path) for each in any_of):
            self._add(_in_body(path, value, "must validate at least one schema (anyOf)"))
        if one_of := schema.get("oneOf"):
            matching = sum(self._is_valid(value, each, path) for each in one_of)
            if matching != 1:
                found = "Found none valid" if not matching else f"Found {matching} valid alternatives"
                self._add(_in_body(path, value, f"must validate one and only one schema (oneOf). {found}"))
        if isinstance(schema.get("not"), dict) and self._is_valid(value, schema["not"], path):
            self._add(_in_body(path, value, "must not validate the schema (not)"))


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


def _in_body(path: FieldPath, value: Any, sentence: str) -> FieldError:
    return invalid_value(str(path), value, f"{path} in body {sentence}")


def _check_text(value: str, schema: Document, path: FieldPath, steps: _Steps) -> list[FieldError]:
    errors: list[FieldError] = []
    if len(value) < schema.get("minLength", 0):
        errors.append(_in_body(path, value, f"should be at least {schema['minLength']} chars long"))
    if "maxLength" in schema and len(value) > schema["maxLength"]:
        sentence = f"Too long: may not be more than {schema['maxLength']} bytes"
        errors.append(FieldError(str(path), "FieldValueTooLong", sentence))
    if schema.get("pattern"):
        errors += _check_pattern(value, schema["pattern"], path, steps)
    if schema.get("format") == "date-time" and not _DATE_TIME.fullmatch(value):
        errors.append(_in_body(path, value, f'must be of type date-time: "{value}"'))
    return errors


def _check_pattern(value: str, pattern: str, path: FieldPath, steps: _Steps) -> list[FieldError]:
    try:
        made = compiled(pattern)
    except BadPattern as problem:
        return [_in_body(path, value, f"cannot be checked: {problem}; repair the definition's pattern")]
    if made.steps(value) > _MAX_STEPS:
        return [_in_body(path, value[:64], f"is too long for its pattern '{pattern}': shorten one of them")]
    steps.spend(made.steps(value) // _INSTRUCTIONS_AT_ONCE)
    return [] if made.is_in(value) else [_in_body(path, value, f"should match '{pattern}'")]


def _check_number(value: int | float, schema: Document, path: FieldPath) -> list[FieldError]:
    errors: list[FieldError] = []
    least, most = schema.get("minimum"), schema.get("maximum")
    if least is not None:
        if schema.get("exclusiveMinimum") and value <= least:
            errors.append(_in_body(path, value, f"should be greater than {least}"))
        elif value < least:
            errors.append(_in_body(path, value, f"should be greater than or equal to {least}"))
    if most is not None:
        if schema.get("exclusiveMaximum") and value >= most:
            errors.append(_in_body(path, value, f"should be less than {most}"))
        elif value > most:
            errors.append(_in_body(path, value, f"should be less than or equal to {most}"))
    if schema.get("multipleOf") and value % schema["multipleOf"]:
        errors.append(_in_body(path, value, f"should be a multiple of {schema['multipleOf']}"))
    if schema.get("format") == "int32" and not -(2**31) <= value < 2**31:
        errors.append(_in_body(path, value, f"must be of type int32: {value}"))
    return errors
