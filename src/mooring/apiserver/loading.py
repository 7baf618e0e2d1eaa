"""Objects of a file that are created before the first client comes; those that are wrong are all named.

In the order given, since a pod may need the class before it. What exists already stays as it is, but for labels and
annotations of namespaces; a namespace that objects are in and that is not among them is made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from mooring.apiserver.documents import Document, copied, part
from mooring.apiserver.negotiation import typed
from mooring.apiserver.options import FieldValidation
from mooring.apiserver.registry import Registry
from mooring.apiserver.resources import Resource
from mooring.apiserver.restoring import ensure_namespace
from mooring.apiserver.status import StatusError
from mooring.base.errors import Problem

LineOf = Callable[[Document], int | None]
"""In which line of its file a document begins, where that is known."""


def load(registry: Registry, documents: Iterable[Document], line_of: LineOf) -> list[Problem]:
    """Create the objects; everything that is wrong with any of them."""
    problems: list[Problem] = []
    for document in documents:
        subject, errors = _load_one(registry, document)
        problems += [Problem(subject, message, line_of(document)) for message in errors]
    return problems


def _load_one(registry: Registry, document: Document) -> tuple[str, list[str]]:
    """How messages name the object, and what is wrong with it."""
    row = registry.table.by_kind(document["apiVersion"], document["kind"])
    metadata = document["metadata"]
    name = metadata.get("name") or metadata.get("generateName")
    if row is None or "create" not in row.verbs or "get" not in row.verbs:
        message = (
            f"the embedded API server has no kind {document['kind']} in {document['apiVersion']}; put its "
            "CustomResourceDefinition into the file, or leave the object out"
        )
        return f'{document["kind"]} "{name}"', [message]
    namespace = (metadata.get("namespace") or "default") if row.namespaced else ""
    subject = f'{row.kind} "{namespace}/{name}"' if namespace else f'{row.kind} "{name}"'
    policy = FieldValidation("Warn")
    errors: list[str] = []
    try:
        checked = typed(copied(document), row, policy)
        errors += policy.warnings  # no API server wrote the field: it is a mistake, as kubectl treats it
        if namespace:
            ensure_namespace(registry, namespace)
        registry.create(row, namespace, checked)
    except StatusError as refused:
        if refused.reason != "AlreadyExists":
            errors.append(refused.message)
        elif row.storage == "namespaces":
            _mark(registry, row, document)
    return subject, errors


def _mark(registry: Registry, row: Resource, document: Document) -> None:
    """`default` is always there, and selectors read its labels."""
    marks = {key: part(document, "metadata", key) for key in ("labels", "annotations")}

    def marked(current: Document) -> Document:
        metadata = current["metadata"]
        metadata |= {key: {**part(metadata, key), **added} for key, added in marks.items() if added}
        return current

    if any(marks.values()):
        registry.update(row, "", document["metadata"]["name"], marked)
