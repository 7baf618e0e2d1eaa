"""Objects as table rows, in responses to get, list and watch."""

from __future__ import annotations

from collections.abc import Iterator

from mooring.apiserver.documents import Document, encode
from mooring.apiserver.lists import ListPage, list_parts
from mooring.apiserver.negotiation import Shape
from mooring.apiserver.resources import Resource
from mooring.apiserver.storage import StoredObject
from mooring.apiserver.tables.cluster import CLUSTER_COLUMNS
from mooring.apiserver.tables.columns import AGE, NAME, PrinterColumn
from mooring.apiserver.tables.metrics import METRICS_COLUMNS
from mooring.apiserver.tables.pods import POD_COLUMNS
from mooring.apiserver.tables.volumes import VOLUME_COLUMNS
from mooring.apiserver.tables.workloads import WORKLOAD_COLUMNS
from mooring.apiserver.watch_server import ObjectEncoder
from mooring.base.clock import Clock

META_V1 = "meta.k8s.io/v1"
_COLUMNS: dict[str, list[PrinterColumn]] = {
    "pods": POD_COLUMNS,
    **WORKLOAD_COLUMNS,
    **CLUSTER_COLUMNS,
    **VOLUME_COLUMNS,
    **METRICS_COLUMNS,
}
_PLAIN = [NAME, AGE]


def columns_for(row: Resource) -> list[PrinterColumn]:
    if row.custom is not None:
        return row.custom.columns
    return _COLUMNS.get(row.storage, _PLAIN)


def _partial(document: Document) -> Document:
    return {"kind": "PartialObjectMetadata", "apiVersion": META_V1, "metadata": document.get("metadata", {})}


class Tables:
    """Renders rows; ages are counted from the server's clock."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def one(self, row: Resource, stored: StoredObject, shape: Shape, include: str) -> bytes:
        shown = stored.converted(row.to_served)[0]
        if shape == "metadata":
            return encode(_partial(shown))
        version = {"resourceVersion": shown["metadata"].get("resourceVersion", "")}
        return encode(self._table(row, shown, version, include, with_columns=True))

    def many(self, row: Resource, page: ListPage, shape: Shape, include: str) -> Iterator[bytes]:
        """A list in parts, each row rendered when it is sent."""
        shown = (stored.converted(row.to_served)[0] for stored in page.found)
        if shape == "metadata":
            head = {"kind": "PartialObjectMetadataList", "apiVersion": META_V1, "metadata": page.metadata()}
            return list_parts(head, "items", (encode(_partial(document)) for document in shown))
        columns, now = columns_for(row), self._clock.now()
        head = self._table_head(columns, page.metadata(), with_columns=True)
        return list_parts(head, "rows", (encode(self._row(columns, document, now, include)) for document in shown))

    def watch_encoder(self, row: Resource, shape: Shape, include: str) -> ObjectEncoder:
        """Encodes the objects of a watch; only the first has column definitions, as upstream."""
        is_first = True

        def show(stored: StoredObject) -> bytes:
            nonlocal is_first
            shown = stored.converted(row.to_served)[0]
            if shape == "metadata":
                return encode(_partial(shown))
            version = {"resourceVersion": shown["metadata"].get("resourceVersion", "")}
            table = self._table(row, shown, version, include, with_columns=is_first)
            is_first = False
            return encode(table)

        return show

    def _table(
        self, row: Resource, document: Document, metadata: Document, include: str, *, with_columns: bool
    ) -> Document:
        columns = columns_for(row)
        table = self._table_head(columns, metadata, with_columns=with_columns)
        table["rows"] = [self._row(columns, document, self._clock.now(), include)]
        return table

    def _table_head(self, columns: list[PrinterColumn], metadata: Document, *, with_columns: bool) -> Document:
        definitions = [column.definition() for column in columns] if with_columns else []
        return {"kind": "Table", "apiVersion": META_V1, "metadata": metadata, "columnDefinitions": definitions}

    def _row(self, columns: list[PrinterColumn], document: Document, now: float, include: str) -> Document:
        rendered: Document = {"cells": [column.cell(document, now) for column in columns]}
        if include == "Object":
            rendered["object"] = document
        elif include != "None":
            rendered["object"] = _partial(document)
        return rendered
