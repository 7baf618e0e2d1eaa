"""What became of the pods of a simulation."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

import msgspec

from mooring.simulator.usage import Sample


class PodOutcome(msgspec.Struct, gc=False):
    """One pod, in seconds from the beginning."""

    namespace: str
    name: str
    arrived_at: float
    bound_at: float | None = None
    node: str | None = None
    ended_at: float | None = None
    attempts: int = 0
    is_preempted: bool = False
    message: str = ""
    """Why its last attempt failed, if it did."""

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"

    @property
    def waited_seconds(self) -> float | None:
        return None if self.bound_at is None else self.bound_at - self.arrived_at


class ResourceUse(msgspec.Struct, frozen=True):
    """Requested shares of what all nodes offer of a resource."""

    mean: float
    peak: float


class SimulationResult(msgspec.Struct):
    """All pods that arrived, and how the simulation ended."""

    pods: list[PodOutcome]
    """In the order of arrival."""
    ended_at: float
    attempts: int
    preemptions: int
    use: dict[str, ResourceUse]
    timeline: list[Sample]
    is_interrupted: bool = False
    """It was stopped before the end; what was computed so far is here."""

    @property
    def bound(self) -> list[PodOutcome]:
        return [pod for pod in self.pods if pod.bound_at is not None]

    @property
    def pending(self) -> list[PodOutcome]:
        """The pods that were never bound."""
        return [pod for pod in self.pods if pod.bound_at is None]

    @property
    def pending_reasons(self) -> list[tuple[str, int]]:
        """Why pods are pending, the most frequent reason first."""
        return Counter(pod.message or NOT_TRIED for pod in self.pending).most_common()

    def waited(self, *shares: float) -> list[float | None]:
        """Percentiles of the seconds from arrival to binding, of the pods that were bound."""
        waits = sorted(seconds for pod in self.pods if (seconds := pod.waited_seconds) is not None)
        return [percentile(waits, share) for share in shares]

    def moved(self, other: SimulationResult) -> list[tuple[PodOutcome, PodOutcome]]:
        """The pods that are on another node in the other outcome, or on none there or here."""
        theirs = {pod.key: pod for pod in other.pods}
        return [
            (pod, there) for pod in self.pods if (there := theirs.get(pod.key)) is not None and there.node != pod.node
        ]


NOT_TRIED = "it was not tried"


def percentile(ordered: Sequence[float], share: float) -> float | None:
    """The least of these numbers that so large a share of them does not exceed."""
    if not ordered:
        return None
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]
