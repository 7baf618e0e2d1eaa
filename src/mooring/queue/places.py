"""activeQ, backoffQ and the unschedulable pods: where queued pods are, and in which order they come out.

A pod is in one of them at most. When it moves, and why, is decided by the scheduling queue.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Any

from mooring.base.clock import Clock
from mooring.base.foreign_code import raised
from mooring.base.log import Log
from mooring.framework.queued_pod import QueuedPod
from mooring.queue.backoff import PodBackoff, has_ended, release_time
from mooring.queue.heap import PodHeap, SortKey
from mooring.queue.queued_pod_info import Place, QueuedPodInfo
from mooring.queue.queueing_hints import QUEUE_SORT, OnFault
from mooring.queue.unschedulable_pods import UnschedulablePods


class QueuePlaces:
    """The places of queued pods. `sort_key` orders activeQ and backoffQ, least first.

    With `has_pod_groups`, members of a pod group stay in backoffQ until their backoff ends, as after an error: failed
    members always back off, so that an idle scheduler would try an infeasible group without a pause.
    """

    def __init__(
        self,
        clock: Clock,
        sort_key: Callable[[QueuedPod], Any],
        backoff: PodBackoff,
        on_fault: OnFault,
        log: Log,
        *,
        has_pod_groups: bool = False,
    ) -> None:
        self._clock = clock
        self._sort_key = sort_key
        self._backoff = backoff
        self._on_fault = on_fault
        self._log = log
        self._has_pod_groups = has_pod_groups
        self.active = PodHeap(log, self._sort_failed)
        self._backoff_queue = PodHeap(log, self._sort_failed)
        self._whole_backoff_queue = PodHeap(log)
        self.unschedulable = UnschedulablePods()

    def configure(self, backoff: PodBackoff, sort_key: Callable[[QueuedPod], Any] | None) -> None:
        """Use another backoff for pods that are enqueued from now on, and another order if one is given."""
        self._backoff = backoff
        self._sort_key = sort_key or self._sort_key

    def enqueue(self, queued: QueuedPodInfo, place: Place) -> bool:
        """Put the pod into activeQ or backoffQ, by its present sort key. Returns whether it was elsewhere."""
        if place is Place.ACTIVE and queued.initial_attempt is None:
            queued.initial_attempt = self._clock.now()
        sort_key = self._sort_key_of(queued)  # before the pod leaves its place: a plugin that fails must not lose it
        was_elsewhere = queued.place is not place
        self.remove(queued)
        queued.place = place
        if place is Place.ACTIVE:
            self.active.push(queued, sort_key)
        else:
            window = self._backoff.window(queued) or 0
            if queued.failed_by_error or (self._has_pod_groups and queued.pod.spec.scheduling_group is not None):
                self._whole_backoff_queue.push(queued, window=window)
            else:
                self._backoff_queue.push(queued, sort_key, window)
        return was_elsewhere

    def remove(self, queued: QueuedPodInfo) -> None:
        uid = queued.pod.uid
        match queued.place:
            case Place.ACTIVE:
                self.active.remove(uid)
            case Place.BACKOFF:
                self._backoff_queue.remove(uid)
                self._whole_backoff_queue.remove(uid)
            case Place.UNSCHEDULABLE | Place.GATED:
                self.unschedulable.remove(uid)
        queued.place = Place.ABSENT

    def pop_active(self, first: Collection[str]) -> QueuedPodInfo | None:
        """The least pod of activeQ; of these namespaces, if one has a pod of the same priority."""
        if not first:
            return self.active.pop()
        head, preferred = self.active.peek(), self.active.peek_of(first)
        if head is None or preferred is None or preferred.pod.priority < head[1].pod.priority:
            return self.active.pop()
        self.active.remove(preferred.pod.uid)
        return preferred

    def pop_backoff(self) -> QueuedPodInfo | None:
        """The least pod of backoffQ, though its backoff has not ended.

        Pods whose attempt ended by an error and members of pod groups stay.
        """
        return self._backoff_queue.pop()

    def backs_off(self, queued: QueuedPodInfo) -> bool:
        window = self._backoff.window(queued)
        return window is not None and not has_ended(window, self._clock.now())

    def backoff_ends(self, queued: QueuedPodInfo) -> float | None:
        """When the pod's backoff ends; None if it has none."""
        window = self._backoff.window(queued)
        return None if window is None else release_time(window)

    def with_ended_backoff(self, now: float) -> QueuedPodInfo | None:
        """A pod of backoffQ whose backoff has ended."""
        for queue in (self._backoff_queue, self._whole_backoff_queue):
            if (head := queue.peek()) is not None and has_ended(head[0], now):
                return head[1]
        return None

    def next_releases(self) -> Iterator[float]:
        """When the first backoffs end."""
        heads = (queue.peek() for queue in (self._backoff_queue, self._whole_backoff_queue))
        return (release_time(head[0]) for head in heads if head is not None)

    def in_queues(self) -> list[QueuedPodInfo]:
        """The pods in activeQ and backoffQ."""
        return [*self.active, *self._backoff_queue, *self._whole_backoff_queue]

    def counts(self) -> dict[str, int]:
        return {
            Place.ACTIVE.value: len(self.active),
            Place.BACKOFF.value: len(self._backoff_queue) + len(self._whole_backoff_queue),
            Place.UNSCHEDULABLE.value: len(self.unschedulable) - self.unschedulable.gated,
            Place.GATED.value: self.unschedulable.gated,
        }

    def _sort_key_of(self, queued: QueuedPodInfo) -> SortKey:
        try:
            return (0, self._sort_key(queued.shown()))
        except KeyboardInterrupt:
            raise
        except BaseException as cause:
            plugin = self._sort_failed()
            self._log.error(
                "sort_key failed; the pod is sorted behind all others",
                plugin=plugin,
                pod=queued.pod,
                **raised(cause, self._sort_key),
            )
            return (1,)

    def _sort_failed(self) -> str:
        plugin: str = getattr(getattr(self._sort_key, "__self__", None), "name", "sort_key")
        self._on_fault(plugin, QUEUE_SORT)
        return plugin
