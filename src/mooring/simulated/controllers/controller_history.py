"""The revision history of StatefulSets and DaemonSets, as ControllerRevisions.

`kubectl rollout history` lists them and `kubectl rollout undo` applies one. The newest is the owner's present template;
an equal older one is renumbered instead of created again.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import msgspec

from mooring.base.errors import ApiError, Fault
from mooring.client import ApiClient
from mooring.client.informer import Informer
from mooring.simulated.controllers.pod_templates import template_hash
from mooring.simulated.controllers.workload_records import ControllerRevision, DaemonSet, StatefulSet
from mooring.simulated.records import Document, controller_of, owned_by

_LONGEST_PREFIX = 223
_MOST_COLLISIONS = 20

Owner = StatefulSet | DaemonSet


class ControllerHistory:
    """The revisions of one controller; `hash_label` is their label with the template's hash."""

    def __init__(self, client: ApiClient, revisions: Informer[ControllerRevision], *, hash_label: str) -> None:
        self._client = client
        self._revisions = revisions
        self._hash_label = hash_label

    def of(self, owner: Owner) -> list[ControllerRevision]:
        """The owner's revisions, oldest first."""
        owned = [each for each in self._revisions.owned_by(owner.uid) if not each.is_terminating]
        return sorted(owned, key=lambda each: (each.revision, each.metadata.creation_timestamp or "", each.name))

    async def record(self, owner: Owner, observed: str = "") -> tuple[ControllerRevision, int]:
        """The revision of the owner's present template, created if needed, and the collision count.

        `observed` is the revision in the owner's status, if that is of the present template. Without any history, as
        when only the owner and its pods were restored, it is created under that name, which the pods reference.
        """
        history, collisions = self.of(owner) or await self._adopted(owner), owner.status.collision_count
        if (known := next((each for each in history if each.name == observed), None)) is not None:
            return known, collisions
        data = revision_data(owner.spec.template)
        equal = [each for each in history if each.data == data]
        if not equal:
            name = observed if not history else ""
            return await self._create(owner, data, next_number(history), name)
        if equal[-1] is not history[-1]:
            return await self._renumber(equal[-1], next_number(history)), collisions
        return equal[-1], collisions

    async def delete(self, revisions: Sequence[ControllerRevision]) -> None:
        for each in revisions:
            try:
                await self._client.delete(ControllerRevision.KIND, each.name, each.namespace, uid=each.uid)
            except ApiError as error:
                if error.code not in (404, 409):
                    raise

    async def _create(self, owner: Owner, data: Document, number: int, name: str) -> tuple[ControllerRevision, int]:
        first = owner.status.collision_count
        for collisions in range(first, first + _MOST_COLLISIONS):
            known_hash = name.removeprefix(f"{owner.name}-") if collisions == first else ""
            hashed = known_hash or template_hash(owner.spec.template, collisions)
            document = self._document(owner, data, number, hashed)
            try:
                created = await self._client.create(ControllerRevision.KIND, document, owner.namespace)
            except ApiError as error:
                if error.reason != "AlreadyExists":
                    raise
                taken = document["metadata"]["name"]
                found = await self._client.get_as(ControllerRevision, taken, owner.namespace)
                controller = controller_of(found)
                if found.data != data or controller is None or controller[2] != owner.uid:
                    continue
            else:
                found = msgspec.convert(created, ControllerRevision)
            self._revisions.cache_write(found)
            return found, collisions
        raise Fault(f"{_MOST_COLLISIONS} names for a revision of {owner.key} are in use")

    async def _adopted(self, owner: Owner) -> list[ControllerRevision]:
        """Adopt the orphaned revisions of the owner's selector."""
        for each in list(self._revisions.all()):
            is_orphan = each.namespace == owner.namespace and controller_of(each) is None and not each.is_terminating
            if is_orphan and owner.spec.selector.matches(each.labels):
                await self._patch(each, {"metadata": {"uid": each.uid, "ownerReferences": owned_by(owner)}})
        return self.of(owner)

    async def _renumber(self, revision: ControllerRevision, number: int) -> ControllerRevision:
        return await self._patch(revision, {"revision": number})

    async def _patch(self, revision: ControllerRevision, body: Document) -> ControllerRevision:
        document = await self._client.patch(ControllerRevision.KIND, revision.name, revision.namespace, body)
        patched = msgspec.convert(document, ControllerRevision)
        self._revisions.cache_write(patched)
        return patched

    def _document(self, owner: Owner, data: Document, number: int, hashed: str) -> Document:
        labels = (owner.spec.template.get("metadata") or {}).get("labels") or {}
        return {
            "metadata": {
                "name": f"{owner.name[:_LONGEST_PREFIX]}-{hashed}",
                "namespace": owner.namespace,
                "labels": {**labels, self._hash_label: hashed},
                "annotations": owner.metadata.annotations,
                "ownerReferences": owned_by(owner),
            },
            "data": data,
            "revision": number,
        }


def revision_data(template: Document) -> Document:
    """A strategic merge patch that restores the template."""
    return {"spec": {"template": {"$patch": "replace", **template}}}


def template_in(revision: ControllerRevision) -> Document:
    """The template that the revision restores."""
    return {key: value for key, value in revision.data["spec"]["template"].items() if key != "$patch"}


def next_number(history: Sequence[ControllerRevision]) -> int:
    return history[-1].revision + 1 if history else 1


def not_in_use(history: Sequence[ControllerRevision], in_use: Collection[str]) -> list[ControllerRevision]:
    """The revisions that are not live."""
    return [each for each in history if each.name not in in_use]
