"""How much of a cluster is requested over time: mean, peak, and a timeline that stays small."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from mooring.objects import Node
from mooring.objects.requests import in_units

MOST_SAMPLES = 1_000
"""Of a timeline. When there are more, every second one is dropped."""


class Sample(msgspec.Struct, frozen=True, gc=False):
    """The cluster at a moment, in seconds from the beginning."""

    at: float
    running: int
    pending: int
    requested: dict[str, float]
    """By resource, as a share of what nodes offer."""


class Usage:
    """What pods on nodes request, by resource."""

    def __init__(self, nodes: Iterable[Node]) -> None:
        self._capacity: dict[str, int] = {}
        for node in nodes:
            for resource, amount in in_units(node.status.allocatable).items():
                self._capacity[resource] = self._capacity.get(resource, 0) + amount
        self._requested = dict.fromkeys(self._capacity, 0)
        self._integrals = dict.fromkeys(self._capacity, 0.0)
        self._peaks = dict.fromkeys(self._capacity, 0)
        self._at = 0.0
        self.running = self.pending = 0
        self.timeline: list[Sample] = []
        self._apart = 0.0
        """Seconds between two samples, at least."""

    def arrive(self, now: float) -> None:
        """A pod waits for its node."""
        self._advance(now)
        self.pending += 1

    def add(self, now: float, amounts: Mapping[str, int], *, was_pending: bool = True) -> None:
        """A pod was bound."""
        self._advance(now)
        self.pending -= was_pending
        self.running += 1
        for resource, amount in amounts.items():
            if resource in self._requested:
                self._requested[resource] += amount
                self._peaks[resource] = max(self._peaks[resource], self._requested[resource])

    def remove(self, now: float, amounts: Mapping[str, int]) -> None:
        """A pod ended, or was evicted."""
        self._advance(now)
        self.running -= 1
        for resource, amount in amounts.items():
            if resource in self._requested:
                self._requested[resource] -= amount

    def mean(self, resource: str) -> float:
        """The share requested, on average over the time so far."""
        capacity = self._capacity.get(resource, 0)
        return self._integrals[resource] / (capacity * self._at) if capacity and self._at else 0.0

    def peak(self, resource: str) -> float:
        capacity = self._capacity.get(resource, 0)
        return self._peaks[resource] / capacity if capacity else 0.0

    def finish(self, now: float) -> None:
        """No more changes: the last state lasted until now."""
        self._advance(now)
        self.timeline.append(self._sample(now))

    @property
    def resources(self) -> list[str]:
        """Those that nodes offer."""
        return [resource for resource, capacity in self._capacity.items() if capacity]

    def _advance(self, now: float) -> None:
        if now <= self._at:
            return
        # The state that ends now: of several changes at one moment, the last.
        if not self.timeline or self._at >= self.timeline[-1].at + self._apart:
            self.timeline.append(self._sample(self._at))
            if len(self.timeline) > MOST_SAMPLES:
                del self.timeline[1::2]
                self._apart = max(2 * self._apart, self.timeline[-1].at / MOST_SAMPLES)
        for resource, requested in self._requested.items():
            self._integrals[resource] += requested * (now - self._at)
        self._at = now

    def _sample(self, at: float) -> Sample:
        shares = {
            resource: round(self._requested[resource] / capacity, 6)
            for resource, capacity in self._capacity.items()
            if capacity
        }
        return Sample(at, self.running, self.pending, shares)
