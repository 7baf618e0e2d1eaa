"""JSON merge patch (RFC 7386) and strategic merge patch.

Strategic merge reads merge keys from a type's schema; where there is none (custom resources) it is refused, as
kube-apiserver does. Both return a new document and leave the old one alone.
"""

from __future__ import annotations

from typing import Any

from mooring.apiserver.documents import Document, copied, encode, items_of
from mooring.apiserver.schema import ApiType, ListType, MapType, StructType, schema_of
from mooring.apiserver.status import bad_request, unsupported_media_type

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"


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


def _strategic_map(target: Document, patch: Document, schema: ApiType | None) -> Document:
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
        kept = {name for name in _instruction("$retainKeys", retained) if isinstance(name, str)}
        result = {key: value for key, value in result.items() if key in kept}
    for key, value in patch.items():
        if key.startswith("$deleteFromPrimitiveList/"):
            field = key.partition("/")[2]
            deleted = {encode(item) for item in _instruction(key, value)}
            result[field] = [item for item in items_of(result, field) if encode(item) not in deleted]
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
                result[field] = _ordered(result[field], _instruction(key, order), merge_key)
    return result


def _instruction(name: str, value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise bad_request(f"{name}: expected a list, got {encode(value)[:100].decode(errors='replace')}")
    return value


def _type_of(schema: ApiType | None, field: str) -> ApiType | None:
    if isinstance(schema, StructType):
        return schema.fields.get(field)
    if isinstance(schema, MapType):
        return schema.of
    return None


def _strategic_value(target: Any, value: Any, kind: ApiType | None) -> Any:
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
        present = {encode(item) for item in target}
        return target + [item for item in patch if encode(item) not in present]
    for item in patch:
        if not isinstance(item, dict) or (key not in item and item != {"$patch": "replace"}):
            shown = encode(item)[:1000].decode(errors="replace")
            raise bad_request(f"map: {shown} does not contain declared merge key: {key}")
    if any(item.get("$patch") == "replace" for item in patch):
        return [_without_instructions(item) for item in patch if item != {"$patch": "replace"}]
    # In their order; None where one was deleted.
    result: list[Any] = list(target)
    places: dict[bytes, list[int]] = {}
    for place, old in enumerate(target):
        places.setdefault(_identity(old, key), []).append(place)
    for item in patch:
        found = places.get(_identity(item, key))
        if item.get("$patch") == "delete":
            for place in places.pop(_identity(item, key), []):
                result[place] = None
        elif found is None:
            places[_identity(item, key)] = [len(result)]
            result.append(_strategic_map({}, item, kind.of))
        else:
            result[found[0]] = _strategic_map(result[found[0]], item, kind.of)
    return [item for item in result if item is not None]


def _identity(item: Any, key: str | None) -> bytes:
    """The identity of a list item, by its merge key or its value; hashable, whatever a client sent."""
    return encode(item.get(key) if key and isinstance(item, dict) else item)


def _ordered(items: list[Any], order: list[Any], key: str | None) -> list[Any]:
    """Sort by `$setElementOrder`; items that only the server has keep their relative position."""
    rank: dict[bytes, int] = {}
    for place, entry in enumerate(order):
        rank.setdefault(_identity(entry, key), place)
    ranks = [rank.get(_identity(item, key)) for item in items]
    listed = sorted((place, at) for at, place in enumerate(ranks) if place is not None)
    remaining = iter(listed)
    # A server-only item stays before the listed items that followed it.
    return [items[next(remaining)[1]] if place is not None else items[at] for at, place in enumerate(ranks)]
