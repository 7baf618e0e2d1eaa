"""Three ways to say what changes: JSON patch (RFC 6902), merge patch (RFC 7386), strategic merge patch.

Strategic merge reads merge keys from a type's schema; where there is none (custom resources) it is refused, as
kube-apiserver does. All return a new document and leave the old one alone.
"""

from __future__ import annotations

from typing import Any

import jsonpatch
import jsonpointer

from mooring.apiserver.documents import Document, copied
from mooring.apiserver.schema import ListType, MapType, StructType, Type, schema_of
from mooring.apiserver.status import Refused, bad_request, unsupported_media_type

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"


def json_patch(document: Document, operations: Any) -> Document:
    if not isinstance(operations, list):
        raise bad_request("a JSON patch is a list of operations")
    patched = copied(document)
    for index, operation in enumerate(operations):
        try:
            patched = jsonpatch.apply_patch(patched, [operation], in_place=True)
        except jsonpatch.JsonPatchTestFailed:
            raise _cannot_apply(index, operation, "the value there is another") from None
        except jsonpatch.JsonPatchException as failed:
            raise _cannot_apply(index, operation, str(failed)) from None
        except (jsonpointer.JsonPointerException, KeyError, TypeError):
            # Their words show the whole document.
            raise _cannot_apply(index, operation, "the path leads nowhere") from None
    if not isinstance(patched, dict):
        raise bad_request("the patch does not leave an object")
    return patched


def _cannot_apply(index: int, operation: Any, why: str) -> Refused:
    where = f"{operation.get('op')} {operation.get('path')}: " if isinstance(operation, dict) else ""
    sentence = "the server rejected our request due to an error in our request"
    return Refused(422, "Invalid", f"{sentence}: operation {index}: {where}{why}")


def merge_patch(document: Document, patch: Any) -> Document:
    if not isinstance(patch, dict):
        raise bad_request("a merge patch is an object")
    merged = _merged(document, patch)
    assert isinstance(merged, dict)
    return copied(merged)


def _merged(target: Any, patch: Any) -> Any:
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = _merged(result.get(key), value)
    return result


def strategic_patch(document: Document, patch: Any, type_name: str | None) -> Document:
    if type_name is None:
        raise unsupported_media_type(
            "the body of the request was in an unknown format - accepted media types include:"
            f" {JSON_PATCH}, {MERGE_PATCH}"
        )
    if not isinstance(patch, dict):
        raise bad_request("a strategic merge patch is an object")
    return copied(_strategic_map(document, patch, schema_of(type_name)))


def _strategic_map(target: Document, patch: Document, schema: Type | None) -> Document:
    """Merge one object; `$patch` and `$retainKeys` are instructions, not fields."""
    match patch.get("$patch"):
        case "replace":
            return {key: value for key, value in patch.items() if key != "$patch"}
        case "delete":
            return {}
        case None | "merge":
            pass
        case other:
            raise bad_request(f"unknown patch type found: {other}")
    result = dict(target)
    if (retained := patch.get("$retainKeys")) is not None:
        result = {key: value for key, value in result.items() if key in retained}
    for key, value in patch.items():
        if key.startswith("$deleteFromPrimitiveList/"):
            field = key.partition("/")[2]
            result[field] = [item for item in result.get(field) or [] if item not in value]
        elif key.startswith("$"):
            continue
        elif value is None:
            result.pop(key, None)
        else:
            result[key] = _strategic_value(result.get(key), value, _type_of(schema, key))
    for key, order in patch.items():
        if key.startswith("$setElementOrder/"):
            field = key.partition("/")[2]
            kind = _type_of(schema, field)
            if isinstance(result.get(field), list):
                merge_key = kind.merge_key if isinstance(kind, ListType) else None
                result[field] = _ordered(result[field], order, merge_key)
    return result


def _type_of(schema: Type | None, field: str) -> Type | None:
    if isinstance(schema, StructType):
        return schema.fields.get(field)
    if isinstance(schema, MapType):
        return schema.of
    return None


def _strategic_value(target: Any, value: Any, kind: Type | None) -> Any:
    if isinstance(value, dict):
        return _strategic_map(target if isinstance(target, dict) else {}, value, kind)
    if isinstance(value, list) and isinstance(kind, ListType) and kind.merges:
        return _strategic_list(target if isinstance(target, list) else [], value, kind)
    return [_without_instructions(item) for item in value] if isinstance(value, list) else value


def _without_instructions(item: Any) -> Any:
    return {key: value for key, value in item.items() if key != "$patch"} if isinstance(item, dict) else item


def _strategic_list(target: list[Any], patch: list[Any], kind: ListType) -> list[Any]:
    key = kind.merge_key
    if key is None:
        return target + [item for item in patch if item not in target]
    if any(isinstance(item, dict) and item.get("$patch") == "replace" for item in patch):
        return [
            _without_instructions(item) for item in patch if not (item.get("$patch") == "replace" and len(item) == 1)
        ]
    result = list(target)
    for item in patch:
        if not isinstance(item, dict) or key not in item:
            raise bad_request(f"map: {item} does not contain declared merge key: {key}")
        place = next((index for index, old in enumerate(result) if old.get(key) == item[key]), None)
        if item.get("$patch") == "delete":
            if place is not None:
                result = [old for old in result if old.get(key) != item[key]]
        elif place is None:
            result.append(_strategic_map({}, item, kind.of))
        else:
            result[place] = _strategic_map(result[place], item, kind.of)
    return result


def _ordered(items: list[Any], order: list[Any], key: str | None) -> list[Any]:
    """Items named in the order come in that order; items only the server has keep their relative place."""
    names = [entry.get(key) if key and isinstance(entry, dict) else entry for entry in order]

    def name(item: Any) -> Any:
        return item.get(key) if key and isinstance(item, dict) else item

    listed = sorted((item for item in items if name(item) in names), key=lambda item: names.index(name(item)))
    result: list[Any] = []
    remaining = iter(listed)
    # A server-only item stays before the listed items that followed it.
    for item in items:
        if name(item) in names:
            result.append(next(remaining))
        else:
            result.append(item)
    return result
