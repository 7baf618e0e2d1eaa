"""Structural schemas: prune what is unknown, fill in defaults, say what is wrong, with kube-apiserver's words."""

from __future__ import annotations

import re
from typing import Any

from mooring.apiserver.documents import Document, copied, items_of
from mooring.apiserver.status import FieldError, duplicate, invalid_value, required, unsupported
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
_DATE_TIME = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)")


def prune(value: Any, schema: Document, path: str = "", *, is_root: bool = False) -> list[str]:
    """Drop unknown fields in place; answers their paths."""
    dropped: list[str] = []
    if isinstance(value, dict):
        keeps = schema.get(_KEEP) or (not schema.get("properties") and schema.get("type") is None)
        properties: Document = schema.get("properties") or {}
        additional = schema.get("additionalProperties")
        for key in list(value):
            here = f"{path}.{key}" if path else key
            if is_root and key in ("apiVersion", "kind", "metadata"):
                continue
            if schema.get(_EMBEDDED) and key in ("apiVersion", "kind", "metadata"):
                continue
            if key in properties:
                dropped += prune(value[key], properties[key], here)
            elif isinstance(additional, dict):
                dropped += prune(value[key], additional, here)
            elif not additional and not keeps:
                del value[key]
                dropped.append(here)
    elif isinstance(value, list):
        items = schema.get("items")
        if isinstance(items, dict):
            for index, item in enumerate(value):
                dropped += prune(item, items, f"{path}[{index}]")
    return dropped


def fill_defaults(value: Any, schema: Document) -> None:
    """Fill in defaults in place; a null where null is not allowed counts as absent."""
    if isinstance(value, dict):
        for key, property in (schema.get("properties") or {}).items():
            if "default" in property and (key not in value or (value[key] is None and not property.get("nullable"))):
                default = property["default"]
                value[key] = copied(default) if isinstance(default, dict) else _copied_list(default)
            elif key in value and value[key] is None and not property.get("nullable"):
                del value[key]
            if key in value:
                fill_defaults(value[key], property)
        additional = schema.get("additionalProperties")
        if isinstance(additional, dict):
            for key, item in value.items():
                if key not in (schema.get("properties") or {}):
                    fill_defaults(item, additional)
    elif isinstance(value, list) and isinstance(schema.get("items"), dict):
        for item in value:
            fill_defaults(item, schema["items"])


def _copied_list(default: Any) -> Any:
    return copied({"value": default})["value"] if isinstance(default, list) else default


def check(value: Any, schema: Document, path: str = "") -> list[FieldError]:
    """Everything wrong with a value."""
    shown = path or "<root>"
    if value is None:
        if schema.get("nullable") or not schema.get("type"):
            return []
        return [_wrong_type(shown, schema["type"], "null")]
    if schema.get(_INT_OR_STRING):
        if type(value) not in (int, str):
            return [_wrong_type(shown, "integer,string", _NAMES.get(type(value), "unknown"))]
    elif schema.get("type") and not _is_of(value, schema["type"]):
        return [_wrong_type(shown, schema["type"], _NAMES.get(type(value), "unknown"))]
    wrong: list[FieldError] = []
    if "enum" in schema and value not in schema["enum"]:
        wrong.append(unsupported(shown, value, [str(each) for each in schema["enum"]]))
    if isinstance(value, str):
        wrong += _check_text(value, schema, shown)
    elif isinstance(value, bool):
        pass
    elif isinstance(value, int | float):
        wrong += _check_number(value, schema, shown)
    elif isinstance(value, list):
        wrong += _check_list(value, schema, path)
    elif isinstance(value, dict):
        wrong += _check_object(value, schema, path)
    return wrong + _check_combined(value, schema, shown)


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


def _says(path: str, value: Any, sentence: str) -> FieldError:
    return invalid_value(path, value, f"{path} in body {sentence}")


def _check_text(value: str, schema: Document, path: str) -> list[FieldError]:
    wrong: list[FieldError] = []
    if len(value) < schema.get("minLength", 0):
        wrong.append(_says(path, value, f"should be at least {schema['minLength']} chars long"))
    if "maxLength" in schema and len(value) > schema["maxLength"]:
        sentence = f"Too long: may not be more than {schema['maxLength']} bytes"
        wrong.append(FieldError(path, "FieldValueTooLong", sentence))
    if schema.get("pattern"):
        wrong += _check_pattern(value, schema["pattern"], path)
    if schema.get("format") == "date-time" and not _DATE_TIME.fullmatch(value):
        wrong.append(_says(path, value, f'must be of type date-time: "{value}"'))
    return wrong


