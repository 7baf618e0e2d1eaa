"""The controller that keeps a pod of every DaemonSet on every eligible node."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from mooring.base.clock import Clock
from mooring.base.errors import ApiError
from mooring.base.log import Log
from mooring.client import ApiClient
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
from mooring.simulated.controllers.pod_control import PodControl, namespace_is_ending, report_status
from mooring.simulated.controllers.replica_sets import seconds_until_available
from mooring.simulated.controllers.workload_records import ControllerRevision, DaemonSet
from mooring.simulated.event_recorder import EventRecorder, Source
from mooring.simulated.informer import Informer
from mooring.simulated.records import NodeRecord, PodRecord, controller_of
from mooring.simulated.work_queue import WorkQueue

_SOURCE = Source("daemonset-controller")


class DaemonSetController:
    """Keeps every DaemonSet on its nodes."""

    def __init__(
        self,
        client: ApiClient,
        daemon_sets: Informer[DaemonSet],
        revisions: Informer[ControllerRevision],
        nodes: Informer[NodeRecord],
        pods: Informer[PodRecord],
        events: EventRecorder,
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
        self._work = WorkQueue("daemonset", self._sync, clock=clock, log=Log("workloads"), workers=8)
        self._node_rules: dict[str, object] = {}
        daemon_sets.subscribe(changed=lambda each: self._work.add(each.key), deleted=self._control.forget)
        nodes.subscribe(changed=self._node_changed, deleted=self._node_deleted)
        pods.subscribe(changed=self._pod_moved, deleted=self._pod_moved)

    def tasks(self) -> dict[str, Callable[[], Awaitable[None]]]:
        return {"daemonsets": self._work.run}

    # What moves.

    def _node_changed(self, node: NodeRecord) -> None:
        """Only what decides where daemons run: a node's status changes all the time."""
        rules = (node.labels, node.spec.taints)
        if self._node_rules.get(node.name) != rules:
            self._node_rules[node.name] = rules
            self._look_at_all()

    def _node_deleted(self, node: NodeRecord) -> None:
        self._node_rules.pop(node.name, None)
        self._look_at_all()

    def _look_at_all(self) -> None:
        for owner in self._daemon_sets.all():
            self._work.add(owner.key)

    def _pod_moved(self, pod: PodRecord) -> None:
        owner = controller_of(pod)
        if owner is not None and owner[0] == "DaemonSet":
            self._work.add(f"{pod.namespace}/{owner[1]}")

    # One DaemonSet.

    async def _sync(self, key: str) -> None:
        owner = self._daemon_sets.get(key)
        if owner is None or owner.is_terminating:
            return
        try:
            revision, collisions = await self._history.record(owner)
        except ApiError as error:
            if namespace_is_ending(error):
                return
            raise
        await self._control.adopt(owner, owner.spec.selector)
        hashed = revision.labels.get(HASH_LABEL, revision.name)
        await self._carry_out(owner, self._plan(owner, hashed), hashed)
        await self._report(owner, hashed, collisions)
        await self._forget_old(owner, revision)

    def _plan(self, owner: DaemonSet, hashed: str) -> DaemonPlan:
        nodes, pods, now = list(self._nodes.all()), self._control.pods_to_the_last(owner), self._clock.now()
        return plan_daemons(owner, nodes, pods, hashed, now) or plan_update(owner, nodes, pods, hashed, now)

    async def _carry_out(self, owner: DaemonSet, plan: DaemonPlan, hashed: str) -> None:
        for pod in plan.finished:
            where = f"daemon pod {pod.key} on node {target_node(pod)}, will try to"
            if pod.status.phase == "Failed":
                self._events.record(owner, _SOURCE, "FailedDaemonPod", f"Found failed {where} kill it", warning=True)
            else:
                self._events.record(owner, _SOURCE, "SucceededDaemonPod", f"Found succeeded {where} delete it")
        await self._control.create(owner, [daemon_pod(owner, node, hashed) for node in plan.create])
        await self._control.remove(owner, plan.remove)

    async def _report(self, owner: DaemonSet, hashed: str, collisions: int) -> None:
        now, pods = self._clock.now(), self._control.pods_to_the_last(owner)
        status = daemon_set_status(owner, list(self._nodes.all()), pods, hashed, collisions, now)
        await report_status(self._client, self._daemon_sets, owner, owner.status, status)
        wait = seconds_until_available(pods, owner.spec.min_ready_seconds, now)
        if wait is not None:
            self._work.add_after(owner.key, wait)

    async def _forget_old(self, owner: DaemonSet, present: ControllerRevision) -> None:
        """Keep as many old revisions as the limit says, and those that pods are of."""
        in_use = {pod.labels.get(HASH_LABEL) for pod in self._control.pods_to_the_last(owner)}
        old = [each for each in self._history.of(owner) if each.name != present.name]
        unused = [each for each in old if each.labels.get(HASH_LABEL) not in in_use]
        await self._history.remove(unused[: max(0, len(old) - owner.spec.revision_history_limit)])
