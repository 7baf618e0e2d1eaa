"""Custom resources: the rows of the resource table that a definition adds, their columns, and their strategy."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from mooring.apiserver.custom.structural import check, fill_defaults, prune
from mooring.apiserver.documents import Converter, Document, items_of, part
from mooring.apiserver.resources import Resource, Subresource
from mooring.apiserver.schema import Walk, WrongType, schema_of
from mooring.apiserver.status import FieldError, bad_request
from mooring.apiserver.strategies.base import FieldReader, Strategy, StrategyContext, text_at
from mooring.apiserver.tables.ages import age
from mooring.apiserver.tables.columns import AGE, NAME, PrinterColumn

VERBS = ("delete", "deletecollection", "get", "list", "patch", "create", "update", "watch")
META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"


@dataclass(frozen=True, eq=False)
class CustomResourceVersion:
    """One version of a custom resource."""

    version: Document

    @property
    def schema(self) -> Document:
        return part(self.version, "schema", "openAPIV3Schema")

    @property
    def scale(self) -> Document | None:
        found: Document | None = part(self.version, "subresources").get("scale")
        return found

    @property
    def has_status(self) -> bool:
        return "status" in part(self.version, "subresources")

    def coerce(self, document: Document) -> list[str]:
        """Prune and default a request body in place; returns the unknown fields."""
        walk = Walk()
        walk.path.append("metadata")
        try:
            schema_of(META).coerce(document.setdefault("metadata", {}), walk)
        except WrongType as wrong:
            raise bad_request(wrong.sentence) from None
        unknown = walk.unknown + prune(document, self.schema)
        fill_defaults(document, self.schema)
        return unknown

    @cached_property
    def columns(self) -> list[PrinterColumn]:
        declared = items_of(self.version, "additionalPrinterColumns")
        return [NAME, *(_column_or_empty(each) for each in declared)] if declared else [NAME, AGE]


def _column_or_empty(declared: Document) -> PrinterColumn:
    """A definition that another server accepted may have a path that is not supported here."""
    try:
        return column_of(declared)
    except ValueError:
        return column_of({**declared, "jsonPath": ".metadata.absent"})


_LONGEST_PATH, _MOST_DESCENTS, _MOST_FILTERS = 1024, 1, 2
"""Nested, they multiply: a table shows every object of a kind."""


def column_of(declared: Document) -> PrinterColumn:
    """A printer column; ValueError where its JSONPath is invalid."""
    import jsonpath

    written = declared.get("jsonPath", "")
    if "=~" in written:
        raise ValueError("is an invalid JSONPath expression: regular expressions are not supported")
    if len(written) > _LONGEST_PATH or written.count("..") > _MOST_DESCENTS or written.count("?") > _MOST_FILTERS:
        raise ValueError(
            f"is too large: it may have {_LONGEST_PATH} characters, {_MOST_DESCENTS} recursive descent"
            f" and {_MOST_FILTERS} filters"
        )
    environment = jsonpath.JSONPathEnvironment()
    environment.function_extensions.clear()  # Kubernetes has none, and some take regular expressions
    try:
        path = environment.compile(_standard_path(written))
    except jsonpath.JSONPathError as mistake:
        raise ValueError(f"is an invalid JSONPath expression: {mistake}") from None
    kind = declared.get("type", "string")

    def read(document: Document, now: float) -> Any:
        try:
            found = next(iter(path.finditer(document)), None)
        except jsonpath.JSONPathError:  # deeper than it descends
            return None
        if found is None:
            return None
        value = found.obj
        if kind == "date":
            return age(value, now) if isinstance(value, str) else None
        return _written(value) if kind == "string" and value is not None else value

    return PrinterColumn(
        declared.get("name", ""),
        read,
        type=kind,
        format=declared.get("format", ""),
        description=declared.get("description", ""),
        priority=declared.get("priority", 0),
    )


def _written(value: Any) -> str:
    """The text of a cell: as it is, objects and lists as JSON."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return str(value).lower()
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def _standard_path(path: str) -> str:
    r"""Kubernetes' `.a.b\.c` as JSONPath: `$.a['b.c']`."""
    escaped = re.sub(r"\.((?:[^.\[\]\\]|\\.)*\\\.(?:[^.\[\]\\]|\\.)*)", lambda each: f"['{_unescaped(each[1])}']", path)
    return "$" + escaped


def _unescaped(name: str) -> str:
    return name.replace("\\.", ".")


class CustomStrategy(Strategy):
    """Objects of one definition, validated by the schema of its storage version."""

    def __init__(self, kind: CustomResourceVersion) -> None:
        self._kind = kind

    has_generation = True

    @property
    def fields(self) -> dict[str, FieldReader]:  # type: ignore[override]
        declared = [each.get("jsonPath", "") for each in items_of(self._kind.version, "selectableFields")]
        return {path.removeprefix("."): text_at(*path.removeprefix(".").split(".")) for path in declared}

    def prepare_create(self, document: Document, context: StrategyContext) -> None:
        super().prepare_create(document, context)
        if self._kind.has_status:
            document.pop("status", None)

    def prepare_update(self, document: Document, old: Document, context: StrategyContext) -> None:
        if self._kind.has_status:
            if "status" in old:
                document["status"] = old["status"]
            else:
                document.pop("status", None)
        super().prepare_update(document, old, context)

    def generation_content(self, document: Document) -> object:
        """All but the metadata, and but the status where it is a subresource."""
        left_out = ("metadata", "status") if self._kind.has_status else ("metadata",)
        return {field: value for field, value in document.items() if field not in left_out}

    def validate(self, document: Document, context: StrategyContext) -> list[FieldError]:
        return check(document, self._kind.schema)

    def validate_status(self, document: Document, old: Document, context: StrategyContext) -> list[FieldError]:
        return check(document, self._kind.schema)


def _with_version(api_version: str) -> Converter:
    def view(document: Document) -> Document:
        if document.get("apiVersion") == api_version:
            return document
        return {**document, "apiVersion": api_version}

    return view


def rows_of(definition: Document) -> list[Resource]:
    """The rows that a definition adds: one per served version."""
    spec = definition["spec"]
    names, group = spec["names"], spec["group"]
    stored = next(version["name"] for version in spec["versions"] if version.get("storage"))
    to_stored = _with_version(f"{group}/{stored}")
    rows: list[Resource] = []
    for version in spec["versions"]:
        if not version.get("served"):
            continue
        kind = CustomResourceVersion(version)
        subresources = []
        if kind.has_status:
            subresources.append(Subresource("status", names["kind"], ("get", "patch", "update")))
        if kind.scale is not None:
            subresources.append(Subresource("scale", "Scale", ("get", "patch", "update"), "autoscaling", "v1"))
        rows.append(
            Resource(
                group=group,
                version=version["name"],
                plural=names["plural"],
                singular=names["singular"],
                kind=names["kind"],
                namespaced=spec["scope"] == "Namespaced",
                verbs=VERBS,
                short_names=tuple(items_of(names, "shortNames")),
                categories=tuple(items_of(names, "categories")),
                subresources=tuple(subresources),
                storage=f"{names['plural']}.{group}",
                to_served=_with_version(f"{group}/{version['name']}"),
                to_stored=to_stored,
                custom=kind,
                list_kind=names["listKind"],
                openapi=kind.schema,
            )
        )
    return rows


def strategy_of(definition: Document) -> CustomStrategy:
    """The strategy of a definition's objects."""
    version = next(version for version in definition["spec"]["versions"] if version.get("storage"))
    return CustomStrategy(CustomResourceVersion(version))
