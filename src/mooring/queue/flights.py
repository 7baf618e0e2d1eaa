"""What happened while pods were being tried.

An event that arrives during an attempt may be the one the attempt needed. So events are kept from the moment the
oldest pod in flight took off, and replayed to a pod that lands refused.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple

from mooring.framework.events import ClusterEvent
from mooring.objects.core import Pod
from mooring.queue.waiting import Place, Waiting

POD_POPPED = "PodPopped"
"""Pods among the events, as kube-scheduler's metric counts them."""


class Happened(NamedTuple):
    event: ClusterEvent
    old: Any
    new: Any


@dataclass(slots=True)
class Flight:
    """A pod being tried."""

    waiting: Waiting
    first_event: int
    latest: Pod | None = None
    """The pod as updated meanwhile."""
    is_deleted: bool = False
    """Whether it was removed from the queue meanwhile: deleted, or assigned to a node."""


class Flights:
    """The pods in flight, in the order of their departure, and the events since the first of them left."""

    def __init__(self) -> None:
        self._flights: dict[str, Flight] = {}
        self._events: deque[Happened] = deque()
        self._forgotten = 0

    def __len__(self) -> int:
        return len(self._flights)

    def __iter__(self) -> Iterator[Waiting]:
        return (flight.waiting for flight in self._flights.values())

    def kept(self) -> Counter[str]:
        """By label: the events, and the pods."""
        counts = Counter(happened.event.label for happened in list(self._events))
        counts[POD_POPPED] = len(self._flights)
        return counts

    def get(self, uid: str) -> Flight | None:
        return self._flights.get(uid)

    def start(self, waiting: Waiting) -> None:
        waiting.place = Place.IN_FLIGHT
        self._flights[waiting.pod.uid] = Flight(waiting, self._forgotten + len(self._events))

    def record(self, event: ClusterEvent, old: Any, new: Any) -> None:
        if self._flights:
            self._events.append(Happened(event, old, new))

    def events_during(self, flight: Flight) -> list[Happened]:
        """In the order in which they happened."""
        return list(islice(self._events, flight.first_event - self._forgotten, None))

    def end(self, uid: str) -> Flight | None:
        """The attempt is over; events that nobody in flight needs any more are forgotten."""
        flight = self._flights.pop(uid, None)
        if flight is None:
            return None
        flight.waiting.place = Place.ABSENT
        oldest = next(iter(self._flights.values()), None)
        needed_from = self._forgotten + len(self._events) if oldest is None else oldest.first_event
        while self._forgotten < needed_from:
            self._events.popleft()
            self._forgotten += 1
        return flight
