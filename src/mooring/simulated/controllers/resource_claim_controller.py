"""The resource claim controller: creates claims of pods from templates, and deallocates claims that are not in use.

The pod's status names the claim that was created for it, and schedulers wait for that. When the last pod that a claim
is reserved for has finished, the claim is deallocated; a claim that was created for the pod is deleted. With the gate
DRAWorkloadResourceClaims the same is done for PodGroups, and pods of a group are given the claims of the group.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import msgspec

from mooring.base.clock import Clock
from mooring.base.errors import ApiError, Fault
from mooring.base.log import Log
from mooring.client import ApiClient
from mooring.client.core_event_recorder import CoreEventRecorder, EventSource
from mooring.client.informer import Informer
from mooring.client.work_queue import WorkQueue
from mooring.objects.core import PodResourceClaim, PodResourceClaimStatus
from mooring.objects.pod_groups import GROUP
from mooring.simulated.controllers.pod_group_claims import POD_GROUPS, PodGroupClaims, is_pod_group, names_of
from mooring.simulated.records import (
    ClaimRecord,
    ClaimTemplate,
    Document,
    PodClaimRecord,
    PodClaimStatus,
    PodGroupRecord,
    PodRecord,
    controller_of,
    owned_by,
)

FOR_POD_CLAIM = "resource.kubernetes.io/pod-claim-name"
"""The annotation of a claim from a template: which of the pod's claims it is."""

PROTECTED = "resource.kubernetes.io/delete-protection"
"""The finalizer of a claim while it is allocated."""

MAX_RESERVED = 256
_MAX_BASE = 57
"""A name has 63 characters; the server adds five."""

Owner = PodRecord | PodGroupRecord
Entry = PodClaimRecord | PodResourceClaim
"""An entry of `spec.resourceClaims`: of a pod, or of a group."""

_SOURCE = EventSource("resource_claim")
_WORKERS = 8


