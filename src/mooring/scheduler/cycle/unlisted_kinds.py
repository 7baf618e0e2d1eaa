"""Pods whose profile cannot decide yet: a kind of object that its plugins read has not been listed."""

from __future__ import annotations

from mooring.framework import Pod
from mooring.queue import SchedulingQueue
from mooring.scheduler.watching.pod_observer import PodObserver


class PodsAwaitingKinds(PodObserver):
    """Activates them when a kind has been listed."""

    def __init__(self, queue: SchedulingQueue) -> None:
        self._queue = queue
        self._pods: dict[str, Pod] = {}

    def __len__(self) -> int:
        return len(self._pods)

    def add(self, pod: Pod) -> None:
        self._pods[pod.uid] = pod

    def activate(self) -> None:
        """A kind has been listed."""
        waiting, self._pods = self._pods, {}
        self._queue.activate(waiting.values())

    def not_pending(self, pod: Pod) -> None:
        self._pods.pop(pod.uid, None)
