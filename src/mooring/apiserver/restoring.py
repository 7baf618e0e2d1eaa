"""Restores a dump of a real cluster: objects are stored as another API server stored them.

Namespaces and definitions of custom resources are restored first, whatever the order of the dump; missing namespaces
are created. Missing owners stay referenced by their dependents. One kind of owner is created: where a dump has
Deployments and pods without the ReplicaSets between them, the Deployment controller would create every pod
a second time.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from mooring.apiserver.documents import Document, copied, items_of, part
from mooring.apiserver.negotiation import decode_object
from mooring.apiserver.options import FieldValidation
from mooring.apiserver.registry import ResourceRegistry
from mooring.apiserver.resources import Resource
from mooring.apiserver.status import StatusError
from mooring.apiserver.strategies.workloads import selector_matches
from mooring.base.errors import Problem

HASH_LABEL = "pod-template-hash"
_DEFINITION = "CustomResourceDefinition"
_MAX_NAMED = 10
_MAX_QUOTED = 3


@dataclass
class Restored:
    """The result of restoring a dump."""

    objects: int = 0
    unserved: Counter[str] = field(default_factory=Counter)
    """Kinds that this server does not serve, with the number of their objects; they are left out."""
    dropped: Counter[str] = field(default_factory=Counter)
    """Unknown fields, which are dropped."""
    unusual: list[Problem] = field(default_factory=list)
    """What validation would refuse in an object that is created. It was accepted by the server that stored it."""
    problems: list[Problem] = field(default_factory=list)
    """Objects that cannot be read (fields of a wrong type, definitions without names or versions), and invalid ones
    that no API server returned in this form."""

    def sentences(self) -> Iterator[str]:
        """Warnings for the operator, one sentence each."""
        if self.unserved:
            yield f"Left out, because the embedded API server does not serve their kind: {_listed(self.unserved)}."
        if self.dropped:
            yield f"Dropped fields that Kubernetes v1.36 does not have: {_listed(self.dropped)}."
        if self.unusual:
            named = [
                f"{each.path}{f' (line {each.line})' if each.line else ''}: {each.message}"
                for each in self.unusual[:_MAX_QUOTED]
            ]
            rest = len(self.unusual) - len(named)
            more = f"; and {rest} more" if rest else ""
            yield f"Kept as it is, though Kubernetes v1.36 would refuse to create it: {'; '.join(named)}{more}."


def _listed(counted: Counter[str]) -> str:
    named = [f"{name} ({number})" for name, number in sorted(counted.items())]
    rest = len(named) - _MAX_NAMED
    return ", ".join(named[:_MAX_NAMED]) + (f" and {rest} more" if rest > 0 else "")


def restore(
    registry: ResourceRegistry,
    documents: Iterable[Document],
    line_of: Callable[[Document], int | None] = lambda _: None,
) -> Restored:
    """Store the objects. Unreadable ones are listed in the result, with their lines where those are known."""
    restored = Restored()
    waiting = list(documents)
    for is_due in (_is_namespace, _is_definition, _is_anything):
        due = [document for document in waiting if is_due(document)]
        waiting = [document for document in waiting if not is_due(document)]
        if is_due is _is_anything:
            due += _missing_replica_sets(due)
        for document in due:
            _restore_one(registry, document, restored, line_of)
    return restored


def _restore_one(
    registry: ResourceRegistry, document: Document, restored: Restored, line_of: Callable[[Document], int | None]
) -> None:
    row = registry.table.by_kind(document["apiVersion"], document["kind"])
    if row is None or "create" not in row.verbs or "get" not in row.verbs:
        restored.unserved[f"{document['apiVersion']} {document['kind']}"] += 1
        return
    metadata = document["metadata"]
    namespace = (metadata.get("namespace") or "default") if row.namespaced else ""
    name = f"{namespace}/{metadata.get('name')}" if namespace else metadata.get("name")
    policy = FieldValidation("Warn")
    try:
        checked = decode_object(copied(document), row, policy)
        if namespace:
            ensure_namespace(registry, namespace)
        unusual = registry.restore(row, namespace, checked)
    except StatusError as error:
        restored.problems.append(Problem(f'{row.kind} "{name}"', error.message, line_of(document)))
        return
    restored.objects += 1
    found = [Problem(f'{row.kind} "{name}"', str(error), line_of(document)) for error in unusual]
    (restored.unusual if _was_served(metadata) else restored.problems).extend(found)
    for warning in policy.warnings:
        restored.dropped[f"{row.kind} {_field_in(warning)}"] += 1


def _was_served(metadata: Document) -> bool:
    """Whether an API server returned the object as it is: each of them has a uid and an age."""
    return bool(metadata.get("uid") and metadata.get("creationTimestamp"))


def _field_in(warning: str) -> str:
    return warning.removeprefix('unknown field "').removesuffix('"')


def ensure_namespace(registry: ResourceRegistry, name: str) -> None:
    """Create the namespace, unless it exists."""
    if registry.store.stored("namespaces", "", name) is None:
        registry.create(
            _namespaces(registry), "", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        )


def _namespaces(registry: ResourceRegistry) -> Resource:
    row = registry.table.find("", "v1", "namespaces")
    assert row is not None
    return row


def _is_namespace(document: Document) -> bool:
    return (document["apiVersion"], document["kind"]) == ("v1", "Namespace")


def _is_definition(document: Document) -> bool:
    return document["kind"] == _DEFINITION and str(document["apiVersion"]).startswith("apiextensions.k8s.io/")


def _is_anything(_: Document) -> bool:
    return True


def _missing_replica_sets(documents: list[Document]) -> list[Document]:
    """For each Deployment without a ReplicaSet: the one that its newest pods reference by name and uid."""
    present = {_owner_uid(document) for document in documents if document["kind"] == "ReplicaSet"}
    deployments = [
        document
        for document in documents
        if (document["apiVersion"], document["kind"]) == ("apps/v1", "Deployment")
        and part(document, "metadata").get("uid") not in present
    ]
    orphans: dict[str, list[tuple[str, Document, Document]]] = defaultdict(list)
    for pod in documents if deployments else ():
        if pod["kind"] == "Pod" and (owner := _controller(pod)).get("kind") == "ReplicaSet":
            metadata = part(pod, "metadata")
            age = str(metadata.get("creationTimestamp", ""))
            orphans[str(metadata.get("namespace", ""))].append((age, owner, pod))
    made = []
    for deployment in deployments:
        namespace = str(part(deployment, "metadata").get("namespace", ""))
        pods = [each for each in orphans[namespace] if _is_selected(deployment, each[2])]
        if pods:
            _, owner, newest = max(pods, key=lambda each: each[0])
            size = sum(other.get("uid") == owner.get("uid") for _, other, _ in pods)
            made.append(_replica_set(deployment, owner, newest, size))
    return made


def _is_selected(deployment: Document, pod: Document) -> bool:
    selector = part(deployment, "spec").get("selector")
    return isinstance(selector, dict) and selector_matches(selector, part(pod, "metadata", "labels"))


def _controller(document: Document) -> Document:
    owners = items_of(part(document, "metadata"), "ownerReferences")
    return next((owner for owner in owners if isinstance(owner, dict) and owner.get("controller")), {})


def _owner_uid(document: Document) -> str:
    return str(_controller(document).get("uid", ""))


def _replica_set(deployment: Document, owner: Document, pod: Document, size: int) -> Document:
    metadata, spec = part(deployment, "metadata"), part(deployment, "spec")
    hashed = part(pod, "metadata", "labels").get(HASH_LABEL)
    labels = {HASH_LABEL: hashed} if hashed else {}
    template = copied(part(spec, "template"))
    template_metadata = template.setdefault("metadata", {})
    template_metadata["labels"] = {**part(template_metadata, "labels"), **labels}
    selector = copied(part(spec, "selector"))
    selector["matchLabels"] = {**part(selector, "matchLabels"), **labels}
    reference = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "name": metadata.get("name"),
        "uid": metadata.get("uid"),
        "controller": True,
        "blockOwnerDeletion": True,
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "name": owner.get("name"),
            "namespace": metadata.get("namespace"),
            "uid": owner.get("uid"),
            "creationTimestamp": metadata.get("creationTimestamp"),
            "labels": template_metadata["labels"],
            "annotations": {
                key: value for key, value in part(metadata, "annotations").items() if key.endswith("/revision")
            },
            "ownerReferences": [reference],
        },
        "spec": {"replicas": size, "selector": selector, "template": template},
    }
