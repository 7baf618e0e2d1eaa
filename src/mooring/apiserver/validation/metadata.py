"""Validation of `metadata`: names, labels, annotations, finalizers, owner references, and immutable fields."""

from __future__ import annotations

from typing import Any

from mooring.apiserver.documents import Document, items_of, part
from mooring.apiserver.status import MAX_ERRORS, FieldError, forbidden_field, invalid_value, quoted, required
from mooring.objects.names import NameRule, dns_label, label_value, qualified_name

ANNOTATIONS_LIMIT = 256 * 1024


def check_labels(labels: Any, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    for key, value in (labels or {}).items():
        errors += [invalid_value(path, key, sentence) for sentence in qualified_name(key)]
        errors += [invalid_value(path, value, sentence) for sentence in label_value(value)]
        if len(errors) > MAX_ERRORS:
            break
    return errors


def check_annotations(annotations: Any, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    size = 0
    for key, value in (annotations or {}).items():
        errors += [invalid_value(path, key, sentence) for sentence in qualified_name(key.lower())]
        size += len(key) + len(value)
    if size > ANNOTATIONS_LIMIT:
        errors.append(
            FieldError(path, "FieldValueTooLong", f"Too long: may not be more than {ANNOTATIONS_LIMIT} bytes")
        )
    return errors


def check_metadata(document: Document, namespaced: bool, rule: NameRule) -> list[FieldError]:
    metadata = part(document, "metadata")
    errors: list[FieldError] = []
    if generate := metadata.get("generateName"):
        errors += [
            invalid_value("metadata.generateName", generate, sentence)
            for sentence in rule(generate.rstrip("-.") or "x")
        ]
    name = metadata.get("name")
    if not name:
        errors.append(required("metadata.name", "name or generateName is required"))
    elif not generate:
        errors += [invalid_value("metadata.name", name, sentence) for sentence in rule(name)]
    if namespaced:
        namespace = metadata.get("namespace", "")
        errors += [invalid_value("metadata.namespace", namespace, sentence) for sentence in dns_label(namespace)]
    elif metadata.get("namespace"):
        errors.append(forbidden_field("metadata.namespace", "not allowed on this type"))
    if labels := metadata.get("labels"):
        errors += check_labels(labels, "metadata.labels")
    if annotations := metadata.get("annotations"):
        errors += check_annotations(annotations, "metadata.annotations")
    for index, owner in enumerate(items_of(metadata, "ownerReferences")):
        path = f"metadata.ownerReferences[{index}]"
        for field, shown in (("apiVersion", "version"), ("kind", "kind"), ("name", "name"), ("uid", "uid")):
            if not owner.get(field):
                errors.append(invalid_value(f"{path}.{field}", "", f"{shown} must not be empty"))
    for finalizer in items_of(metadata, "finalizers"):
        errors += [invalid_value("metadata.finalizers", finalizer, sentence) for sentence in qualified_name(finalizer)]
    return errors


def check_metadata_update(document: Document, old: Document) -> list[FieldError]:
    """Validate the fields that are immutable, and finalizers of terminating objects."""
    now, then = part(document, "metadata"), part(old, "metadata")
    errors = [
        invalid_value(f"metadata.{field}", now.get(field, ""), "field is immutable")
        for field in ("name", "namespace", "uid", "creationTimestamp")
        if now.get(field) != then.get(field)
    ]
    if then.get("deletionTimestamp") is not None:
        present = set(items_of(then, "finalizers"))
        added = [name for name in items_of(now, "finalizers") if name not in present]
        if added:
            shown = " ".join(quoted(name) for name in added)
            why = f"no new finalizers can be added if the object is being deleted, found new finalizers [{shown}]"
            errors.append(forbidden_field("metadata.finalizers", why))
    return errors
