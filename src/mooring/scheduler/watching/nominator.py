"""Which pending pods are nominated to which node: by their status, and by decisions that the watch does not show yet.

A nomination exists from the decision on, survives updates without one, and ends when the pod is assumed, assigned or
deleted. Pods of the same or lower priority count a nominated pod as if it were on its node, so for them its end is the
deletion of a pod.
"""

from __future__ import annotations

from mooring.base.log import Log
from mooring.framework.events import ASSIGNED_POD_DELETED
from mooring.objects.core import Pod
from mooring.objects.quantity import BadQuantity
from mooring.queue import SchedulingQueue
from mooring.queue.queued_pod_info import Place
from mooring.state.nominations import Nominations

_log = Log("scheduler")


class Nominator:
    """Keeps the state's nominations in step with pods and decisions."""

    def __init__(self, nominations: Nominations, queue: SchedulingQueue) -> None:
        self._nominations = nominations
        self._queue = queue

    def added(self, pod: Pod) -> None:
        """The pod has entered the queue; a gated pod is not nominated."""
        if self._queue.where(pod) != Place.GATED:
            self._set(pod, pod.status.nominated_node_name)

    def updated(self, old: Pod, new: Pod) -> None:
        """The new status holds; where neither has a node, what was decided meanwhile."""
        before, now = old.status.nominated_node_name, new.status.nominated_node_name
        self._set(new, now or ("" if before else self._nominations.node_of(new.uid) or ""))
        if before and before != now:
            self._requeue_lower_priority_pods(old)

    def deleted(self, pod: Pod, *, was_assumed: bool) -> None:
        self._nominations.remove(pod.uid)
        if pod.status.nominated_node_name and not was_assumed:
            self._requeue_lower_priority_pods(pod)

    def placed(self, uid: str) -> None:
        self._nominations.remove(uid)

    def decided(self, pod: Pod, nominate: str | None) -> None:
        """The attempt failed: nominated to this node, to none (""), or as in its status (None)."""
        self._set(pod, pod.status.nominated_node_name if nominate is None else nominate)

    def _set(self, pod: Pod, node: str) -> None:
        self._nominations.remove(pod.uid)
        if not node:
            return
        try:
            self._nominations.set(pod, node)
        except BadQuantity as error:
            _log.error("Nominated pod is not counted: its requests are invalid", pod=pod, node=node, err=error)

    def _requeue_lower_priority_pods(self, pod: Pod) -> None:
        self._queue.on_event(ASSIGNED_POD_DELETED, pod, None, only=lambda other: other.priority <= pod.priority)