class ResourceClaimController:
    """Creates, deallocates and deletes ResourceClaims."""

    def __init__(
        self,
        client: ApiClient,
        pods: Informer[PodRecord],
        claims: Informer[ClaimRecord],
        templates: Informer[ClaimTemplate],
        events: CoreEventRecorder,
        *,
        clock: Clock,
        pod_groups: Informer[PodGroupRecord] | None = None,
    ) -> None:
        """`pod_groups`: with the gate DRAWorkloadResourceClaims."""
        self._client = client
        self._pods = pods
        self._claims = claims
        self._templates = templates
        self._events = events
        self._groups = PodGroupClaims(client, pod_groups, pods)
        log = Log("devices")
        self._pod_queue = WorkQueue("claims of pod", self._sync_pod, clock=clock, log=log, workers=_WORKERS)
        self._claim_queue = WorkQueue("device claim", self._sync_claim, clock=clock, log=log, workers=_WORKERS)
        self._group_queue = WorkQueue("claims of pod group", self._sync_group, clock=clock, log=log, workers=_WORKERS)
        if pod_groups is not None:
            pod_groups.subscribe(changed=self._group_changed, deleted=self._group_deleted)
        pods.subscribe(changed=self._pod_changed, deleted=self._pod_deleted)
        claims.subscribe(changed=self._claim_changed, deleted=self._claim_deleted)
        templates.subscribe(changed=self._template_changed)

    def tasks(self) -> dict[str, Callable[[], Awaitable[None]]]:
        return {
            "claims of pods": self._pod_queue.run,
            "device claims": self._claim_queue.run,
            "claims of pod groups": self._group_queue.run,
        }

    # Event handlers

    def _pod_changed(self, pod: PodRecord) -> None:
        if pod.spec.resource_claims and not _is_done(pod):
            self._pod_queue.add(pod.key)
        elif _is_done(pod):
            self._enqueue_claims_of(pod)

    def _pod_deleted(self, pod: PodRecord) -> None:
        self._enqueue_claims_of(pod)

    def _enqueue_claims_of(self, pod: PodRecord) -> None:
        names = {name for each in pod.spec.resource_claims if (name := _name_of(pod, each))}
        names |= {claim.name for claim in self._claims.owned_by(pod.uid)}
        for name in names:
            self._claim_queue.add(f"{pod.namespace}/{name}")

    def _group_changed(self, group: PodGroupRecord) -> None:
        """Its pods wait for the claims that its status names."""
        if group.spec.resource_claims:
            self._group_queue.add(group.key)
        for pod in self._groups.members(group):
            self._pod_changed(pod)

    def _group_deleted(self, group: PodGroupRecord) -> None:
        for name in names_of(group) | {claim.name for claim in self._claims.owned_by(group.uid)}:
            self._claim_queue.add(f"{group.namespace}/{name}")

    def _claim_changed(self, claim: ClaimRecord) -> None:
        self._claim_queue.add(claim.key)

    def _claim_deleted(self, claim: ClaimRecord) -> None:
        """A claim that an active pod or its group still needs is created again."""
        owner = controller_of(claim)
        if owner is not None and owner[0] == "Pod":
            self._pod_queue.add(f"{claim.namespace}/{owner[1]}")
        elif owner is not None and owner[0] == "PodGroup" and self._groups.groups is not None:
            self._group_queue.add(f"{claim.namespace}/{owner[1]}")

    def _template_changed(self, template: ClaimTemplate) -> None:
        for pod in self._pods.all():
            wanted = (each.resource_claim_template_name for each in pod.spec.resource_claims)
            if pod.namespace == template.namespace and template.name in wanted:
                self._pod_changed(pod)
        for group in self._groups.groups.all() if self._groups.groups is not None else ():
            wanted = (each.resource_claim_template_name for each in group.spec.resource_claims)
            if group.namespace == template.namespace and template.name in wanted:
                self._group_queue.add(group.key)

    # Groups

    async def _sync_group(self, key: str) -> None:
        group = self._groups.groups.get(key) if self._groups.groups is not None else None
        if group is None or group.is_terminating:
            return
        created = []
        for each in group.spec.resource_claims:
            if each.resource_claim_template_name and not self._group_has_claim(group, each):
                claim = self._existing_claim(group, each) or await self._create(group, each)
                created.append({"name": each.name, "resourceClaimName": claim.name})
        if created:
            body = {"metadata": {"uid": group.uid}, "status": {"resourceClaimStatuses": created}}
            await self._client.patch(PodGroupRecord.KIND, group.name, group.namespace, body, subresource="status")

    def _group_has_claim(self, group: PodGroupRecord, each: PodResourceClaim) -> bool:
        status = _status_of(group, each)
        if status is None or not status.resource_claim_name:
            return status is not None
        claim = self._claims.get(f"{group.namespace}/{status.resource_claim_name}")
        return claim is not None and _is_owned_by(claim, group)

    # Pods

    async def _sync_pod(self, key: str) -> None:
        pod = self._pods.get(key)
        if pod is None or pod.is_terminating or _is_done(pod) or self._groups.is_awaited(pod):
            return
        created = []
        for each in pod.spec.resource_claims:
            if each.resource_claim_template_name and not self._has_claim(pod, each):
                claim = await self._claim_for(pod, each)
                if claim is not None:
                    created.append({"name": each.name, "resourceClaimName": claim.name})
        if created:
            # The uid is a precondition: the pod may have been recreated under the same name.
            body = {"metadata": {"uid": pod.uid}, "status": {"resourceClaimStatuses": created}}
            await self._client.patch(PodRecord.KIND, pod.name, pod.namespace, body, subresource="status")
        if pod.spec.node_name:
            await self._reserve(pod)

    def _has_claim(self, pod: PodRecord, each: PodClaimRecord) -> bool:
        """The pod's status names the claim and it exists. (A status without a name: no claim is needed.)"""
        status = _status_of(pod, each)
        if status is None or not status.resource_claim_name:
            return status is not None
        claim = self._claims.get(f"{pod.namespace}/{status.resource_claim_name}")
        return claim is not None and (_is_owned_by(claim, pod) or self._groups.owns(claim, pod))

    async def _claim_for(self, pod: PodRecord, each: PodClaimRecord) -> ClaimRecord | None:
        """The claim that the pod's status is to name. A claim of its group is not created here."""
        if (group := self._groups.owner_of(pod, each)) is not None:
            return self._existing_claim(group, each)
        return self._existing_claim(pod, each) or await self._create(pod, each)

    def _existing_claim(self, owner: Owner, each: Entry) -> ClaimRecord | None:
        """A claim that was created before, also if the owner's status could not be written."""
        for claim in self._claims.owned_by(owner.uid):
            if claim.metadata.annotations.get(FOR_POD_CLAIM) == each.name:
                return claim
        return None

    async def _create(self, owner: Owner, each: Entry) -> ClaimRecord:
        template = self._templates.get(f"{owner.namespace}/{each.resource_claim_template_name}")
        try:
            if template is None:
                raise Fault(f'resource claim template "{each.resource_claim_template_name}" not found')
            created = await self._client.create(ClaimRecord.KIND, _claim_of(owner, each, template), owner.namespace)
        except Fault as error:
            message = f"{type(owner).KIND.kind}ResourceClaim {each.name}: {error}"
            self._events.record(owner, _SOURCE, "FailedResourceClaimCreation", message, warning=True)
            raise
        claim = msgspec.convert(created, ClaimRecord)
        self._claims.cache_write(claim)
        return claim

    async def _reserve(self, pod: PodRecord) -> None:
        """Reserve allocated claims for a pod that was bound without a scheduler that does so."""
        for each in pod.spec.resource_claims:
            name = _name_of(pod, each)
            claim = self._claims.get(f"{pod.namespace}/{name}") if name else None
            if claim is None or claim.status.allocation is None:
                continue
            reserved = claim.status.reserved_for
            is_reserved = any(user["uid"] == pod.uid for user in reserved) or self._groups.is_reserved(claim, pod)
            if len(reserved) < MAX_RESERVED and not is_reserved:
                user = _consumer(pod, self._groups.owner_of(pod, each))
                await self._write(claim, {"status": {"reservedFor": [*reserved, user]}}, subresource="status")

    # Claims

    async def _sync_claim(self, key: str) -> None:
        claim = self._claims.get(key)
        if claim is None:
            return
        remaining = [user for user in claim.status.reserved_for if not await self._has_ended(claim, user)]
        if len(remaining) < len(claim.status.reserved_for):
            status: Document = {"reservedFor": remaining or None}
            if not remaining and _is_protected(claim):
                status["allocation"] = None
            claim = await self._write(claim, {"status": status}, subresource="status")
            if claim.status.allocation is None:
                claim = await self._unprotect(claim)
        elif claim.is_terminating and not remaining and _is_protected(claim):
            if claim.status.allocation is not None:
                claim = await self._write(claim, {"status": {"allocation": None}}, subresource="status")
            claim = await self._unprotect(claim)
        if not remaining and await self._has_lost_its_pod(claim):
            await self._delete(claim)

    async def _unprotect(self, claim: ClaimRecord) -> ClaimRecord:
        """Remove the finalizer, after a deallocation or of a terminating claim.

        A scheduler adds the finalizer before the allocation, in two requests. A claim with the finalizer alone is
        about to be allocated.
        """
        if not _is_protected(claim):
            return claim
        kept = [each for each in claim.metadata.finalizers if each != PROTECTED]
        return await self._write(claim, {"metadata": {"finalizers": kept or None}})

    async def _has_ended(self, claim: ClaimRecord, user: Document) -> bool:
        if is_pod_group(user):
            return await self._groups.is_gone(claim.namespace, user)
        if user.get("apiGroup") or user.get("resource") != "pods":
            return False  # another controller manages the reservation
        pod = await self._find_pod(claim.namespace, user["name"], user["uid"])
        return pod is None or pod.uid != user["uid"] or _is_done(pod)

    async def _has_lost_its_pod(self, claim: ClaimRecord) -> bool:
        owner = controller_of(claim)
        if owner is None or owner[0] != "Pod" or claim.is_terminating:
            return False
        pod = await self._find_pod(claim.namespace, owner[1], owner[2])
        return pod is None or pod.uid != owner[2] or _is_done(pod)

    async def _find_pod(self, namespace: str, name: str, uid: str) -> PodRecord | None:
        """From the cache, or else from the server: the watches of pods and claims are not synchronized. A pod whose
        deletion was watched is not looked for."""
        if (known := self._pods.get(f"{namespace}/{name}")) is not None:
            return known
        if self._pods.has_deleted(uid):
            return None
        try:
            return await self._client.get_as(PodRecord, name, namespace)
        except ApiError as error:
            if error.code != 404:
                raise
            return None

    async def _write(self, claim: ClaimRecord, body: Document, *, subresource: str | None = None) -> ClaimRecord:
        """Patch with the resourceVersion as precondition; a conflict is retried by the work queue."""
        metadata = {"resourceVersion": claim.metadata.resource_version, **body.get("metadata", {})}
        patched = await self._client.patch(
            ClaimRecord.KIND,
            claim.name,
            claim.namespace,
            {**body, "metadata": metadata},
            subresource=subresource,
            form="merge",
        )
        written = msgspec.convert(patched, ClaimRecord)
        self._claims.cache_write(written)
        return written

    async def _delete(self, claim: ClaimRecord) -> None:
        try:
            await self._client.delete(ClaimRecord.KIND, claim.name, claim.namespace, uid=claim.uid)
        except ApiError as error:
            if error.code not in (404, 409):
                raise


