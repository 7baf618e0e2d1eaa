"""From the watch of pods and nodes to state and queue: which change is which cluster event.

A pod with a node is placed; one without a node and with one of our scheduler names waits in the queue; any other is a
foreign pod, which a reloaded configuration may adopt. A pod that has ended leaves the watch as a deletion (by the
field selector).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from mooring.base.log import Log
from mooring.framework.events import (
    ASSIGNED_POD_ADDED,
    ASSIGNED_POD_DELETED,
    NODE_ADDED,
    NODE_DELETED,
    PENDING_POD_ADDED,
    node_changes,
    placed_pod_changes,
)
from mooring.objects.core import Node, Pod
from mooring.objects.object_store import Present
from mooring.objects.placed import PlacedPod, confirmed, placed
from mooring.objects.quantity import BadQuantity
from mooring.objects.requests import AmountsOrZero, PodRequests
from mooring.queue import Place, SchedulingQueue
from mooring.scheduler.watching.nominator import Nominator
from mooring.scheduler.watching.pod_observer import PodObserver
from mooring.state import State

POD_FIELDS = "status.phase!=Succeeded,status.phase!=Failed"

_log = Log("watch")


class PodFeed:
    """Assigned pods go into the state, pending ones of our profiles into the queue."""

    def __init__(
        self,
        state: State,
        queue: SchedulingQueue,
        schedulers: Collection[str],
        observers: Sequence[PodObserver] = (),
        *,
        publishes_pending: bool = False,
    ) -> None:
        """`observers` are called for the pending pods of our profiles. `publishes_pending`: a pod that is added without
        a node is an event for others, which may wait for it."""
        self._publishes_pending = publishes_pending
        self._state = state
        self._queue = queue
        self._schedulers = frozenset(schedulers)
        self.nominator = Nominator(state.nominations, queue)
        self._observers = observers
        self._waiting: dict[str, Pod] = {}
        self._uids: dict[str, str] = {}
        """namespace/name → uid of every pod we know: a recreated pod of the same name is another pod."""
        self._foreign: dict[str, Pod] = {}
        """namespace/name → a pending pod of another scheduler name; a reload may add that profile."""

    def is_ours(self, pod: Pod) -> bool:
        """Whether its scheduler name is one of our profiles."""
        return pod.spec.scheduler_name in self._schedulers

    def make_foreign(self, pod: Pod) -> None:
        """Its scheduler name is no longer one of our profiles: it becomes a foreign pod."""
        _log.info(
            "Ignoring the pod: its schedulerName is no longer one of this scheduler's profiles",
            pod=pod,
            schedulerName=pod.spec.scheduler_name,
        )
        latest = self._waiting.pop(pod.uid, pod)
        if self._uids.get(pod.key) == pod.uid:
            del self._uids[pod.key]
            self._foreign[pod.key] = latest
        self._state.remove_pending(pod.uid)
        self._queue.delete(latest)
        self.nominator.deleted(latest, was_assumed=False)
        for observer in self._observers:
            observer.not_ours(latest)

    def retain_profiles(self, schedulers: Collection[str]) -> None:
        """Use these profiles from now on. Pods of removed ones become foreign, unless they are in flight or being
        bound: then when that fails."""
        self._schedulers = frozenset(schedulers)
        for pod in list(self._waiting.values()):
            is_under_way = self._state.is_assumed(pod.uid) or self._queue.where(pod) == Place.IN_FLIGHT.value
            if not self.is_ours(pod) and not is_under_way:
                self.make_foreign(pod)

    def adopt_foreign_pods(self) -> int:
        """Enqueue the pods that wait for a profile that was added; returns how many."""
        found = [pod for pod in self._foreign.values() if self.is_ours(pod)]
        for pod in found:
            self.changed(pod)
        return len(found)

    def latest(self, uid: str) -> Pod | None:
        """The newest object of a pod that is not on a node yet."""
        return self._waiting.get(uid)

    def uid_of(self, key: str) -> str | None:
        """The uid of the pod that has this `namespace/name` now."""
        return self._uids.get(key)

    def node_of(self, uid: str) -> str | None:
        """The pod's node, as the watch shows it."""
        pod = self._state.pod(uid)
        return pod.node if pod is not None and pod.assumed_at is None else None

    def found(self, pod: Pod) -> None:
        self.changed(pod)

    def listed(self, present: Present) -> None:
        for key in self._foreign.keys() - present.keys():
            del self._foreign[key]
        for key in self._uids.keys() - present.keys():
            self._remove(key, self._uids[key])

    def changed(self, pod: Pod) -> str:
        """Added or modified. The label of the last event that was published; "" for none."""
        key, uid = pod.key, pod.uid
        known = self._uids.get(key)
        if known is not None and known != uid:
            self._remove(key, known)
        self._foreign.pop(key, None)
        if pod.spec.node_name:
            self._uids[key] = uid
            return self._place(pod)
        if self.is_ours(pod) or uid in self._waiting:
            self._uids[key] = uid
            return self._wait(pod)
        self._foreign[key] = pod
        return ""

    def deleted(self, pod: Pod) -> str:
        self._foreign.pop(pod.key, None)
        if self._uids.get(pod.key) == pod.uid:
            return self._remove(pod.key, pod.uid)
        return ""

    def _place(self, pod: Pod) -> str:
        label = ""
        if waiting := self._waiting.pop(pod.uid, None):
            _log.v(3).info("Delete event for unscheduled pod", pod=pod)
            label = self._queue.delete(waiting)
            self._state.remove_pending(pod.uid)
            self.nominator.placed(pod.uid)
            for observer in self._observers:
                observer.assigned(pod)
        old = self._state.pod(pod.uid)
        if old is not None and old.assumed_at is None and old.resource_version == pod.metadata.resource_version:
            return label
        was_assumed = self._state.is_assumed(pod.uid)
        new = (confirmed(old, pod) if was_assumed and old is not None else None) or _record(pod)
        self._state.set_pod(new)
        if old is None or was_assumed:
            _log.v(3).info("Add event for scheduled pod", pod=pod)
            label = self._queue.on_event(ASSIGNED_POD_ADDED, None, new)
            if old is not None and old.node != new.node:
                # Another scheduler bound it: the place that it was assumed on is free.
                label = self._queue.on_event(ASSIGNED_POD_DELETED, old, None)
        else:
            _log.v(4).info("Update event for scheduled pod", pod=pod)
            for event in placed_pod_changes(old, new):
                label = self._queue.on_event(event, old, new)
        return label

    def _wait(self, pod: Pod) -> str:
        old = self._waiting.get(pod.uid)
        if old is not None and old.metadata.resource_version == pod.metadata.resource_version:
            return ""
        pod.read_ahead()
        self._waiting[pod.uid] = pod
        self._state.set_pending(pod)
        for observer in self._observers:
            observer.pending(pod)
        if self.node_of(pod.uid) is not None:
            # A bound pod stays bound, unless the server is restored from a backup: then the watch is right.
            self._queue.on_event(ASSIGNED_POD_DELETED, self._state.remove_pod(pod.uid), None)
        if self._state.is_assumed(pod.uid):
            # Assumed: it is in no queue, and its own updates requeue no pod.
            if pod.is_terminating and old is not None and not old.is_terminating:
                for observer in self._observers:
                    observer.deleted(pod)
            return ""
        if old is None:
            _log.v(3).info("Add event for unscheduled pod", pod=pod)
            label = self._queue.add(pod)
            self.nominator.added(pod)
            if self._publishes_pending:
                self._queue.on_event(PENDING_POD_ADDED, None, pod)
        else:
            _log.v(4).info("Update event for unscheduled pod", pod=pod)
            label = self._queue.update(old, pod)
            self.nominator.updated(old, pod)
        return label

    def _remove(self, key: str, uid: str) -> str:
        label = ""
        del self._uids[key]
        waiting = self._waiting.pop(uid, None)
        if waiting is not None:
            _log.v(3).info("Delete event for unscheduled pod", pod=waiting)
            self._state.remove_pending(uid)
            was_assumed = self._state.is_assumed(uid)
            if not was_assumed:
                label = self._queue.delete(waiting)
            self.nominator.deleted(waiting, was_assumed=was_assumed)
            for observer in self._observers:
                observer.deleted(waiting)
            return label
        gone = self._state.remove_pod(uid)
        if gone is not None:
            _log.v(3).info("Delete event for scheduled pod", pod=gone.key)
            label = self._queue.on_event(ASSIGNED_POD_DELETED, gone, None)
        return label


