"""OpenAPI v3 documents, one per group and version, as `kubectl apply` and `kubectl explain` request them.

Built from the type tables on the first request; custom resources bring their own schemas. Built-in types have no
descriptions: `kubectl explain` shows their fields and types, and a real cluster has the prose.
"""

from __future__ import annotations

import hashlib
from typing import Any

from mooring.apiserver.discovery import KUBERNETES_VERSION
from mooring.apiserver.documents import Document, encode
from mooring.apiserver.resources import Resource, ResourceTable
from mooring.apiserver.schema import schema_table

_SCALARS: dict[str, Document] = {
    "string": {"type": "string"},
    "bytes": {"type": "string", "format": "byte"},
    "boolean": {"type": "boolean"},
    "number": {"type": "number", "format": "double"},
    "int32": {"type": "integer", "format": "int32"},
    "int64": {"type": "integer", "format": "int64"},
    "any": {"type": "object"},
}
_MACHINERY = "io.k8s.apimachinery.pkg"
_NAMED_SCALARS: dict[str, tuple[str, Document]] = {
    "quantity": (f"{_MACHINERY}.api.resource.Quantity", {"type": "string"}),
    "int-or-string": (
        f"{_MACHINERY}.util.intstr.IntOrString",
        {"format": "int-or-string", "oneOf": [{"type": "integer"}, {"type": "string"}]},
    ),
    "time": (f"{_MACHINERY}.apis.meta.v1.Time", {"type": "string", "format": "date-time"}),
    "micro-time": (f"{_MACHINERY}.apis.meta.v1.MicroTime", {"type": "string", "format": "date-time"}),
}
"""Scalars that are named types: `kubectl explain` shows their names."""
META = f"{_MACHINERY}.apis.meta.v1.ObjectMeta"
V2_ACCEPT = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
V2_TYPE = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"  # an "@" is no part of a media type
V2_EMPTY = b""
"""OpenAPI v2, which kubectl requests for a kind that v3 lacks. It is empty, so that kubectl reports that the kind is
not defined. An empty protobuf message has no bytes."""
_WRITES = {"put": "put", "patch": "patch", "post": "post"}


class OpenApi:
    """The documents of one server, cached until its table of resources changes."""

    def __init__(self, table: ResourceTable) -> None:
        self._table = table
        self._made: dict[str, bytes] = {}
        self._generation = -1

    def root(self) -> bytes:
        paths: Document = {}
        for row in self._table:
            base = _base(row).removeprefix("/")
            fingerprint = hashlib.sha256(f"{KUBERNETES_VERSION} {base} {self._table.generation}".encode()).hexdigest()
            paths[base] = {"serverRelativeURL": f"/openapi/v3/{base}?hash={fingerprint[:32].upper()}"}
        return encode({"paths": paths})

    def group_version(self, base: str) -> bytes | None:
        """The document of `api/v1` or `apis/apps/v1`."""
        if self._generation != self._table.generation:
            self._made.clear()
            self._generation = self._table.generation
        if base not in self._made:
            rows = [row for row in self._table if _base(row) == f"/{base}"]
            if not rows:
                return None
            self._made[base] = encode(_document(rows))
        return self._made[base]


def _base(row: Resource) -> str:
    return f"/apis/{row.group}/{row.version}" if row.group else f"/api/{row.version}"


def _document(rows: list[Resource]) -> Document:
    schemas: Document = {}
    paths: Document = {}
    for row in rows:
        if row.custom is not None:
            schemas[_custom_name(row)] = _custom_schema(row)
            _add_type(META, schemas)
        elif row.type_name is not None:
            _add_type(row.type_name, schemas)
        paths |= _paths(row)
    return {
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": KUBERNETES_VERSION},
        "paths": paths,
        "components": {"schemas": schemas},
    }


def _kind(row: Resource) -> Document:
    return {"group": row.group, "version": row.version, "kind": row.kind}


def _custom_name(row: Resource) -> str:
    return ".".join([*reversed(row.group.split(".")), row.version, row.kind])


def _custom_schema(row: Resource) -> Document:
    schema = dict(row.openapi) or {"type": "object"}
    properties = dict(schema.get("properties") or {})
    # Every kind has these, and they mean the same everywhere.
    properties["metadata"] = {"allOf": [_reference(META)]}
    for field in ("apiVersion", "kind"):
        properties[field] = {"type": "string"} | (properties.get(field) or {})
    return {**schema, "properties": properties, "x-kubernetes-group-version-kind": [_kind(row)]}


def _paths(row: Resource) -> Document:
    place = f"{_base(row)}/namespaces/{{namespace}}/{row.plural}" if row.namespaced else f"{_base(row)}/{row.plural}"
    field_validation = {"name": "fieldValidation", "in": "query", "schema": {"type": "string"}}
    dry_run = {"name": "dryRun", "in": "query", "schema": {"type": "string"}}

    def operation_of(action: str, *, writes: bool) -> Document:
        operation: Document = {"x-kubernetes-action": action, "x-kubernetes-group-version-kind": _kind(row)}
        if writes:
            operation["parameters"] = [dry_run, field_validation]
        operation["responses"] = {"200": {"description": "OK"}}
        return operation

    many: Document = {}
    if "list" in row.verbs:
        many["get"] = operation_of("list", writes=False)
    if "create" in row.verbs:
        many["post"] = operation_of("post", writes=True)
    one: Document = {}
    for verb, method in (("get", "get"), ("update", "put"), ("patch", "patch"), ("delete", "delete")):
        if verb in row.verbs:
            one[method] = operation_of(_WRITES.get(method, method), writes=method in _WRITES)
    paths = {place: many}
    if one:
        paths[f"{place}/{{name}}"] = one
    return paths


def _reference(name: str) -> Document:
    return {"$ref": f"#/components/schemas/{name}"}


def _add_type(name: str, schemas: Document) -> None:
    """The type and every type it mentions."""
    if name in schemas:
        return
    compact = schema_table()[name]
    schema: Document = {"type": "object"}
    schemas[name] = schema
    if compact["fields"]:
        schema["properties"] = {field: _property(kind, schemas) for field, kind in compact["fields"].items()}
    if compact.get("required"):
        schema["required"] = compact["required"]
    if compact.get("kinds"):
        schema["x-kubernetes-group-version-kind"] = [
            {"group": group, "version": version, "kind": kind} for group, version, kind in compact["kinds"]
        ]


def _property(compact: Any, schemas: Document) -> Document:
    shown: Document
    if isinstance(compact, str):
        if compact.startswith("@"):
            _add_type(compact[1:], schemas)
            shown = {"allOf": [_reference(compact[1:])], "default": {}}
        elif compact in _NAMED_SCALARS:
            name, schema = _NAMED_SCALARS[compact]
            schemas[name] = schema
            shown = {"allOf": [_reference(name)]}
        else:
            shown = dict(_SCALARS[compact])
    elif compact[0] == "list":
        shown = {"type": "array", "items": _property(compact[1], schemas)}
        key, strategy, keys = compact[2:5] if len(compact) > 2 else (None, None, None)
        if key:
            shown["x-kubernetes-patch-merge-key"] = key
        if strategy:
            shown["x-kubernetes-patch-strategy"] = strategy
        if keys:
            shown |= {"x-kubernetes-list-map-keys": keys, "x-kubernetes-list-type": "map"}
    elif compact[0] == "map":
        shown = {"type": "object", "additionalProperties": _property(compact[1], schemas)}
    else:
        shown = {**_property(compact[1], schemas), "x-kubernetes-patch-strategy": compact[2]}
    return shown
