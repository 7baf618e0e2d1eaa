"""The StatefulSet controller: pods, their claims and revisions. `stateful_sets` computes what a sync does."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import msgspec

from mooring.base.clock import Clock
from mooring.base.errors import ApiError, Fault
from mooring.base.log import Log
from mooring.client import ApiClient
from mooring.client.core_event_recorder import CoreEventRecorder, EventSource
from mooring.client.informer import Informer
from mooring.client.work_queue import WorkQueue
from mooring.objects.storage import PersistentVolumeClaim
from mooring.simulated.controllers.controller_history import ControllerHistory, not_in_use
from mooring.simulated.controllers.pod_control import PodControl, PodMessages, is_namespace_terminating, report_status
from mooring.simulated.controllers.replica_sets import seconds_until_available
from mooring.simulated.controllers.stateful_claims import (
    claim_documents,
    claim_name,
    claim_owners,
    is_of_an_earlier_pod,
    is_same_ownership,
)
from mooring.simulated.controllers.stateful_sets import (
    POD_NAME,
    REVISION,
    by_ordinal,
    identity,
    next_step,
    revision_for,
    stateful_pod,
    stateful_set_status,
)
from mooring.simulated.controllers.workload_records import ControllerRevision, StatefulSet
from mooring.simulated.records import Document, PodRecord, controller_of

HASH_LABEL = "controller.kubernetes.io/hash"
_SOURCE = EventSource("statefulset-controller")
_MESSAGES = PodMessages(
    created="Create Pod {pod} in StatefulSet {owner} successful",
    create_failed="Create Pod {pod} in StatefulSet {owner} failed error: {error}",
    deleted="Delete Pod {pod} in StatefulSet {owner} successful",
    delete_failed="Delete Pod {pod} in StatefulSet {owner} failed error: {error}",
)


class StatefulSetController:
    """Syncs StatefulSets when they, their pods or claims change."""

    def __init__(
        self,
        client: ApiClient,
        stateful_sets: Informer[StatefulSet],
        revisions: Informer[ControllerRevision],
        pods: Informer[PodRecord],
        claims: Informer[PersistentVolumeClaim],
        events: CoreEventRecorder,
        *,
        clock: Clock,
    ) -> None:
        self._client = client
        self._stateful_sets = stateful_sets
        self._claims = claims
        self._events = events
        self._clock = clock
        self._history = ControllerHistory(client, revisions, hash_label=HASH_LABEL)
        self._control = PodControl(client, pods, events, _SOURCE, messages=_MESSAGES)
        self._queue = WorkQueue("statefulset", self._sync, clock=clock, log=Log("workloads"), workers=8)
        stateful_sets.subscribe(changed=lambda each: self._queue.add(each.key), deleted=self._control.forget)
        pods.subscribe(changed=self._pod_changed, deleted=self._pod_changed)
        claims.subscribe(deleted=self._claim_deleted)

    def tasks(self) -> dict[str, Callable[[], Awaitable[None]]]:
        return {"statefulsets": self._queue.run}

    def _pod_changed(self, pod: PodRecord) -> None:
        owner = controller_of(pod)
        if owner is not None and owner[0] == "StatefulSet":
            self._queue.add(f"{pod.namespace}/{owner[1]}")

    def _claim_deleted(self, claim: PersistentVolumeClaim) -> None:
        """A pod may wait for the deletion of an earlier pod's claim, or need a new one."""
        for owner in self._stateful_sets.all():
            prefixes = tuple(f"{template.name}-{owner.name}-" for template in owner.spec.volume_claim_templates)
            if owner.namespace == claim.namespace and claim.name.startswith(prefixes):
                self._queue.add(owner.key)

    async def _sync(self, key: str) -> None:
        owner = self._stateful_sets.get(key)
        if owner is None or owner.is_terminating:
            return
        is_observed = owner.status.observed_generation == owner.metadata.generation
        try:
            update, collisions = await self._history.record(owner, owner.status.update_revision if is_observed else "")
        except ApiError as error:
            if is_namespace_terminating(error):
                return
            raise
        await self._control.adopt(owner, owner.spec.selector)
        history = self._history.of(owner)
        current = next((each for each in history if each.name == owner.status.current_revision), update)
        await self._step(owner, current, update)
        pods = self._control.pods_until_deleted(owner)
        await self._report(owner, pods, current.name, update.name, collisions)
        in_use = {current.name, update.name, *(pod.labels.get(REVISION, "") for pod in pods)}
        if owner.spec.revision_history_limit >= 0:
            old = not_in_use(history, in_use)
            await self._history.delete(old[: max(0, len(old) - owner.spec.revision_history_limit)])

    async def _step(self, owner: StatefulSet, current: ControllerRevision, update: ControllerRevision) -> None:
        placed = by_ordinal(owner, self._control.pods_until_deleted(owner))
        step = next_step(owner, list(placed.values()), update.name, self._clock.now())
        for ordinal, pod in placed.items():
            await self._repair(owner, ordinal, pod)
        revisions = {ordinal: revision_for(owner, ordinal, current, update) for ordinal in step.create}
        await self._create(owner, revisions)
        await self._control.delete(owner, step.delete)

    async def _repair(self, owner: StatefulSet, ordinal: int, pod: PodRecord) -> None:
        """Restore what the pod has lost: its claims while it is pending, and its identity labels."""
        if pod.is_terminating:
            return
        if pod.status.phase == "Pending" and ordinal in owner.ordinals:
            await self._create_claims(owner, ordinal)
        await self._update_claim_owners(owner, ordinal, pod)
        if pod.labels.get(POD_NAME) != pod.name:
            labels = {"metadata": {"uid": pod.uid, "labels": identity(owner, ordinal)}}
            await self._client.patch(PodRecord.KIND, pod.name, pod.namespace, labels)
            self._record(owner, f"Update Pod {pod.name} in StatefulSet {owner.name} successful", "SuccessfulUpdate")

    # Creation of pods and claims.

    async def _create(self, owner: StatefulSet, revisions: dict[int, ControllerRevision]) -> None:
        ordinals = [ordinal for ordinal in revisions if not self._has_claims_of_an_earlier_pod(owner, ordinal)]
        await asyncio.gather(*(self._create_claims(owner, ordinal) for ordinal in ordinals))
        pods = [stateful_pod(owner, ordinal, revisions[ordinal]) for ordinal in ordinals]
        await self._control.create(owner, pods)

    def _has_claims_of_an_earlier_pod(self, owner: StatefulSet, ordinal: int) -> bool:
        if owner.spec.persistent_volume_claim_retention_policy.when_scaled == "Retain":
            return False
        return any(
            is_of_an_earlier_pod(_references(claim), f"{owner.name}-{ordinal}")
            for claim in self._claims_of(owner, ordinal)
        )

    async def _create_claims(self, owner: StatefulSet, ordinal: int) -> None:
        for document in claim_documents(owner, ordinal):
            await self._create_claim(owner, document, f"{owner.name}-{ordinal}")

    async def _create_claim(self, owner: StatefulSet, document: Document, pod: str) -> None:
        name = document["metadata"]["name"]
        present = self._claims.get(f"{owner.namespace}/{name}")
        if present is not None:
            if present.metadata.deletion_timestamp is not None:
                raise Fault(f"pvc {name} is being deleted")
            return
        about = f"Create Claim {name}"
        try:
            created = await self._client.create(PersistentVolumeClaim.KIND, document, owner.namespace)
        except ApiError as error:
            if error.reason == "AlreadyExists" or is_namespace_terminating(error):
                return
            message = f"{about} for Pod {pod} in StatefulSet {owner.name} failed error: {error}"
            self._record(owner, message, "FailedCreate", warning=True)
            raise
        self._claims.cache_write(msgspec.convert(created, PersistentVolumeClaim))
        self._record(owner, f"{about} Pod {pod} in StatefulSet {owner.name} success", "SuccessfulCreate")

    # Owners of claims.

    def _claims_of(self, owner: StatefulSet, ordinal: int) -> list[PersistentVolumeClaim]:
        names = [claim_name(owner, template, ordinal) for template in owner.spec.volume_claim_templates]
        found = (self._claims.get(f"{owner.namespace}/{name}") for name in names)
        return [claim for claim in found if claim is not None and claim.metadata.deletion_timestamp is None]

    async def _update_claim_owners(self, owner: StatefulSet, ordinal: int, pod: PodRecord) -> None:
        """Set the owners of the claims according to the retention policy."""
        for claim in self._claims_of(owner, ordinal):
            present = _references(claim)
            if is_same_ownership(present, claim_owners(owner, pod, present)):
                continue
            # Computed from the server's object: references have fields that we do not decode.
            metadata = (await self._client.get(PersistentVolumeClaim.KIND, claim.name, claim.namespace))["metadata"]
            wanted = claim_owners(owner, pod, metadata.get("ownerReferences") or [])
            body = {"metadata": {"resourceVersion": metadata["resourceVersion"], "ownerReferences": wanted}}
            patched = await self._client.patch(
                PersistentVolumeClaim.KIND, claim.name, claim.namespace, body, form="merge"
            )
            self._claims.cache_write(msgspec.convert(patched, PersistentVolumeClaim))

    def _record(self, owner: StatefulSet, message: str, reason: str, *, warning: bool = False) -> None:
        self._events.record(owner, _SOURCE, reason, message, warning=warning)

    async def _report(
        self, owner: StatefulSet, pods: Sequence[PodRecord], current: str, update: str, collisions: int
    ) -> None:
        now = self._clock.now()
        status = stateful_set_status(owner, pods, current, update, collisions, now)
        await report_status(self._client, self._stateful_sets, owner, owner.status, status)
        wait = seconds_until_available(pods, owner.spec.min_ready_seconds, now)
        if wait is not None:
            self._queue.add_after(owner.key, wait)


def _references(claim: PersistentVolumeClaim) -> list[Document]:
    references: list[Document] = msgspec.to_builtins(claim.metadata.owner_references)
    return references