def _is_protected(claim: ClaimRecord) -> bool:
    return PROTECTED in claim.metadata.finalizers


def _is_done(pod: PodRecord) -> bool:
    """It does not run any more: it has finished, or is terminating without a node."""
    return pod.is_finished or (pod.is_terminating and not pod.spec.node_name)


def _name_of(pod: PodRecord, each: PodClaimRecord) -> str | None:
    """The claim's name; None if there is none (yet)."""
    if each.resource_claim_name:
        return each.resource_claim_name
    status = _status_of(pod, each)
    return status.resource_claim_name if status is not None else None


def _status_of(owner: Owner, each: Entry) -> PodClaimStatus | PodResourceClaimStatus | None:
    return next((status for status in owner.status.resource_claim_statuses if status.name == each.name), None)


def _is_owned_by(claim: ClaimRecord, owner: Owner) -> bool:
    controller = controller_of(claim)
    return controller is not None and controller[2] == owner.uid


def _consumer(pod: PodRecord, group: PodGroupRecord | None) -> Document:
    """What a claim of the pod is reserved for: the pod, or the group that the claim belongs to."""
    if group is None:
        return {"resource": "pods", "name": pod.name, "uid": pod.uid}
    return {"apiGroup": GROUP, "resource": POD_GROUPS, "name": group.name, "uid": group.uid}


def _claim_of(owner: Owner, each: Entry, template: ClaimTemplate) -> Document:
    metadata = template.spec.metadata
    made_for = {FOR_POD_CLAIM: each.name}
    [reference] = owned_by(owner)
    del reference["blockOwnerDeletion"]  # deleting the owner does not wait for its claims
    return {
        "metadata": {
            "generateName": _generate_name(owner.name, each.name),
            "ownerReferences": [reference],
            "annotations": (metadata.get("annotations") or {}) | made_for,
            "labels": metadata.get("labels") or {},
        },
        "spec": template.spec.spec,
    }


def _generate_name(owner: str, claim: str) -> str:
    """Names that are too long together are truncated in proportion, so that the claim's stays recognizable."""
    whole = f"{owner}-{claim}-"
    if len(whole) <= _MAX_BASE:
        return whole
    first, second = (name[: len(name) * _MAX_BASE // len(whole)] for name in (owner, claim))
    return f"{first}-{second}"
