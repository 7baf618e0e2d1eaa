"""The ReplicaSet controller: keeps every ReplicaSet at its number of pods. `replica_sets` computes what a sync does."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from mooring.base.clock import Clock
from mooring.base.log import Log
from mooring.client import ApiClient
from mooring.client.core_event_recorder import CoreEventRecorder, EventSource
from mooring.client.informer import Informer
from mooring.client.work_queue import WorkQueue
from mooring.simulated.controllers.pod_control import PodControl, report_status
from mooring.simulated.controllers.pod_templates import pod_from_template
from mooring.simulated.controllers.replica_sets import plan_replicas, replica_set_status, seconds_until_available
from mooring.simulated.controllers.workload_records import ReplicaSet
from mooring.simulated.records import PodRecord, controller_of


class ReplicaSetController:
    """Keeps every ReplicaSet at its number of pods."""

    def __init__(
        self,
        client: ApiClient,
        replica_sets: Informer[ReplicaSet],
        pods: Informer[PodRecord],
        events: CoreEventRecorder,
        *,
        clock: Clock,
    ) -> None:
        self._client = client
        self._replica_sets = replica_sets
        self._clock = clock
        self._control = PodControl(client, pods, events, EventSource("replicaset-controller"))
        self._queue = WorkQueue("replicaset", self._sync, clock=clock, log=Log("workloads"), workers=8)
        replica_sets.subscribe(changed=lambda each: self._queue.add(each.key))
        pods.subscribe(changed=self._pod_changed, deleted=self._pod_changed)

    def tasks(self) -> dict[str, Callable[[], Awaitable[None]]]:
        return {"replicasets": self._queue.run}

    def _pod_changed(self, pod: PodRecord) -> None:
        owner = controller_of(pod)
        if owner is not None and owner[0] == "ReplicaSet":
            self._queue.add(f"{pod.namespace}/{owner[1]}")

    async def _sync(self, key: str) -> None:
        owner = self._replica_sets.get(key)
        if owner is None:
            return
        if not owner.is_terminating:
            plan = plan_replicas(owner.spec.replicas, self._active(owner))
            await self._control.create(owner, [pod_from_template(owner, owner.spec.template)] * plan.create)
            await self._control.delete(owner, plan.delete)
        await self._report(owner)

    def _active(self, owner: ReplicaSet) -> list[PodRecord]:
        return [
            pod for pod in self._control.pods_of(owner) if pod.is_active and owner.spec.selector.matches(pod.labels)
        ]

    async def _report(self, owner: ReplicaSet) -> None:
        now = self._clock.now()
        active = self._active(owner)
        await report_status(
            self._client, self._replica_sets, owner, owner.status, replica_set_status(owner, active, now)
        )
        wait = seconds_until_available(active, owner.spec.min_ready_seconds, now)
        if wait is not None:
            self._queue.add_after(owner.key, wait)
