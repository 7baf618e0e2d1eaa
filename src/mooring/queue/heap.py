"""A heap of queued pods that supports removal by UID.

A removed pod is dropped lazily, when it comes to the head. The order is: backoff window (0 where there is no backoff),
sort key, which comes from a plugin, arrival. Sort keys that cannot be compared make the heap fall back to the order of
arrival; no pod is lost.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Container, Iterator
from typing import Any

from mooring.base.log import Log
from mooring.queue.queued_pod_info import QueuedPodInfo

SortKey = tuple[Any, ...]
_Entry = tuple[int, SortKey, int, QueuedPodInfo]
_REMOVED_BEFORE_REBUILD = 64


class PodHeap:
    """Pods by UID, least window and sort key first, then by arrival.

    `on_fault` is called when sort keys cannot be compared and returns the plugin's name.
    """

    def __init__(self, log: Log, on_fault: Callable[[], str] = lambda: "") -> None:
        self._log = log
        self._on_fault = on_fault
        self._arrivals = itertools.count()
        self._heap: list[_Entry] = []
        self._members: dict[str, _Entry] = {}

    def __len__(self) -> int:
        return len(self._members)

    def __iter__(self) -> Iterator[QueuedPodInfo]:
        return (queued for _, _, _, queued in self._members.values())

    def __contains__(self, uid: str) -> bool:
        return uid in self._members

    def push(self, queued: QueuedPodInfo, sort_key: SortKey = (), window: int = 0) -> None:
        """Add the pod, or update its sort key."""
        entry = (window, sort_key, next(self._arrivals), queued)
        self._members[queued.pod.uid] = entry
        try:
            heapq.heappush(self._heap, entry)
        except KeyboardInterrupt:
            raise
        except BaseException as cause:
            self._order_by_arrival(cause)
        if len(self._heap) > 2 * len(self._members) + _REMOVED_BEFORE_REBUILD:
            self._rebuild()

    def remove(self, uid: str) -> None:
        self._members.pop(uid, None)

    def peek(self) -> tuple[int, QueuedPodInfo] | None:
        """The least pod with its window."""
        while self._heap:
            entry = self._heap[0]
            if self._members.get(entry[3].pod.uid) is entry:
                return entry[0], entry[3]
            try:
                heapq.heappop(self._heap)
            except KeyboardInterrupt:
                raise
            except BaseException as cause:
                self._order_by_arrival(cause)
        return None

    def peek_of(self, namespaces: Container[str]) -> QueuedPodInfo | None:
        """The least pod of these namespaces. Goes through all pods."""
        entries = (entry for entry in self._members.values() if entry[3].pod.namespace in namespaces)
        try:
            least = min(entries, default=None)
        except KeyboardInterrupt:
            raise
        except BaseException as cause:
            self._order_by_arrival(cause)
            return self.peek_of(namespaces)
        return None if least is None else least[3]

    def pop(self) -> QueuedPodInfo | None:
        """Remove and return the least pod."""
        head = self.peek()
        if head is None:
            return None
        self.remove(head[1].pod.uid)
        return head[1]

    def _rebuild(self) -> None:
        self._heap = list(self._members.values())
        try:
            heapq.heapify(self._heap)
        except KeyboardInterrupt:
            raise
        except BaseException as cause:
            self._order_by_arrival(cause)

    def _order_by_arrival(self, cause: BaseException) -> None:
        self._log.error(
            "Sort keys cannot be compared; pods are scheduled in order of arrival",
            plugin=self._on_fault(),
            err=cause,
        )
        # The empty sort key is less than every other, so that later arrivals compare with these.
        self._members = {
            uid: (window, (), arrival, queued) for uid, (window, _, arrival, queued) in self._members.items()
        }
        self._heap = sorted(self._members.values(), key=lambda entry: (entry[0], entry[2]))
