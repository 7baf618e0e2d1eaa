"""The Deployment controller: rolls Deployments out through ReplicaSets. `deployments` computes the next step."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import msgspec

from mooring.base.clock import Clock
from mooring.base.errors import ApiError
from mooring.base.log import Log
from mooring.client import ApiClient
from mooring.client.core_event_recorder import CoreEventRecorder, EventSource
from mooring.client.informer import Informer
from mooring.client.work_queue import WorkQueue
from mooring.simulated.controllers.deployment_status import deployment_status, progressing, seconds_until_overdue
from mooring.simulated.controllers.deployments import REVISION, Scaling, next_step, split
from mooring.simulated.controllers.pod_control import is_namespace_terminating, report_status
from mooring.simulated.controllers.workload_records import Deployment, ReplicaSet
from mooring.simulated.records import Document, PodRecord, Record, controller_of, owned_by

_DEPLOYMENTS = EventSource("deployment-controller")


class DeploymentController:
    """Rolls out Deployments."""

    def __init__(
        self,
        client: ApiClient,
        deployments: Informer[Deployment],
        replica_sets: Informer[ReplicaSet],
        pods: Informer[PodRecord],
        events: CoreEventRecorder,
        *,
        clock: Clock,
    ) -> None:
        self._client = client
        self._deployments = deployments
        self._replica_sets = replica_sets
        self._pods = pods
        self._events = events
        self._clock = clock
        self._queue = WorkQueue("deployment", self._sync, clock=clock, log=Log("workloads"), workers=8)
        deployments.subscribe(changed=lambda each: self._queue.add(each.key))
        replica_sets.subscribe(changed=self._owned_changed, deleted=self._owned_changed)
        pods.subscribe(deleted=self._pod_deleted)

    def tasks(self) -> dict[str, Callable[[], Awaitable[None]]]:
        return {"deployments": self._queue.run}

    def _owned_changed(self, owned: Record) -> None:
        owner = controller_of(owned)
        if owner is not None and owner[0] == "Deployment":
            self._queue.add(f"{owned.namespace}/{owner[1]}")

    def _pod_deleted(self, pod: PodRecord) -> None:
        """A Deployment with strategy Recreate waits until the last old pod is deleted."""
        owner = controller_of(pod)
        if owner is not None and (replica_set := self._replica_sets.get(f"{pod.namespace}/{owner[1]}")) is not None:
            self._owned_changed(replica_set)

    def _owned(self, owner: Deployment) -> list[ReplicaSet]:
        return [each for each in self._replica_sets.owned_by(owner.uid) if not each.is_terminating]

    async def _sync(self, key: str) -> None:
        owner = self._deployments.get(key)
        if owner is None:
            return
        if not owner.is_terminating:
            await self._step(owner)
        await self._report(owner)

    async def _step(self, owner: Deployment) -> None:
        owned = self._owned(owner)
        _, old = split(owner, owned)
        step = next_step(owner, owned, sum(self._unfinished_pods(each) for each in old))
        if step.create is not None:
            await self._create(owner, step.create)
        for scaling in step.scale:
            await self._scale(owner, scaling)
        for replica_set, stale in step.annotate:
            await self._patch(replica_set, {"metadata": {"annotations": stale}})
        for old_set in step.clean_up:
            await self._client.delete(ReplicaSet.KIND, old_set.name, old_set.namespace, uid=old_set.uid)
        if step.revision and owner.metadata.annotations.get(REVISION) != step.revision:
            revision = {"metadata": {"annotations": {REVISION: step.revision}}}
            await self._client.patch(Deployment.KIND, owner.name, owner.namespace, revision)

    def _unfinished_pods(self, replica_set: ReplicaSet) -> int:
        return sum(not pod.is_finished for pod in self._pods.owned_by(replica_set.uid))

    async def _create(self, owner: Deployment, document: Document) -> None:
        document["metadata"]["ownerReferences"] = owned_by(owner)
        name = document["metadata"]["name"]
        try:
            created = await self._client.create(ReplicaSet.KIND, document, owner.namespace)
        except ApiError as error:
            if is_namespace_terminating(error):
                return
            if error.reason != "AlreadyExists":
                message = f'Failed to create new replica set "{name}": {error}'
                self._events.record(owner, _DEPLOYMENTS, "ReplicaSetCreateError", message, warning=True)
                raise
            await self._resolve_collision(owner, name)
            return
        self._replica_sets.cache_write(msgspec.convert(created, ReplicaSet))
        if size := document["spec"]["replicas"]:
            message = f"Scaled up replica set {name} from 0 to {size}"
            self._events.record(owner, _DEPLOYMENTS, "ScalingReplicaSet", message)

    async def _resolve_collision(self, owner: Deployment, name: str) -> None:
        """A ReplicaSet of that name exists: the Deployment's own, or a hash collision that needs another name."""
        found = await self._client.get_as(ReplicaSet, name, owner.namespace)
        controller = controller_of(found)
        if controller is not None and controller[2] == owner.uid:
            self._replica_sets.cache_write(found)
            self._queue.add(owner.key)
            return
        collisions = {"status": {"collisionCount": owner.status.collision_count + 1}}
        await self._client.patch(Deployment.KIND, owner.name, owner.namespace, collisions, subresource="status")

    async def _scale(self, owner: Deployment, scaling: Scaling) -> None:
        await self._patch(scaling.replica_set, {"spec": {"replicas": scaling.replicas}})
        self._events.record(owner, _DEPLOYMENTS, "ScalingReplicaSet", scaling.message)

    async def _patch(self, replica_set: ReplicaSet, body: Document) -> None:
        patched = await self._client.patch(ReplicaSet.KIND, replica_set.name, replica_set.namespace, body)
        self._replica_sets.cache_write(msgspec.convert(patched, ReplicaSet))

    async def _report(self, owner: Deployment) -> None:
        now = self._clock.now()
        status = deployment_status(owner, self._owned(owner), now)
        await report_status(self._client, self._deployments, owner, owner.status, status)
        wait = seconds_until_overdue(owner, progressing(owner), now)
        if wait is not None and wait > 0:
            self._queue.add_after(owner.key, wait)
