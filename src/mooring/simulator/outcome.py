"""What became of the pods of a simulation."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from mooring.simulator.influence import PluginInfluence
from mooring.simulator.moves import Move
from mooring.simulator.spread import OwnerSpread
from mooring.simulator.usage import Sample

if TYPE_CHECKING:
    from mooring.simulator.charts import Chart


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
    owner: str = ""
    """Its controller."""
    preempted_by: str = ""
    """The pod that it made room for, if it is known."""

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
    fragmentation_mean: float | None = None
    """See `usage`; None: no time passed, or no pod of the workload requests the resource."""
    fragmentation_end: float | None = None
    imbalance_mean: float | None = None
    imbalance_end: float | None = None


class SimulatedEviction(msgspec.Struct, frozen=True, gc=False):
    """A pod that was preempted."""

    at: float
    victim: str
    preemptor: str
    """"": a plugin evicted it without a plan."""
    node: str


class PluginFaults(msgspec.Struct, frozen=True):
    """How often a plugin failed at an extension point, by an exception or by exceeding the time budget."""

    plugin: str
    point: str
    count: int
    example: str = ""
    """The first message, if it failed while a pod was decided."""


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
    evictions: list[SimulatedEviction] = []
    spread: list[OwnerSpread] = []
    """Of owners that had two pods or more at a time."""
    influence: list[PluginInfluence] = []
    """Empty where it was not counted."""
    faults: list[PluginFaults] = []
    moves: list[Move] = []
    """The pods that go elsewhere than in the baseline, and why; empty without a baseline."""
    notes: list[str] = []
    """Sentences about what is not in the result: pods that no profile serves, data of other systems."""

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

    def summary(self) -> dict[str, float | int | None]:
        """The figures of the run by name, the same names for all runs of a cluster and a workload.

        None: there is no such figure, as the mean over time of a run that took none.
        """
        waits = sorted(seconds for pod in self.pods if (seconds := pod.waited_seconds) is not None)
        figures: dict[str, float | int | None] = {
            "pods": len(self.pods),
            "bound": len(waits),
            "pending": len(self.pods) - len(waits),
            "preempted": self.preemptions,
            "attempts": self.attempts,
            "plugin_faults": sum(each.count for each in self.faults),
            "ended_at": self.ended_at,
            "waited_mean": math.fsum(waits) / len(waits) if waits else None,
            **{f"waited_{name}": percentile(waits, share) for name, share in PERCENTILES.items()},
        }
        for resource, use in self.use.items():
            figures[f"{resource}_requested_mean"] = use.mean if self.ended_at else None
            figures[f"{resource}_requested_peak"] = use.peak
            figures[f"{resource}_fragmentation_mean"] = use.fragmentation_mean
            figures[f"{resource}_fragmentation_end"] = use.fragmentation_end
            figures[f"{resource}_imbalance_mean"] = use.imbalance_mean
            figures[f"{resource}_imbalance_end"] = use.imbalance_end
        return figures | self._spread_figures()

    def _spread_figures(self) -> dict[str, float | int | None]:
        spread, count = self.spread, len(self.spread)
        return {
            "spread_owners": count,
            # 1: every pod was on a node of its own.
            "spread_nodes_per_pod": math.fsum(each.nodes / each.pods for each in spread) / count if count else None,
            "spread_most_on_node": max((each.most_on_node for each in spread), default=None),
            "spread_zone_skew_mean": sum(each.zone_skew for each in spread) / count if count else None,
            "spread_zone_skew_max": max((each.zone_skew for each in spread), default=None),
        }

    def __repr__(self) -> str:
        bound = len(self.bound)
        counts = f"{bound:,} bound, {len(self.pods) - bound:,} pending, {self.preemptions:,} preempted"
        return f"<simulation of {len(self.pods):,} pods: {counts}{', interrupted' if self.is_interrupted else ''}>"

    # For notebooks

    def frame(self) -> Any:
        """The same as `pods_frame`."""
        return self.pods_frame()

    def pods_frame(self) -> Any:
        """A polars DataFrame with a row for each pod."""
        return self._frame("pods_table")

    def timeline_frame(self) -> Any:
        """A polars DataFrame with a row for each sample of the timeline."""
        return self._frame("timeline_table")

    def influence_frame(self) -> Any:
        """A polars DataFrame with a row for each plugin that made a difference."""
        return self._frame("influence_table")

    def evictions_frame(self) -> Any:
        """A polars DataFrame with a row for each pod that was preempted."""
        return self._frame("evictions_table")

    def spread_frame(self) -> Any:
        """A polars DataFrame with a row for each owner that had two pods or more at a time."""
        return self._frame("spread_table")

    def _frame(self, table: str) -> Any:
        from mooring.simulator import tables

        return getattr(tables, table)({"": self}).frame()

    def plot(self, what: str, *, resource: str = "cpu") -> Chart:
        """A chart: "utilisation", "fragmentation", "imbalance" of a resource over time, "pending", "running",
        "waiting", "waiting-histogram", "influence", "rejections"."""
        from mooring.simulator.plots import plot

        return plot({"": self}, what, resource)

    def _repr_html_(self) -> str:
        from mooring.simulator.html_report import result_fragment

        return result_fragment(self)

    def moved(self, other: SimulationResult) -> list[tuple[PodOutcome, PodOutcome]]:
        """The pods that are on another node in the other outcome, or on none there or here."""
        theirs = {pod.key: pod for pod in other.pods}
        return [
            (pod, there) for pod in self.pods if (there := theirs.get(pod.key)) is not None and there.node != pod.node
        ]


PERCENTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "max": 1.0}
"""Of the seconds that pods waited, as they are reported."""
NOT_TRIED = "it was not tried"


def percentile(ordered: Sequence[float], share: float) -> float | None:
    """The least of these numbers that so large a share of them does not exceed."""
    if not ordered:
        return None
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]
