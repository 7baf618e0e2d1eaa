"""What a run measured, in the form that upstream's dashboards read, and whether it is within the threshold."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from mooring.bench.scheduler_perf.workload_files import THROUGHPUT, MetricSelector


class DataItem(msgspec.Struct, frozen=True):
    """One metric with its values by bucket: `Average`, `Perc50`, …"""

    data: dict[str, float]
    unit: str
    labels: dict[str, str]

    @property
    def metric(self) -> str:
        return self.labels.get("Metric", "")


class Verdict(msgspec.Struct, frozen=True, rename="camel"):
    """A threshold, and the value that was held against it."""

    threshold: float
    value: float | None
    """None: too short to be measured."""
    passed: bool | None


class Run(msgspec.Struct, rename="camel", kw_only=True):
    """One workload with one scheduler."""

    case: str
    scheduler: str
    error: str = ""
    """Why it did not end. What was measured before is kept."""
    pods: int = 0
    """Scheduled while metrics were collected."""
    seconds: float = 0.0
    """From the first to the last of them."""
    cpu_seconds: float = 0.0
    """Of the scheduler, while metrics were collected."""
    peak_mib: float = 0.0
    run_seconds: float = 0.0
    """Of all operations, without the start of cluster and scheduler."""
    items: list[DataItem] = []
    verdict: Verdict | None = None

    @property
    def pods_per_second(self) -> float | None:
        """Over the whole measurement; the throughput of short ones, of which there are no samples."""
        return (self.pods - 1) / self.seconds if self.pods > 1 and self.seconds > 0 else None

    def item(self, metric: str, labels: Mapping[str, str] | None = None) -> DataItem | None:
        found = (each for each in self.items if each.metric == metric)
        return next((each for each in found if (labels or {}).items() <= each.labels.items()), None)

    @property
    def throughput(self) -> dict[str, float]:
        item = self.item(THROUGHPUT)
        return item.data if item is not None else {}

    def document(self) -> dict[str, Any]:
        document: dict[str, Any] = msgspec.to_builtins(self)
        return document | {"podsPerSecond": self.pods_per_second}


def judge(items: Iterable[DataItem], threshold: float, selector: MetricSelector) -> Verdict | None:
    """Hold the metric that the selector names against the threshold; the last one measured counts."""
    if not threshold:
        return None
    value = None
    for item in items:
        if item.metric == selector.name and selector.labels.items() <= item.labels.items():
            value = item.data.get(selector.data_bucket, value)
    if value is None:
        return Verdict(threshold, None, None)
    return Verdict(threshold, value, value < threshold if selector.expect_lower else value > threshold)