def _record(pod: Pod) -> PlacedPod:
    """A pod whose requests cannot be read still occupies a place; it must not take the scheduler down."""
    try:
        return placed(pod)
    except BadQuantity as error:
        _log.error("Pod counts as requesting nothing: its requests are invalid", pod=pod, err=error)
        pod.__dict__["requests"] = PodRequests(AmountsOrZero(), 0, 0)
        return placed(pod)


class NodeFeed:
    """Nodes into the node table."""

    def __init__(self, state: State, queue: SchedulingQueue) -> None:
        self._state = state
        self._queue = queue
        self._names: set[str] = set()

    def found(self, node: Node) -> None:
        self.changed(node)

    def listed(self, present: Present) -> None:
        for name in self._names - present.keys():
            self._remove(name)

    def changed(self, node: Node) -> str:
        label = ""
        self._names.add(node.name)
        old = self._state.set_node(node)
        if old is None:
            _log.v(3).info("Add event for node", node=node)
            label = self._queue.on_event(NODE_ADDED, None, node)
        elif old.metadata.resource_version != node.metadata.resource_version:
            _log.v(4).info("Update event for node", node=node)
            for event in node_changes(old, node):
                label = self._queue.on_event(event, old, node)
        return label

    def deleted(self, node: Node) -> str:
        return self._remove(node.name) if node.name in self._names else ""

    def _remove(self, name: str) -> str:
        self._names.discard(name)
        old = self._state.remove_node(name)
        _log.v(3).info("Delete event for node", node=name)
        return self._queue.on_event(NODE_DELETED, old, None)
