"""The `Metrics` service: numbers that a plugin keeps of itself, served with the scheduler's own."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import prometheus_client
from prometheus_client import CollectorRegistry

from mooring.base.errors import Fault
from mooring.framework.services import CounterMetric, HistogramMetric
from mooring.scheduler.metrics.metric_definitions import PREFIX, ROWS
from mooring.scheduler.metrics.series import Counter, Histogram, Series

_NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
_NOT_YOURS = (
    f'metric "{{}}": names that begin with {PREFIX} are kube-scheduler\'s, with its types and labels; choose another'
)


class _Labelled:
    """A metric that takes its labels with each call."""

    __slots__ = ("_children", "_metric")

    def __init__(self, metric: Any) -> None:
        self._metric = metric
        self._children: dict[tuple[tuple[str, str], ...], Any] = {}

    def _at(self, labels: dict[str, str]) -> Any:
        if not labels:
            return self._metric
        key = tuple(labels.items())
        child = self._children.get(key)
        if child is None:
            child = self._children[key] = self._metric.labels(**labels)
        return child


class _Counter(_Labelled):
    def inc(self, amount: float = 1.0, /, **labels: str) -> None:
        self._at(labels).inc(amount)


class _Gauge(_Labelled):
    def set(self, value: float, /, **labels: str) -> None:
        self._at(labels).set(value)


class _Histogram(_Labelled):
    def observe(self, value: float, /, **labels: str) -> None:
        self._at(labels).observe(value)


class _SchedulerMetric:
    """A metric of the scheduler's table that a plugin counts on; nothing where its gate is off."""

    __slots__ = ("_kept",)

    def __init__(self, kept: Series | None) -> None:
        self._kept = kept

    def inc(self, amount: float = 1.0, /, **labels: str) -> None:
        if isinstance(self._kept, Counter):
            self._kept.at[tuple(labels[name] for name in self._kept.labels)] += amount

    def observe(self, value: float, /, **labels: str) -> None:
        if isinstance(self._kept, Histogram):
            self._kept.at[tuple(labels[name] for name in self._kept.labels)].observe(value)


class PluginMetrics:
    """The framework's `Metrics`, on a registry that the scheduler serves.

    Two instances of a plugin (two profiles that configure it differently) share their metrics. A plugin that does what
    kube-scheduler counts of its own may count on that metric, under its name and with its labels.
    """

    def __init__(self, registry: CollectorRegistry, table: Mapping[str, Series] | None = None) -> None:
        self._registry = registry
        self._table = table or {}
        self._made: dict[str, tuple[type, tuple[str, ...], Any]] = {}

    def counter(self, name: str, description: str, *labels: str) -> CounterMetric:
        if name.startswith(PREFIX):
            return self._scheduler_metric(name, labels, is_histogram=False)
        return _Counter(self._metric(prometheus_client.Counter, name, description, labels))

    def gauge(self, name: str, description: str, *labels: str) -> _Gauge:
        return _Gauge(self._metric(prometheus_client.Gauge, name, description, labels))

    def histogram(self, name: str, description: str, *labels: str, buckets: tuple[float, ...] = ()) -> HistogramMetric:
        if name.startswith(PREFIX):
            return self._scheduler_metric(name, labels, is_histogram=True)
        options = {"buckets": buckets} if buckets else {}
        return _Histogram(self._metric(prometheus_client.Histogram, name, description, labels, **options))

    def totals(self, name: str) -> dict[tuple[str, ...], float]:
        """What a counter has counted so far, by the values of its labels."""
        _, labels, made = self._made[name]
        samples = [sample for family in made.collect() for sample in family.samples if sample.name == name]
        return {tuple(sample.labels[label] for label in labels): sample.value for sample in samples}

    def _scheduler_metric(self, name: str, labels: tuple[str, ...], *, is_histogram: bool) -> _SchedulerMetric:
        row = next((row for row in ROWS if PREFIX + row.name == name), None)
        if row is None or row.is_gauge or bool(row.buckets) != is_histogram or set(row.labels) != set(labels):
            raise Fault(_NOT_YOURS.format(name))
        return _SchedulerMetric(self._table.get(row.name))

    def _metric(self, kind: type, name: str, description: str, labels: tuple[str, ...], **options: Any) -> Any:
        if not _NAME.fullmatch(name):
            raise Fault(f'"{name}" is not the name of a metric: letters, digits and _ only, not a digit first')
        if name.startswith(PREFIX):
            raise Fault(_NOT_YOURS.format(name))
        known = self._made.get(name)
        if known is None:
            try:
                made = kind(name, description, labels, registry=self._registry, **options)
            except ValueError as error:  # the name is taken, by the process's or the client's metrics
                raise Fault(f'metric "{name}": {error}; choose another name') from None
            known = self._made[name] = (kind, labels, made)
        elif known[:2] != (kind, labels):
            raise Fault(f'metric "{name}" is there already, as another type or with other labels')
        return known[2]
