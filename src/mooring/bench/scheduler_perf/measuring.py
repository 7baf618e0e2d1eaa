"""Collects what upstream collects: throughput by the second, histograms of the scheduler, its memory, the duration."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Protocol

from mooring.base.clock import Clock
from mooring.bench.processes import Usage
from mooring.bench.scheduler_perf.histograms import DEFAULT_METRICS, Scrape, label_sets
from mooring.bench.scheduler_perf.pod_watch import PodWatch, ScheduledCounter
from mooring.bench.scheduler_perf.results import DataItem, Run
from mooring.bench.scheduler_perf.throughput import SAMPLE_SECONDS, ThroughputSamples
from mooring.bench.scheduler_perf.workload_files import THROUGHPUT, MetricsConfig

DURATION, MEMORY = "SchedulingDuration", "process_resident_memory"


class MeasuredScheduler(Protocol):
    """What a measurement reads of the scheduler under test."""

    async def metrics(self) -> str:
        """The text of /metrics; empty where the scheduler serves none."""
        ...

    def usage(self) -> Usage: ...


class Measurement:
    """One collection of metrics, from its start to its end."""

    def __init__(
        self,
        name: str,
        pods: PodWatch,
        scheduler: MeasuredScheduler,
        config: MetricsConfig | None,
        clock: Clock,
        namespaces: Collection[str],
        selector: Mapping[str, str],
    ) -> None:
        self._name, self._pods, self._scheduler, self._clock = name, pods, scheduler, clock
        self._config = config or DEFAULT_METRICS
        self._counter = ScheduledCounter(namespaces, selector, clock.monotonic)
        self._samples = ThroughputSamples()
        self._sampling: asyncio.Task[None] | None = None
        self._unsubscribe: Callable[[], None] = lambda: None
        self._before = Scrape("", ())
        self._usage = Usage()
        self._began = 0.0

    @property
    def scheduled(self) -> int:
        return self._counter.count

    async def start(self) -> None:
        self._before = Scrape(await self._scheduler.metrics(), self._config.metrics)
        self._usage = self._scheduler.usage()
        self._began = self._clock.monotonic()
        self._unsubscribe = self._pods.on_scheduled(self._counter)
        self._sampling = asyncio.create_task(self._sample(self._clock.sleep))

    async def _sample(self, sleep: Callable[[float], Awaitable[None]]) -> None:
        due = self._began
        while True:
            due += SAMPLE_SECONDS
            await sleep(max(due - self._clock.monotonic(), 0.0))
            self._samples.take(self._clock.monotonic(), self._counter.count)

    async def stop(self, run: Run) -> None:
        """Add what was measured to the run."""
        assert self._sampling is not None, "the measurement was not started"
        self._sampling.cancel()
        self._unsubscribe()
        duration, usage = self._clock.monotonic() - self._began, self._scheduler.usage()
        run.pods += self._counter.count
        run.seconds += self._counter.last - self._counter.first
        run.cpu_seconds += usage.cpu_seconds - self._usage.cpu_seconds
        run.peak_mib = max(run.peak_mib, usage.peak_mib)
        run.items.append(self._item(THROUGHPUT, self._samples.summary(), "pods/s"))
        run.items.append(self._item(DURATION, {"Duration": duration}, "s"))
        run.items.append(self._item(MEMORY, {"Max": usage.peak_mib}, "MiB"))
        after = Scrape(await self._scheduler.metrics(), self._config.metrics)
        for metric, values in self._config.metrics.items():
            for labels in label_sets(values):
                histogram = after.since(self._before, metric, labels)
                if histogram.count:
                    run.items.append(self._item(metric, histogram.summary(), "ms", labels))

    def _item(
        self, metric: str, data: dict[str, float], unit: str, labels: Mapping[str, str] | None = None
    ) -> DataItem:
        return DataItem(data, unit, {"Name": self._name, "Metric": metric, **(labels or {})})
