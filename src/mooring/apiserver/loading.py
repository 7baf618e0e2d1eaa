"""Creates the objects of a file before the server starts, and reports all invalid ones.

Objects are created in the order given, since a pod may need the class before it. Existing objects are kept, but for
labels and annotations of namespaces, which are merged. Missing namespaces are created.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from mooring.apiserver.documents import Document, copied, part
from mooring.apiserver.negotiation import decode_object
from mooring.apiserver.options import FieldValidation
from mooring.apiserver.registry import ResourceRegistry
from mooring.apiserver.resources import GATED_VERSIONS, Resource
from mooring.apiserver.restoring import ensure_namespace
from mooring.apiserver.status import StatusError
from mooring.base.errors import Problem

LineOf = Callable[[Document], int | None]
"""In which line of its file a document begins, where that is known."""


def load(registry: ResourceRegistry, documents: Iterable[Document], line_of: LineOf) -> list[Problem]:
    """Create the objects; returns the errors of all of them."""
    problems: list[Problem] = []
    for document in documents:
        subject, errors = _load_one(registry, document)
        problems += [Problem(subject, message, line_of(document)) for message in errors]
    return problems


def _load_one(registry: ResourceRegistry, document: Document) -> tuple[str, list[str]]:
    """The object's name in messages, and its errors."""
    row = registry.table.by_kind(document["apiVersion"], document["kind"])
    metadata = document["metadata"]
    name = metadata.get("name") or metadata.get("generateName")
    if row is None or "create" not in row.verbs or "get" not in row.verbs:
        message = (
            f"the embedded API server has no kind {document['kind']} in {document['apiVersion']}; "
            f"{_remedy(document['apiVersion'])}, or leave the object out"
        )
        return f'{document["kind"]} "{name}"', [message]
    namespace = (metadata.get("namespace") or "default") if row.namespaced else ""
    subject = f'{row.kind} "{namespace}/{name}"' if namespace else f'{row.kind} "{name}"'
    policy = FieldValidation("Warn")
    errors: list[str] = []
    try:
        checked = decode_object(copied(document), row, policy)
        errors += policy.warnings  # unknown fields of a file are errors, as with kubectl
        if namespace:
            ensure_namespace(registry, namespace)
        registry.create(row, namespace, checked)
    except StatusError as error:
        if error.reason != "AlreadyExists":
            errors.append(error.message)
        elif row.storage == "namespaces":
            _mark(registry, row, document)
    return subject, errors


def _mark(registry: ResourceRegistry, row: Resource, document: Document) -> None:
    """Merge labels and annotations into an existing namespace: selectors read those of `default`, too."""
    marks = {key: part(document, "metadata", key) for key in ("labels", "annotations")}

    def marked(current: Document) -> Document:
        metadata = current["metadata"]
        metadata |= {key: {**part(metadata, key), **added} for key, added in marks.items() if added}
        return current

    if any(marks.values()):
        registry.update(row, "", document["metadata"]["name"], marked)


def _remedy(api_version: str) -> str:
    group, _, version = api_version.partition("/")
    if gate := GATED_VERSIONS.get((group, version)):
        return f"switch it on by --feature-gates={gate}=true"
    return "put its CustomResourceDefinition into the file"
