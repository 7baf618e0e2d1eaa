"""An object as a snapshot keeps it: the fields of its table, and nothing else.

Two templates that differ in what is left out, such as an environment variable, would become equal, and the controllers
of a restored cluster would take an old ReplicaSet for the present one. So each template gets an annotation: a keyed
hash of the whole template, whose key is forgotten with the snapshot's end.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from mooring.snapshots.fields import (
    ANNOTATION_VALUES,
    ANNOTATIONS,
    OWNER,
    OWNER_FIELDS,
    POD_VOLUME,
    TEMPLATE,
    VOLUME_SOURCES,
    Entries,
    Leaf,
    Sourced,
    Table,
)

Document = dict[str, Any]

TEMPLATE_MARK = "mooring.dev/template"
NO_SOURCE = {"hostPath": {"path": "/left-out"}}
"""Stands for the source of a volume that scheduling does not read: a PersistentVolume must have one."""
_KEPT_SOURCES = POD_VOLUME.keys() - {"name"}
_SET_BY_DEPLOYMENTS = "pod-template-hash"
_encode = msgspec.json.Encoder(order="deterministic").encode


class Pruning:
    """What is left of objects; `keep_annotations` are further keys, or prefixes that end with `*`."""

    def __init__(self, keep_annotations: Iterable[str] = ()) -> None:
        self._key = secrets.token_bytes(32)
        patterns = list(keep_annotations)
        self._kept = frozenset(patterns)
        self._prefixes = tuple(pattern[:-1] for pattern in patterns if pattern.endswith("*"))

    def prune(self, document: Document, table: Table) -> Document:
        """A new document of the fields in the table; `apiVersion` and `kind` stay."""
        kept: Document = {field: document[field] for field in ("apiVersion", "kind") if field in document}
        if "*" in table:
            others = {field: value for field, value in document.items() if field not in ("metadata", *kept)}
            return kept | {"metadata": self._kept_of(document.get("metadata"), table["metadata"])} | others
        kept |= self._mapping(document, table)
        complete = _COMPLETIONS.get(str(document.get("kind")))
        if complete is not None:
            complete(document, kept)
        return kept

    def _kept_of(self, value: Any, table: Any) -> Any:
        """What is kept of a value; None: nothing."""
        if value is None:
            return None
        if isinstance(table, Leaf):
            return self._leaf(value, table)
        if isinstance(table, Entries):
            return value if isinstance(value, dict) else None
        if isinstance(table, list):
            if not isinstance(value, list):
                return None
            items = (self._kept_of(item, table[0]) for item in value)
            return [item for item in items if item is not None]
        if not isinstance(value, dict):
            return None
        kept = self._mapping(value, table)
        if isinstance(table, Sourced) and kept.keys() <= {"name"}:
            return None
        if table is TEMPLATE:
            self._mark(value, kept)
        return kept

    def _mapping(self, value: Document, table: Table) -> Document:
        found = ((field, self._kept_of(value[field], part)) for field, part in table.items() if field in value)
        return {field: part for field, part in found if part is not None}

    def _leaf(self, value: Any, leaf: Leaf) -> Any:
        if leaf is ANNOTATIONS:
            kept = {key: text for key, text in value.items() if self.keeps(key)} if isinstance(value, dict) else {}
            return kept or None
        if leaf is OWNER:
            return {field: value[field] for field in OWNER_FIELDS if field in value}
        return value

    def pod_volumes(self, volumes: Iterable[Mapping[str, Any]]) -> list[Document]:
        """What is kept of the volumes of a pod. Most have only those whose source is left out: tokens, ConfigMaps."""
        read = [volume for volume in volumes if not _KEPT_SOURCES.isdisjoint(volume)]
        if not read:
            return []
        kept: list[Document] = self._kept_of(read, [POD_VOLUME])
        return kept

    def keeps(self, annotation: str) -> bool:
        """Whether an annotation is kept."""
        return annotation in ANNOTATION_VALUES or annotation in self._kept or annotation.startswith(self._prefixes)

    def _mark(self, template: Document, kept: Document) -> None:
        """Keep templates different that differ only in what is left out."""
        whole = _without_nothing(template)
        whole.get("metadata", {}).get("labels", {}).pop(_SET_BY_DEPLOYMENTS, None)
        digest = hmac.new(self._key, _encode(_without_nothing(whole)), hashlib.sha256).hexdigest()[:16]
        annotations = kept.setdefault("metadata", {}).setdefault("annotations", {})
        annotations[TEMPLATE_MARK] = digest


def _without_nothing(value: Any) -> Any:
    """Without nulls and empty parts, which the writers of templates include or not."""
    if isinstance(value, dict):
        parts = {key: _without_nothing(part) for key, part in value.items()}
        return {key: part for key, part in parts.items() if part is not None and part != {} and part != []}
    if isinstance(value, list):
        return [_without_nothing(part) for part in value]
    return value


def _complete_service(_: Document, kept: Document) -> None:
    """Scheduling reads its selector alone. Headless, it needs neither ports nor an address."""
    kept["spec"] = {"clusterIP": "None", **kept.get("spec", {})}


def _complete_volume(_: Document, kept: Document) -> None:
    spec = kept.setdefault("spec", {})
    if VOLUME_SOURCES.isdisjoint(spec):
        spec.update(NO_SOURCE)


_COMPLETIONS: dict[str, Callable[[Document, Document], None]] = {
    "Service": _complete_service,
    "PersistentVolume": _complete_volume,
}
"""What an API server requires of an object besides."""
