"""What an API server stores of an object, so that two servers can be compared."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from tests.apiserver.short_objects import SHORT, Document

RECORDED = Path(__file__).parents[1] / "data" / "apiserver" / "stored.json"
"""By the names of the short objects: what kube-apiserver v1.36.4 stores, or why it refuses."""

OF_THE_SERVER = ("uid", "resourceVersion", "creationTimestamp", "managedFields")
"""Metadata that no two servers share."""
OF_CONTROLLERS = ("kubernetes.io/pv-protection", "kubernetes.io/pvc-protection")
"""Finalizers that a controller removes which the embedded cluster does not have."""
TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
CLUSTER_IP = re.compile(r"10\.(0|96)\.\d+\.\d+")
NODE_PORT = re.compile(r'"(nodePort|healthCheckNodePort)": \d+')


def short(name: str) -> Document:
    """The object of that case, under a name of its own (a custom resource definition has one)."""
    document = SHORT[name]
    words = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
    return {**document, "metadata": {"name": words} | document.get("metadata", {})}


def comparable(made: Document) -> Document:
    """Without what only one server can know (identities, times, addresses), what controllers write, and nothings."""
    uid = made["metadata"]["uid"]
    metadata = {key: value for key, value in made["metadata"].items() if key not in OF_THE_SERVER}
    metadata["finalizers"] = [each for each in metadata.get("finalizers", ()) if each not in OF_CONTROLLERS]
    if made["kind"] == "CustomResourceDefinition":
        made = {**made, "status": {}}
    text = json.dumps({**made, "metadata": metadata}).replace(uid, "UID")
    for pattern, word in ((TIMESTAMP, "TIME"), (CLUSTER_IP, "ADDRESS"), (NODE_PORT, r'"\1": 0')):
        text = pattern.sub(word, text)
    kept: Document = _without_nothing(json.loads(text))
    return kept


def _without_nothing(value: Any) -> Any:
    """Go writes some empty values and leaves others out; to a reader they mean the same."""
    if isinstance(value, dict):
        kept = {key: _without_nothing(each) for key, each in value.items()}
        return {key: each for key, each in kept.items() if each not in (None, "", {}, [])}
    if isinstance(value, list):
        return [_without_nothing(each) for each in value]
    return value
