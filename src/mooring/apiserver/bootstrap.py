"""What exists before the first request."""

from __future__ import annotations

from mooring.apiserver.documents import Document
from mooring.apiserver.registry import Registry

NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")


def create_initial_objects(registry: Registry) -> None:
    for name in NAMESPACES:
        _create(registry, "v1", "namespaces", {"metadata": {"name": name}})


def _create(registry: Registry, version: str, plural: str, document: Document, group: str = "") -> None:
    row = registry.table.find(group, version, plural)
    assert row is not None
    namespace = document["metadata"].get("namespace", "")
    registry.create(row, namespace, {"apiVersion": row.api_version, "kind": row.kind, **document})
