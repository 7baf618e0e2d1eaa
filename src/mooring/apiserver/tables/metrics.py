"""Columns of NodeMetrics and PodMetrics, as metrics-server prints them."""

from __future__ import annotations

from mooring.apiserver.documents import Document, items_of
from mooring.apiserver.tables.columns import NAME, PrinterColumn, column, text
from mooring.objects.quantity import exact


def _of_pod(resource: str) -> PrinterColumn:
    unit, scale = ("n", 10**9) if resource == "cpu" else ("Ki", 1 / 1024)

    def read(document: Document) -> str:
        used = sum(exact(each["usage"][resource]) for each in items_of(document, "containers"))
        return f"{round(used * scale)}{unit}"

    return column(resource, read)


METRICS_COLUMNS: dict[str, list[PrinterColumn]] = {
    "nodes.metrics.k8s.io": [
        NAME,
        text("cpu", "usage", "cpu"),
        text("memory", "usage", "memory"),
        text("window", "window"),
    ],
    "pods.metrics.k8s.io": [NAME, _of_pod("cpu"), _of_pod("memory"), text("window", "window")],
}
