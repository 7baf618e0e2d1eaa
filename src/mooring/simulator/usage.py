"""How much of a cluster is requested over time, how fragmented what is free is, and how evenly nodes are used.

**Fragmentation** of a resource is the share of its free amount that is on nodes on which a typical pod does not fit.
The typical pod of a resource is the one in the middle when those that request it are sorted by how much they request:
it fits a node that has enough free of everything that it requests. Taints, affinity and ports do not count.

**Imbalance** of a resource is the standard deviation of its requested share over the nodes that offer it: 0 where all
are used alike.

All of it costs a few additions for each pod that is bound or ends: only its node is evaluated again. A timeline stays
small, however long the simulation is.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

import msgspec

from mooring.objects import Node
from mooring.objects.requests import Amounts, in_units

V = TypeVar("V")

MOST_SAMPLES = 1_000
"""Of a timeline. When there are more, every second one is dropped."""

DIGITS = 6
"""Of shares."""
WHOLE = 1_000_000
"""The share of a node that is full. Whole numbers add up without rounding, however often a node changes."""


class Sample(msgspec.Struct, frozen=True, gc=False):
    """The cluster at a moment, in seconds from the beginning."""

    at: float
    running: int
    pending: int
    requested: dict[str, float]
    """By resource, as a share of what nodes offer."""
    fragmentation: dict[str, float] = {}
    """By resource that pods of the workload request: the share of what is free where a typical pod does not fit."""
    imbalance: dict[str, float] = {}


def typical_pods(requests: Iterable[Mapping[str, int]]) -> dict[str, Mapping[str, int]]:
    """For each resource what the pod in the middle requests, of those that request the resource."""
    counted: dict[tuple[tuple[str, int], ...], int] = {}
    for amounts in requests:
        key = tuple(sorted((resource, amount) for resource, amount in amounts.items() if amount > 0))
        counted[key] = counted.get(key, 0) + 1
    resources = sorted({resource for key in counted for resource, _ in key})
    return {resource: _middle(resource, counted) for resource in resources}


def _middle(resource: str, counted: Mapping[tuple[tuple[str, int], ...], int]) -> Mapping[str, int]:
    """Of pods that request as much as the one in the middle, again the one in the middle, by all that they request."""
    requesting = {key: dict(key)[resource] for key in counted if resource in dict(key)}
    amount = _median(sorted((amount, counted[key]) for key, amount in requesting.items()))
    return dict(_median(sorted((key, counted[key]) for key in requesting if requesting[key] == amount)))


def _median(ordered: Sequence[tuple[V, int]]) -> V:
    """Of values that are there so many times."""
    left = (sum(count for _, count in ordered) + 1) // 2
    for value, count in ordered:
        left -= count
        if left <= 0:
            return value
    raise ValueError("there are no values")


class _NodeUse:
    """What is left of one node, and what it adds to the sums over all nodes."""

    __slots__ = ("free", "offered", "shares", "stranded")

    def __init__(self, offered: Amounts) -> None:
        self.offered = offered
        self.free = dict(offered)
        self.stranded: Amounts = {}
        self.shares: Amounts = {}


class Usage:
    """What pods on nodes request, by resource."""

    def __init__(self, nodes: Iterable[Node], typical: Mapping[str, Mapping[str, int]] | None = None) -> None:
        """`typical` is what `typical_pods` returns: fragmentation and imbalance are those of its resources."""
        sizes: dict[tuple[tuple[str, int], ...], Amounts] = {}
        """Nodes are many and alike: what they offer is one object for all of a size."""
        self._nodes: dict[str, _NodeUse] = {}
        for each in nodes:
            offered = in_units(each.status.allocatable)
            self._nodes[each.name] = _NodeUse(sizes.setdefault(tuple(offered.items()), offered))
        self._capacity: dict[str, int] = {}
        self._offering: dict[str, int] = {}
        """How many nodes offer each resource."""
        for node in self._nodes.values():
            for resource, amount in node.offered.items():
                self._capacity[resource] = self._capacity.get(resource, 0) + amount
                self._offering[resource] = self._offering.get(resource, 0) + (amount > 0)
        self._requested = dict.fromkeys(self._capacity, 0)
        self._integrals = dict.fromkeys(self._capacity, 0.0)
        self._peaks = dict.fromkeys(self._capacity, 0)
        self._typical = {
            resource: tuple(amounts.items())
            for resource, amounts in (typical or {}).items()
            if self._capacity.get(resource)
        }
        self._stranded = dict.fromkeys(self._typical, 0)
        self._shares = dict.fromkeys(self._typical, 0)
        self._squares = dict.fromkeys(self._typical, 0)
        self._fragmentation_integrals = dict.fromkeys(self._typical, 0.0)
        self._imbalance_integrals = dict.fromkeys(self._typical, 0.0)
        self._changed: dict[_NodeUse, None] = dict.fromkeys(self._nodes.values())
        self._at = 0.0
        self.running = self.pending = 0
        self.timeline: list[Sample] = []
        self._apart = 0.0
        """Seconds between two samples, at least."""

    def arrive(self, now: float) -> None:
        """A pod waits for its node."""
        self._advance(now)
        self.pending += 1

    def withdraw(self, now: float) -> None:
        """A pod was deleted before it was bound."""
        self._advance(now)
        self.pending -= 1

    def add(self, now: float, node: str, amounts: Mapping[str, int], *, was_pending: bool = True) -> None:
        """A pod was bound."""
        self._advance(now)
        self.pending -= was_pending
        self.running += 1
        if (use := self._nodes.get(node)) is None:
            return
        self._changed[use] = None
        requested, peaks, free = self._requested, self._peaks, use.free
        for resource, amount in amounts.items():
            if resource in free:
                free[resource] -= amount
                requested[resource] += amount
                if requested[resource] > peaks[resource]:
                    peaks[resource] = requested[resource]

    def remove(self, now: float, node: str, amounts: Mapping[str, int]) -> None:
        """A pod ended, or was evicted."""
        self._advance(now)
        self.running -= 1
        if (use := self._nodes.get(node)) is None:
            return
        self._changed[use] = None
        for resource, amount in amounts.items():
            if resource in use.free:
                use.free[resource] += amount
                self._requested[resource] -= amount

    def finish(self, now: float) -> None:
        """No more changes: the last state lasted until now."""
        self._advance(now)
        self.timeline.append(self._sample(now))

    @property
    def resources(self) -> list[str]:
        """Those that nodes offer."""
        return [resource for resource, capacity in self._capacity.items() if capacity]

    def mean(self, resource: str) -> float:
        """The share requested, on average over the time so far."""
        capacity = self._capacity.get(resource, 0)
        return self._integrals[resource] / (capacity * self._at) if capacity and self._at else 0.0

    def peak(self, resource: str) -> float:
        capacity = self._capacity.get(resource, 0)
        return self._peaks[resource] / capacity if capacity else 0.0

    def mean_fragmentation(self, resource: str) -> float | None:
        """On average over the time so far; None: no pod of the workload requests the resource."""
        return self._mean_of(self._fragmentation_integrals, resource)

    def mean_imbalance(self, resource: str) -> float | None:
        return self._mean_of(self._imbalance_integrals, resource)

    def _mean_of(self, integrals: Mapping[str, float], resource: str) -> float | None:
        return integrals[resource] / self._at if resource in integrals and self._at else None

    def _advance(self, now: float) -> None:
        if now <= self._at:
            return
        self._evaluate()
        # The state that ends now: of several changes at one moment, the last.
        if not self.timeline or self._at >= self.timeline[-1].at + self._apart:
            self.timeline.append(self._sample(self._at))
            if len(self.timeline) > MOST_SAMPLES:
                del self.timeline[1::2]
                self._apart = max(2 * self._apart, self.timeline[-1].at / MOST_SAMPLES)
        lasted = now - self._at
        for resource, requested in self._requested.items():
            self._integrals[resource] += requested * lasted
        for resource in self._typical:
            self._fragmentation_integrals[resource] += self._fragmentation(resource) * lasted
            self._imbalance_integrals[resource] += self._imbalance(resource) * lasted
        self._at = now

    def _evaluate(self) -> None:
        """Bring the sums up to date: only nodes that changed are evaluated."""
        for use in self._changed:
            free, offered = use.free, use.offered
            for resource, wanted in self._typical.items():
                if not offered.get(resource):
                    continue
                left = free[resource]
                stranded = 0
                if left > 0:
                    for each, amount in wanted:
                        if free.get(each, 0) < amount:
                            stranded = left
                            break
                if stranded != (before := use.stranded.get(resource, 0)):
                    self._stranded[resource] += stranded - before
                    use.stranded[resource] = stranded
                share = WHOLE - left * WHOLE // offered[resource]
                if share != (known := use.shares.get(resource, 0)):
                    self._shares[resource] += share - known
                    self._squares[resource] += share * share - known * known
                    use.shares[resource] = share
        self._changed.clear()

    def _fragmentation(self, resource: str) -> float:
        free = self._capacity[resource] - self._requested[resource]
        return min(1.0, self._stranded[resource] / free) if free > 0 else 0.0

    def _imbalance(self, resource: str) -> float:
        count, total = self._offering[resource], self._shares[resource]
        return math.sqrt(count * self._squares[resource] - total * total) / (count * WHOLE)

    def _sample(self, at: float) -> Sample:
        self._evaluate()
        shares = {
            resource: round(self._requested[resource] / capacity, DIGITS)
            for resource, capacity in self._capacity.items()
            if capacity
        }
        return Sample(
            at,
            self.running,
            self.pending,
            shares,
            {resource: round(self._fragmentation(resource), DIGITS) for resource in self._typical},
            {resource: round(self._imbalance(resource), DIGITS) for resource in self._typical},
        )
