"""Counters and histograms as plain numbers: what an attempt adds to them must cost next to nothing.

One thread writes, and the one that serves reads copies: no lock is needed. A family without series is not exposed,
as Prometheus' Go client does it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

Labels = tuple[str, ...]


class Series(Collector):
    """A metric with all its series."""

    def __init__(self, name: str, help: str, labels: Labels) -> None:
        self.name, self.help, self.labels = name, help, labels

    def describe(self) -> Iterable[Metric]:
        """The name is taken, whether there are series or not."""
        return [Metric(self.name.removesuffix("_total"), self.help, "untyped")]

    def family(self, values: Iterable[tuple[Labels, float]]) -> Metric:
        """These values under its name, as Prometheus' library takes them."""
        raise NotImplementedError


class Counter(Series):
    """Counters. `at[labels] += 1` is all that it takes."""

    def __init__(self, name: str, help: str, labels: Labels = ()) -> None:
        super().__init__(name, help, labels)
        self.at: defaultdict[Labels, float] = defaultdict(float)
        if not labels:
            self.at[()] = 0.0

    def collect(self) -> Iterator[Metric]:
        if self.at:
            yield self.family(list(self.at.items()))

    def family(self, values: Iterable[tuple[Labels, float]]) -> Metric:
        family = CounterMetricFamily(self.name, self.help, labels=self.labels)
        for labels, value in values:
            family.add_metric(labels, value)
        return family


class Gauge(Series):
    """Gauges that are set."""

    def __init__(self, name: str, help: str, labels: Labels = ()) -> None:
        super().__init__(name, help, labels)
        self.at: dict[Labels, float] = {} if labels else {(): 0.0}

    def collect(self) -> Iterator[Metric]:
        if self.at:
            yield self.family(list(self.at.items()))

    def family(self, values: Iterable[tuple[Labels, float]]) -> Metric:
        family = GaugeMetricFamily(self.name, self.help, labels=self.labels)
        for labels, value in values:
            family.add_metric(labels, value)
        return family


class Buckets:
    """One series of a histogram."""

    __slots__ = ("_bounds", "counts", "sum")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self._bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        """How many fell between each bound and the one before; the last are those beyond all bounds."""
        self.sum = 0.0

    def observe(self, value: float) -> None:
        self.counts[bisect_left(self._bounds, value)] += 1
        self.sum += value


class _Series(dict[Labels, Buckets]):
    """Made at first use."""

    def __init__(self, bounds: tuple[float, ...]) -> None:
        super().__init__()
        self._bounds = bounds

    def __missing__(self, labels: Labels) -> Buckets:
        made = self[labels] = Buckets(self._bounds)
        return made


class Histogram(Series):
    """Histograms. `at[labels].observe(value)`."""

    def __init__(self, name: str, help: str, labels: Labels, bounds: tuple[float, ...]) -> None:
        super().__init__(name, help, labels)
        self.bounds = bounds
        self._spelled = [*map(spelled, bounds), "+Inf"]
        self.at = _Series(bounds)
        if not labels:
            self.at[()] = Buckets(bounds)

    def collect(self) -> Iterator[Metric]:
        if not self.at:
            return
        family = HistogramMetricFamily(self.name, self.help, labels=self.labels)
        for labels, series in list(self.at.items()):
            so_far, buckets = 0, []
            for bound, count in zip(self._spelled, list(series.counts), strict=True):
                so_far += count
                buckets.append((bound, float(so_far)))
            family.add_metric(labels, buckets, sum_value=series.sum)
        yield family


def spelled(bound: float) -> str:
    """As the Go client writes it: a series is known by this text, and 1 is another one than 1.0."""
    text = repr(bound).removesuffix(".0")
    if bound < 1e6:
        return text
    digits = text.rstrip("0")
    fraction = f".{digits[1:]}" if len(digits) > 1 else ""
    return f"{digits[0]}{fraction}e+{len(text) - 1:02d}"


Readings = Mapping[Any, float]
"""A gauge that is read off something: label values (a tuple) → number."""
