"""The controllers that make pods of workloads: Deployment to ReplicaSet, ReplicaSet to Pods.

What should be done is decided in `deployments` and `replica_sets`; here it is done, told and asked again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import msgspec

from mooring.base.clock import Clock
from mooring.base.errors import ApiError, Fault
from mooring.base.log import Log
from mooring.client import ApiClient
from mooring.simulated.deployment_status import deployment_status, progressing, seconds_until_overdue
from mooring.simulated.deployments import REVISION, Scaling, next_step, split
from mooring.simulated.events import Events, Source
from mooring.simulated.records import Deployment, Document, PodRecord, Record, ReplicaSet, controller_of, owned_by
from mooring.simulated.replica_sets import plan_replicas, replica_set_status, seconds_until_available
from mooring.simulated.watching import Watched
from mooring.simulated.work_queue import WorkQueue

T = TypeVar("T", Deployment, ReplicaSet)

_DEPLOYMENTS = Source("deployment-controller")
_REPLICA_SETS = Source("replicaset-controller")


class ReplicaSets:
    """Keeps every ReplicaSet at its number of pods."""

    def __init__(
        self,
        client: ApiClient,
        replica_sets: Watched[ReplicaSet],
        pods: Watched[PodRecord],
        events: Events,
        *,
        clock: Clock,
        concurrency: int = 32,
    ) -> None:
        self._client = client
        self._replica_sets = replica_sets
        self._pods = pods
        self._events = events
        self._clock = clock
        self._removing: set[str] = set()
        self._free = asyncio.Semaphore(concurrency)
        self._work = WorkQueue("replicaset", self._sync, clock=clock, log=Log("workloads"), workers=8)
        replica_sets.subscribe(changed=lambda each: self._work.add(each.key))
        pods.subscribe(changed=self._pod_changed, deleted=self._pod_deleted)

    def tasks(self) -> dict[str, Callable[[], Awaitable[None]]]:
        return {"replicasets": self._work.run}

    def _pod_changed(self, pod: PodRecord) -> None:
        owner = controller_of(pod)
        if owner is not None and owner[0] == "ReplicaSet":
            self._work.add(f"{pod.namespace}/{owner[1]}")

    def _pod_deleted(self, pod: PodRecord) -> None:
        self._removing.discard(pod.uid)
        self._pod_changed(pod)

    async def _sync(self, key: str) -> None:
        owner = self._replica_sets.get(key)
        if owner is None:
            return
        if not owner.is_terminating:
            plan = plan_replicas(owner.spec.replicas, self._active(owner))
            if plan.create:
                await self._create(owner, plan.create)
            if plan.remove:
                await asyncio.gather(*(self._remove(owner, pod) for pod in plan.remove))
        await self._report(owner)

    def _active(self, owner: ReplicaSet) -> list[PodRecord]:
        return [
            pod
            for pod in self._pods.owned_by(owner.uid)
            if pod.is_active and pod.uid not in self._removing and owner.spec.selector.matches(pod.labels)
        ]

    async def _create(self, owner: ReplicaSet, count: int) -> None:
        """In batches that double, so that a template the server refuses is refused once and not five hundred times."""
        pod = pod_from_template(owner, owner.spec.template)
        batch = 1
        while count > 0:
            batch = min(batch, count)
            await asyncio.gather(*(self._create_one(owner, pod) for _ in range(batch)))
            count -= batch
            batch *= 2

    async def _create_one(self, owner: ReplicaSet, pod: Document) -> None:
        async with self._free:
            try:
                created = await self._client.create(PodRecord.KIND, pod, owner.namespace)
            except ApiError as error:
                if namespace_is_ending(error):
                    return
                self._events.record(owner, _REPLICA_SETS, "FailedCreate", f"Error creating: {error}", warning=True)
                raise
        self._pods.expect(msgspec.convert(created, PodRecord))
        message = f"Created pod: {created['metadata']['name']}"
        self._events.record(owner, _REPLICA_SETS, "SuccessfulCreate", message)

    async def _remove(self, owner: ReplicaSet, pod: PodRecord) -> None:
        self._removing.add(pod.uid)
        try:
            async with self._free:
                await self._client.delete(PodRecord.KIND, pod.name, pod.namespace, uid=pod.uid)
        except Fault as error:
            self._removing.discard(pod.uid)
            if isinstance(error, ApiError) and error.code in (404, 409):
                return
            self._events.record(owner, _REPLICA_SETS, "FailedDelete", f"Error deleting: {error}", warning=True)
            raise
        self._events.record(owner, _REPLICA_SETS, "SuccessfulDelete", f"Deleted pod: {pod.name}")

    async def _report(self, owner: ReplicaSet) -> None:
        now = self._clock.now()
        active = self._active(owner)
        await report_status(self._client, self._replica_sets, owner, replica_set_status(owner, active, now))
        wait = seconds_until_available(active, owner.spec.min_ready_seconds, now)
        if wait is not None:
            self._work.add_after(owner.key, wait)


class Deployments:
    """Rolls Deployments out."""

    def __init__(
        self,
        client: ApiClient,
        deployments: Watched[Deployment],
        replica_sets: Watched[ReplicaSet],
        pods: Watched[PodRecord],
        events: Events,
        *,
        clock: Clock,
    ) -> None:
        self._client = client
        self._deployments = deployments
        self._replica_sets = replica_sets
        self._pods = pods
        self._events = events
        self._clock = clock
        self._work = WorkQueue("deployment", self._sync, clock=clock, log=Log("workloads"), workers=8)
        deployments.subscribe(changed=lambda each: self._work.add(each.key))
        replica_sets.subscribe(changed=self._owned_changed, deleted=self._owned_changed)
        pods.subscribe(deleted=self._pod_deleted)

    def tasks(self) -> dict[str, Callable[[], Awaitable[None]]]:
        return {"deployments": self._work.run}

    def _owned_changed(self, owned: Record) -> None:
        owner = controller_of(owned)
        if owner is not None and owner[0] == "Deployment":
            self._work.add(f"{owned.namespace}/{owner[1]}")

    def _pod_deleted(self, pod: PodRecord) -> None:
        """A Deployment that recreates waits for the last old pod to go."""
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
        step = next_step(owner, owned, sum(self._living_pods(each) for each in old))
        if step.create is not None:
            await self._create(owner, step.create)
        for scaling in step.scale:
            await self._scale(owner, scaling)
        for replica_set, stale in step.annotate:
            await self._patch(replica_set, {"metadata": {"annotations": stale}})
        for forgotten in step.forget:
            await self._client.delete(ReplicaSet.KIND, forgotten.name, forgotten.namespace, uid=forgotten.uid)
        if step.revision and owner.metadata.annotations.get(REVISION) != step.revision:
            revision = {"metadata": {"annotations": {REVISION: step.revision}}}
            await self._client.patch(Deployment.KIND, owner.name, owner.namespace, revision)

    def _living_pods(self, replica_set: ReplicaSet) -> int:
        return sum(not pod.is_finished for pod in self._pods.owned_by(replica_set.uid))

    async def _create(self, owner: Deployment, document: Document) -> None:
        document["metadata"]["ownerReferences"] = owned_by(owner)
        name = document["metadata"]["name"]
        try:
            created = await self._client.create(ReplicaSet.KIND, document, owner.namespace)
        except ApiError as error:
            if namespace_is_ending(error):
                return
            if error.reason != "AlreadyExists":
                message = f'Failed to create new replica set "{name}": {error}'
                self._events.record(owner, _DEPLOYMENTS, "ReplicaSetCreateError", message, warning=True)
                raise
            await self._use_or_avoid(owner, name)
            return
        self._replica_sets.expect(msgspec.convert(created, ReplicaSet))
        if size := document["spec"]["replicas"]:
            message = f"Scaled up replica set {name} from 0 to {size}"
            self._events.record(owner, _DEPLOYMENTS, "ScalingReplicaSet", message)

    async def _use_or_avoid(self, owner: Deployment, name: str) -> None:
        """A ReplicaSet of that name exists: ours, and the watch is late; or another's, and ours needs another name."""
        found = await self._client.get_as(ReplicaSet, name, owner.namespace)
        controller = controller_of(found)
        if controller is not None and controller[2] == owner.uid:
            self._replica_sets.expect(found)
            self._work.add(owner.key)
            return
        collisions = {"status": {"collisionCount": owner.status.collision_count + 1}}
        await self._client.patch(Deployment.KIND, owner.name, owner.namespace, collisions, subresource="status")

    async def _scale(self, owner: Deployment, scaling: Scaling) -> None:
        await self._patch(scaling.replica_set, {"spec": {"replicas": scaling.replicas}})
        self._events.record(owner, _DEPLOYMENTS, "ScalingReplicaSet", scaling.message)

    async def _patch(self, replica_set: ReplicaSet, body: Document) -> None:
        patched = await self._client.patch(ReplicaSet.KIND, replica_set.name, replica_set.namespace, body)
        self._replica_sets.expect(msgspec.convert(patched, ReplicaSet))

    async def _report(self, owner: Deployment) -> None:
        now = self._clock.now()
        status = deployment_status(owner, self._owned(owner), now)
        await report_status(self._client, self._deployments, owner, status)
        wait = seconds_until_overdue(owner, progressing(owner), now)
        if wait is not None and wait > 0:
            self._work.add_after(owner.key, wait)


def pod_from_template(owner: Record, template: Document) -> Document:
    """A pod of the template that the owner manages."""
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


async def report_status(client: ApiClient, watched: Watched[T], owner: T, status: Document) -> None:
    """Write the status where it differs from what is there."""
    present = msgspec.to_builtins(owner.status)
    if all(_as_if_absent(present.get(key)) == _as_if_absent(value) for key, value in status.items()):
        return
    kind = type(owner).KIND
    try:
        answer = await client.patch(kind, owner.name, owner.namespace, {"status": status}, subresource="status")
    except ApiError as error:
        if error.code != 404:
            raise
        return
    watched.expect(msgspec.convert(answer, type(owner)))


def namespace_is_ending(error: ApiError) -> bool:
    """Nothing can be made there any more, and trying again would not help: the owner is about to go too."""
    return error.code == 403 and "is being terminated" in error.message


def _as_if_absent(value: object) -> object:
    """Zero counts and empty lists are not written on the wire."""
    return value or None
