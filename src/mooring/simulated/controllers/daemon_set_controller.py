"""The DaemonSet controller: keeps a pod on every eligible node. `daemon_sets` computes what a sync does."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from mooring.base.clock import Clock
from mooring.base.errors import ApiError
from mooring.base.log import Log
from mooring.client import ApiClient
from mooring.client.core_event_recorder import CoreEventRecorder, EventSource
from mooring.client.informer import Informer
from mooring.client.work_queue import WorkQueue
from mooring.simulated.controllers.controller_history import ControllerHistory
from mooring.simulated.controllers.daemon_sets import (
    HASH_LABEL,
    DaemonPlan,
    daemon_pod,
    daemon_set_status,
    plan_daemons,
    plan_update,
    target_node,
)
from mooring.simulated.controllers.pod_control import PodControl, is_namespace_terminating, report_status
from mooring.simulated.controllers.replica_sets import seconds_until_available
from mooring.simulated.controllers.workload_records import ControllerRevision, DaemonSet
from mooring.simulated.records import NodeRecord, PodRecord, controller_of

_SOURCE = EventSource("daemonset-controller")


class DaemonSetController:
    """Syncs DaemonSets when they, their pods or nodes change."""

    def __init__(
        self,
        client: ApiClient,
        daemon_sets: Informer[DaemonSet],
        revisions: Informer[ControllerRevision],
        nodes: Informer[NodeRecord],
        pods: Informer[PodRecord],
        events: CoreEventRecorder,
        *,
        clock: Clock,
    ) -> None:
        self._client = client
        self._daemon_sets = daemon_sets
        self._nodes = nodes
        self._events = events
        self._clock = clock
        self._history = ControllerHistory(client, revisions, hash_label=HASH_LABEL)
        self._control = PodControl(client, pods, events, _SOURCE)
        self._queue = WorkQueue("daemonset", self._sync, clock=clock, log=Log("workloads"), workers=8)
        self._node_rules: dict[str, object] = {}
        daemon_sets.subscribe(changed=lambda each: self._queue.add(each.key), deleted=self._control.forget)
        nodes.subscribe(changed=self._node_changed, deleted=self._node_deleted)
        pods.subscribe(changed=self._pod_changed, deleted=self._pod_changed)

    def tasks(self) -> dict[str, Callable[[], Awaitable[None]]]:
        return {"daemonsets": self._queue.run}

    # Event handlers.

    def _node_changed(self, node: NodeRecord) -> None:
        """Only labels and taints matter: a node's status changes all the time."""
        rules = (node.labels, node.spec.taints)
        if self._node_rules.get(node.name) != rules:
            self._node_rules[node.name] = rules
            self._enqueue_all()

    def _node_deleted(self, node: NodeRecord) -> None:
        self._node_rules.pop(node.name, None)
        self._enqueue_all()

    def _enqueue_all(self) -> None:
        for owner in self._daemon_sets.all():
            self._queue.add(owner.key)

    def _pod_changed(self, pod: PodRecord) -> None:
        owner = controller_of(pod)
        if owner is not None and owner[0] == "DaemonSet":
            self._queue.add(f"{pod.namespace}/{owner[1]}")

    # One DaemonSet.

    async def _sync(self, key: str) -> None:
        owner = self._daemon_sets.get(key)
        if owner is None or owner.is_terminating:
            return
        try:
            revision, collisions = await self._history.record(owner)
        except ApiError as error:
            if is_namespace_terminating(error):
                return
            raise
        await self._control.adopt(owner, owner.spec.selector)
        hashed = revision.labels.get(HASH_LABEL, revision.name)
        await self._execute(owner, self._plan(owner, hashed), hashed)
        await self._report(owner, hashed, collisions)
        await self._truncate_history(owner, revision)

    def _plan(self, owner: DaemonSet, hashed: str) -> DaemonPlan:
        nodes, pods, now = list(self._nodes.all()), self._control.pods_until_deleted(owner), self._clock.now()
        return plan_daemons(owner, nodes, pods, hashed, now) or plan_update(owner, nodes, pods, hashed, now)

    async def _execute(self, owner: DaemonSet, plan: DaemonPlan, hashed: str) -> None:
        for pod in plan.finished:
            where = f"daemon pod {pod.key} on node {target_node(pod)}, will try to"
            if pod.status.phase == "Failed":
                self._events.record(owner, _SOURCE, "FailedDaemonPod", f"Found failed {where} kill it", warning=True)
            else:
                self._events.record(owner, _SOURCE, "SucceededDaemonPod", f"Found succeeded {where} delete it")
        await self._control.create(owner, [daemon_pod(owner, node, hashed) for node in plan.create])
        await self._control.delete(owner, plan.delete)

    async def _report(self, owner: DaemonSet, hashed: str, collisions: int) -> None:
        now, pods = self._clock.now(), self._control.pods_until_deleted(owner)
        status = daemon_set_status(owner, list(self._nodes.all()), pods, hashed, collisions, now)
        await report_status(self._client, self._daemon_sets, owner, owner.status, status)
        wait = seconds_until_available(pods, owner.spec.min_ready_seconds, now)
        if wait is not None:
            self._queue.add_after(owner.key, wait)

    async def _truncate_history(self, owner: DaemonSet, present: ControllerRevision) -> None:
        """Delete old revisions beyond the history limit, unless pods use them."""
        in_use = {pod.labels.get(HASH_LABEL) for pod in self._control.pods_until_deleted(owner)}
        old = [each for each in self._history.of(owner) if each.name != present.name]
        unused = [each for each in old if each.labels.get(HASH_LABEL) not in in_use]
        await self._history.delete(unused[: max(0, len(old) - owner.spec.revision_history_limit)])
