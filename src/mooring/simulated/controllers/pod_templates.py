"""Pod templates: the pods that are created from them, and their hash. Pure."""

from __future__ import annotations

import hashlib
import json

from mooring.simulated.records import Document, Record, owned_by

_SAFE_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
"""The alphabet of names that Kubernetes generates: no vowels, no similar characters."""


def pod_from_template(owner: Record, template: Document) -> Document:
    """A pod of the template, controlled by the owner."""
    metadata = template.get("metadata") or {}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "generateName": f"{owner.name}-",
            "namespace": owner.namespace,
            "ownerReferences": owned_by(owner),
        }
        | {key: metadata[key] for key in ("labels", "annotations", "finalizers") if metadata.get(key)},
        "spec": template.get("spec") or {},
    }


def template_hash(template: Document, collisions: int = 0) -> str:
    """The pod template hash: a safe-encoded string, equal for equal templates."""
    text = json.dumps(template, sort_keys=True, separators=(",", ":")) + (str(collisions) if collisions else "")
    number = int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big")
    return safe_encoded(str(number))


def safe_encoded(text: str) -> str:
    return "".join(_SAFE_LETTERS[ord(digit) % len(_SAFE_LETTERS)] for digit in text)