def _check_pattern(value: str, pattern: str, path: str) -> list[FieldError]:
    try:
        made = compiled(pattern)
    except BadPattern as problem:
        return [_says(path, value, f"cannot be checked: {problem}; repair the definition's pattern")]
    if made.steps(value) > _MOST_STEPS:
        return [_says(path, value[:64], f"is too long for its pattern '{pattern}': shorten one of them")]
    return [] if made.is_in(value) else [_says(path, value, f"should match '{pattern}'")]


def _check_number(value: int | float, schema: Document, path: str) -> list[FieldError]:
    wrong: list[FieldError] = []
    least, most = schema.get("minimum"), schema.get("maximum")
    if least is not None:
        if schema.get("exclusiveMinimum") and value <= least:
            wrong.append(_says(path, value, f"should be greater than {least}"))
        elif value < least:
            wrong.append(_says(path, value, f"should be greater than or equal to {least}"))
    if most is not None:
        if schema.get("exclusiveMaximum") and value >= most:
            wrong.append(_says(path, value, f"should be less than {most}"))
        elif value > most:
            wrong.append(_says(path, value, f"should be less than or equal to {most}"))
    if schema.get("multipleOf") and value % schema["multipleOf"]:
        wrong.append(_says(path, value, f"should be a multiple of {schema['multipleOf']}"))
    if schema.get("format") == "int32" and not -(2**31) <= value < 2**31:
        wrong.append(_says(path, value, f"must be of type int32: {value}"))
    return wrong


def _check_list(value: list[Any], schema: Document, path: str) -> list[FieldError]:
    wrong: list[FieldError] = []
    shown = path or "<root>"
    if len(value) < schema.get("minItems", 0):
        wrong.append(_says(shown, len(value), f"should have at least {schema['minItems']} items"))
    if "maxItems" in schema and len(value) > schema["maxItems"]:
        sentence = f"Too many: {len(value)}: must have at most {schema['maxItems']} items"
        wrong.append(FieldError(shown, "FieldValueTooMany", sentence))
    kind = schema.get("x-kubernetes-list-type")
    if kind in ("set", "map"):
        keys = items_of(schema, "x-kubernetes-list-map-keys")
        seen: list[Any] = []
        for index, item in enumerate(value):
            name = {key: item.get(key) for key in keys} if kind == "map" and isinstance(item, dict) else item
            if name in seen:
                wrong.append(duplicate(f"{path}[{index}]", name))
            seen.append(name)
    if isinstance(schema.get("items"), dict):
        for index, item in enumerate(value):
            wrong += check(item, schema["items"], f"{path}[{index}]")
    return wrong


def _check_object(value: Document, schema: Document, path: str) -> list[FieldError]:
    wrong = [required(f"{path}.{name}" if path else name) for name in items_of(schema, "required") if name not in value]
    shown = path or "<root>"
    if len(value) < schema.get("minProperties", 0):
        wrong.append(_says(shown, len(value), f"should have at least {schema['minProperties']} properties"))
    if "maxProperties" in schema and len(value) > schema["maxProperties"]:
        sentence = f"Too many: {len(value)}: must have at most {schema['maxProperties']} items"
        wrong.append(FieldError(shown, "FieldValueTooMany", sentence))
    properties, additional = schema.get("properties") or {}, schema.get("additionalProperties")
    for key, item in value.items():
        here = f"{path}.{key}" if path else key
        if key in properties:
            wrong += check(item, properties[key], here)
        elif isinstance(additional, dict):
            wrong += check(item, additional, here)
    return wrong


def _check_combined(value: Any, schema: Document, path: str) -> list[FieldError]:
    wrong: list[FieldError] = []
    for each in items_of(schema, "allOf"):
        wrong += check(value, each, path)
    if (any_of := schema.get("anyOf")) and not any(not check(value, each, path) for each in any_of):
        wrong.append(_says(path, value, "must validate at least one schema (anyOf)"))
    if one_of := schema.get("oneOf"):
        matching = sum(not check(value, each, path) for each in one_of)
        if matching != 1:
            told = "Found none valid" if not matching else f"Found {matching} valid alternatives"
            wrong.append(_says(path, value, f"must validate one and only one schema (oneOf). {told}"))
    if isinstance(schema.get("not"), dict) and not check(value, schema["not"], path):
        wrong.append(_says(path, value, "must not validate the schema (not)"))
    return wrong
