"""What the watch shows of pods that are assumed on a node: waiting on permit, or being bound."""

from __future__ import annotations

from mooring.framework import Pod
from mooring.framework.events import ASSIGNED_POD_DELETED
from mooring.queue import SchedulingQueue
from mooring.scheduler.cycle.permit import PermitRoom
from mooring.scheduler.watching.pod_observer import PodObserver
from mooring.state import State


class AssumedPods(PodObserver):
    """Ends their wait when they are gone or bound by another scheduler."""

    def __init__(self, state: State, queue: SchedulingQueue, room: PermitRoom) -> None:
        self._state = state
        self._queue = queue
        self._room = room

    def assigned(self, pod: Pod) -> None:
        # Ours are bound after they waited: another scheduler has bound it.
        self._room.reject(pod.uid, "", f"the pod was bound to node {pod.spec.node_name} by another client")

    def deleted(self, pod: Pod) -> None:
        """Its binding, if in flight, will fail; its place is free already."""
        if self._state.is_assumed(pod.uid) and not self._room.reject(pod.uid, "", "removed"):
            forgotten = self._state.forget(pod.uid)
            self._queue.on_event(ASSIGNED_POD_DELETED, forgotten, None)
