"""Histograms of a scheduler's /metrics: what was observed between two scrapes, and its average and quantiles.

Upstream resets the metrics of its scheduler when a measurement begins. A scheduler of its own process cannot be reset:
the scrape at the beginning is subtracted from the one at the end.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product

from mooring.bench.scheduler_perf.workload_files import LabelValues, MetricsConfig

MILLISECONDS = 1000.0
QUANTILES = (50, 90, 95, 99)
EXTENSION_POINTS = (
    *("PreFilter", "Filter", "PreFilterExtensionAddPod", "PreFilterExtensionRemovePod", "PostFilter", "PreScore"),
    *("Score", "ScoreExtensionNormalize", "PreBind", "Bind", "PostBind", "Reserve", "Unreserve", "Permit"),
)
DEFAULT_METRICS = MetricsConfig(
    {
        "scheduler_framework_extension_point_duration_seconds": [LabelValues("extension_point", [*EXTENSION_POINTS])],
        "scheduler_scheduling_attempt_duration_seconds": [
            LabelValues("result", ["scheduled", "unschedulable", "error"])
        ],
        "scheduler_pod_scheduling_sli_duration_seconds": None,
    }
)
"""What is collected where a test case names no metrics: upstream's, without those of single plugins and with the SLI
in place of the metric that was removed for it."""

_SAMPLE = re.compile(r"^(\w+)(?:\{(.*)\})? (\S+)")
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')

Labels = frozenset[tuple[str, str]]


@dataclass(frozen=True)
class Histogram:
    """Cumulative counts by upper bound, the number of values and their sum."""

    buckets: Mapping[float, float]
    count: float
    total: float

    def __add__(self, other: Histogram) -> Histogram:
        bounds = self.buckets.keys() | other.buckets.keys()
        buckets = {bound: self.buckets.get(bound, 0) + other.buckets.get(bound, 0) for bound in bounds}
        return Histogram(buckets, self.count + other.count, self.total + other.total)

    def __sub__(self, other: Histogram) -> Histogram:
        buckets = {bound: count - other.buckets.get(bound, 0) for bound, count in self.buckets.items()}
        return Histogram(buckets, self.count - other.count, self.total - other.total)

    def quantile(self, share: float) -> float:
        """Linear inside the bucket; the last finite bound where the value is above all of them."""
        ranked = sorted(self.buckets.items())
        rank = share * self.count
        place = next((number for number, (_, count) in enumerate(ranked) if count >= rank), len(ranked) - 1)
        bound, count = ranked[place]
        lower, below = ranked[place - 1] if place else (0.0, 0.0)
        if math.isinf(bound):
            return lower
        return lower + (bound - lower) * ((rank - below) / (count - below) if count > below else 0.0)

    def summary(self) -> dict[str, float]:
        """In milliseconds."""
        quantiles = {f"Perc{each}": self.quantile(each / 100) * MILLISECONDS for each in QUANTILES}
        return {"Average": self.total / self.count * MILLISECONDS} | quantiles


NOTHING = Histogram({}, 0, 0)


class Scrape:
    """The histograms of one scrape, by name and labels."""

    def __init__(self, text: str, names: Iterable[str]) -> None:
        self._series: dict[str, dict[Labels, Histogram]] = {name: {} for name in names}
        parts: dict[tuple[str, Labels], tuple[dict[float, float], list[float]]] = {}
        for name, suffix, labels, bound, value in _samples(text, self._series.keys()):
            buckets, totals = parts.setdefault((name, labels), ({}, [0.0, 0.0]))
            if bound is not None:
                buckets[bound] = value
            else:
                totals[suffix == "_sum"] = value
        for (name, labels), (buckets, (count, total)) in parts.items():
            self._series[name][labels] = Histogram(buckets, count, total)

    def since(self, before: Scrape, name: str, wanted: Mapping[str, str]) -> Histogram:
        """What was observed since the scrape before, in all series with these labels."""
        found = NOTHING
        for labels, histogram in self._series.get(name, {}).items():
            if wanted.items() <= set(labels):
                found += histogram - before._series.get(name, {}).get(labels, NOTHING)
        return found


def _samples(text: str, names: Iterable[str]) -> Iterator[tuple[str, str, Labels, float | None, float]]:
    wanted = {f"{name}{suffix}": (name, suffix) for name in names for suffix in ("_bucket", "_count", "_sum")}
    for line in text.splitlines():
        match = _SAMPLE.match(line)
        if match is None or match[1] not in wanted:
            continue
        labels = dict(_LABEL.findall(match[2] or ""))
        bound = labels.pop("le", None)
        name, suffix = wanted[match[1]]
        yield name, suffix, frozenset(labels.items()), None if bound is None else float(bound), float(match[3])


def label_sets(values: Iterable[LabelValues] | None) -> list[dict[str, str]]:
    """Every combination of the values; one without labels where none are distinguished."""
    pairs = [[(each.label, value) for value in each.values] for each in values or ()]
    return [dict(combination) for combination in product(*pairs)]
