"""In-flight pods and the events since the oldest of them was popped.

An event that arrives during an attempt may be the one that it needed, so the events are replayed when it fails.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator
from itertools import islice
from typing import Any, NamedTuple

import msgspec

from mooring.framework.events import ClusterEvent
from mooring.objects.core import Pod
from mooring.queue.queued_pod_info import Place, QueuedPodInfo

POD_POPPED = "PodPopped"
"""Pods among the events, as kube-scheduler's metric counts them."""


class InFlightEvent(NamedTuple):
    event: ClusterEvent
    old: Any
    new: Any


class InFlightPod(msgspec.Struct, eq=False):
    """A pod whose scheduling attempt is under way."""

    queued: QueuedPodInfo
    first_event: int
    latest: Pod | None = None
    """The pod as updated meanwhile."""
    is_deleted: bool = False
    """Whether it was removed from the queue meanwhile: deleted, or assigned to a node."""


class InFlightPods:
    """The pods in flight, in the order of their pop, and the events since the first of them was popped."""

    def __init__(self) -> None:
        self._pods: dict[str, InFlightPod] = {}
        self._events: deque[InFlightEvent] = deque()
        self._dropped = 0

    def __len__(self) -> int:
        return len(self._pods)

    def __iter__(self) -> Iterator[QueuedPodInfo]:
        return (flight.queued for flight in self._pods.values())

    def counts(self) -> Counter[str]:
        """By label: the events, and the pods."""
        counts = Counter(recorded.event.label for recorded in list(self._events))
        counts[POD_POPPED] = len(self._pods)
        return counts

    def get(self, uid: str) -> InFlightPod | None:
        return self._pods.get(uid)

    def start(self, queued: QueuedPodInfo) -> None:
        queued.place = Place.IN_FLIGHT
        self._pods[queued.pod.uid] = InFlightPod(queued, self._dropped + len(self._events))

    def record(self, event: ClusterEvent, old: Any, new: Any) -> None:
        if self._pods:
            self._events.append(InFlightEvent(event, old, new))

    def events_during(self, flight: InFlightPod) -> list[InFlightEvent]:
        """In the order in which they happened."""
        return list(islice(self._events, flight.first_event - self._dropped, None))

    def end(self, uid: str) -> InFlightPod | None:
        """The attempt has ended; events that no pod in flight needs any more are dropped."""
        flight = self._pods.pop(uid, None)
        if flight is None:
            return None
        flight.queued.place = Place.ABSENT
        oldest = next(iter(self._pods.values()), None)
        needed_from = self._dropped + len(self._events) if oldest is None else oldest.first_event
        while self._dropped < needed_from:
            self._events.popleft()
            self._dropped += 1
        return flight
