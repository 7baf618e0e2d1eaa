"""What happens in the scheduler, as numbers. Written by loop, cycles and queue; read by the serving thread.

Counting one attempt must cost next to nothing, so series are plain numbers, and what can be read off the queue and the
state is read when metrics are scraped, not when it changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from enum import Enum
from typing import Any

import prometheus_client
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from mooring.base.clock import Clock
from mooring.framework.gates import FeatureGates
from mooring.scheduler.metrics.attempt_metrics import AttemptMetrics, Tracer
from mooring.scheduler.metrics.metric_definitions import registered
from mooring.scheduler.metrics.plugin_metrics import PluginMetrics
from mooring.scheduler.metrics.process_metrics import register_process
from mooring.scheduler.metrics.request_metrics import RequestMetrics
from mooring.scheduler.metrics.series import Counter, Gauge, Histogram, Readings, Series

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
MOST_ATTEMPTS = 15
_LABELS = [*map(str, range(MOST_ATTEMPTS)), f"{MOST_ATTEMPTS}+"]


class AttemptResult(Enum):
    """How an attempt ended."""

    SCHEDULED = "scheduled"
    UNSCHEDULABLE = "unschedulable"
    ERROR = "error"


class SchedulerMetrics:
    """kube-scheduler's metrics, ours, and the plugins' own."""

    def __init__(self, gates: FeatureGates, clock: Clock, tracer: Tracer | None = None) -> None:
        """`tracer` receives every attempt."""
        self._clock = clock
        self.now = clock.monotonic
        """What durations are measured with."""
        self.registry = CollectorRegistry()
        self._metrics: dict[str, Series] = dict(registered(self.registry, gates))
        register_process(self.registry, gates)
        self._attempt_seconds = self._histogram("scheduling_attempt_duration_seconds")
        self._attempts_needed = self._histogram("pod_scheduling_attempts").at[()]
        self._sli_seconds = self._histogram("pod_scheduling_sli_duration_seconds")
        self._entries = self._counter("queue_incoming_pods_total")
        has_hints = "queueing_hint_execution_duration_seconds" in self._metrics
        self._hints = self._histogram("queueing_hint_execution_duration_seconds") if has_hints else None
        self._event_seconds = self._histogram("event_handling_duration_seconds")
        dominated = Counter(
            "mooring_plugin_slow_attempts_total",
            "Slow attempts of which one plugin took the greater part.",
            ("plugin", "extension_point", "profile"),
        )
        self.registry.register(dominated)
        self._points = self._histogram("framework_extension_point_duration_seconds")
        self.attempts = AttemptMetrics(
            clock,
            decisions=self._histogram("scheduling_algorithm_duration_seconds").at[()],
            points=self._points,
            executions=self._histogram("plugin_execution_duration_seconds"),
            dominated=dominated,
            volume_failures=self._counter("volume_scheduling_stage_error_total"),
            tracer=tracer,
        )
        """How long plugins take."""
        self.watch(self._derived)
        self.requests = RequestMetrics(self.registry)
        self.plugins = PluginMetrics(self.registry, self._metrics)
        self.health = HealthMetrics()

    def text(self) -> bytes:
        """All of them, as Prometheus reads it."""
        return generate_latest(self.registry)

    def watch(self, sizes: Callable[[], Iterable[Sizes]]) -> None:
        """Read these numbers at every scrape."""
        self.registry.register(_Sizes(sizes, self._metrics))

    def _counter(self, name: str) -> Counter:
        metric = self._metrics[name]
        assert isinstance(metric, Counter), f"{name} is no counter"
        return metric

    def _histogram(self, name: str) -> Histogram:
        metric = self._metrics[name]
        assert isinstance(metric, Histogram), f"{name} is no histogram"
        return metric

    def _count(self, name: str, *labels: str) -> None:
        """One more, unless its gate is off."""
        if name in self._metrics:
            self._counter(name).at[labels] += 1

    def _observe(self, name: str, value: float, *labels: str) -> None:
        if name in self._metrics:
            self._histogram(name).at[labels].observe(value)

    # An attempt

    def attempted(self, result: AttemptResult, profile: str, began: float) -> None:
        """Once per attempt: when the pod is bound or requeued. `began` by the monotonic clock."""
        self._attempt_seconds.at[result._value_, profile].observe(self.now() - began)

    def pod_group_decided(self, seconds: float) -> None:
        """All members of a pod group were tried."""
        self._observe("podgroup_scheduling_algorithm_duration_seconds", seconds)

    def pod_group_attempted(self, result: str, profile: str, seconds: float) -> None:
        self._observe("podgroup_scheduling_attempt_duration_seconds", seconds, result, profile)
        self._count("podgroup_schedule_attempts_total", result, profile)

    def _derived(self) -> list[Sizes]:
        """Counters that follow from other numbers: attempts are as many as were timed."""
        attempts = {labels: sum(list(series.counts)) for labels, series in list(self._attempt_seconds.at.items())}
        return [
            Sizes("schedule_attempts_total", attempts),
            Sizes("plugin_evaluation_total", self.attempts.evaluations()),
        ]

    def bound(self, attempts: int, first_attempt: float | None, *, after_flush: bool) -> None:
        """`first_attempt` is when the pod could first have been tried, in seconds since the epoch."""
        self._attempts_needed.observe(attempts)
        if first_attempt is not None:
            label = _LABELS[min(attempts, MOST_ATTEMPTS)]
            self._sli_seconds.at[label,].observe(self._clock.now() - first_attempt)
        if after_flush:
            self._count("pod_scheduled_after_flush_total")

    def waited_on_permit(self, status: str, seconds: float) -> None:
        self._observe("permit_wait_duration_seconds", seconds, status)

    def leads(self, lease: str, is_leading: bool) -> None:
        """Whether this process leads; the series exists only with leader election. May come from any thread."""
        status = self._metrics.get("master_status")
        if status is None:
            description = "[ALPHA] 1 on the scheduler that leads, 0 on those that stand by."
            status = self._metrics["master_status"] = Gauge("leader_election_master_status", description, ("name",))
            self.registry.register(status)
        assert isinstance(status, Gauge)
        status.at[lease,] = float(is_leading)

    def took_slow_path(self, lease: str) -> None:
        """A renewal had to read the lease again: another client had written it. From the electing thread."""
        slow = self._metrics.get("slowpath")
        if slow is None:
            description = "[ALPHA] Lease renewals that took the slow path."
            slow = self._metrics["slowpath"] = Counter("leader_election_slowpath_total", description, ("name",))
            self.registry.register(slow)
        assert isinstance(slow, Counter)
        slow.at[lease,] += 1

    # Preemption

    def preempting(self) -> None:
        self._count("preemption_attempts_total")

    def chose_victims(self, count: int) -> None:
        self._observe("preemption_victims", count)

    def preempted(self, *, succeeded: bool, seconds: float) -> None:
        result = "success" if succeeded else "error"
        self._count("preemption_goroutines_execution_total", result)
        self._observe("preemption_goroutines_duration_seconds", seconds, result)

    # The queue

    def entered(self, queue: str, event: str) -> None:
        self._entries.at[queue, event] += 1

    def handled(self, event: str, seconds: float) -> None:
        self._event_seconds.at[event,].observe(seconds)

    def gated(self, profile: str, status: str, seconds: float) -> None:
        """PreEnqueue plugins were run for a pod."""
        self._points.at["PreEnqueue", status, profile].observe(seconds)

    def hinted(self, plugin: str, event: str, hint: str, seconds: float) -> None:
        if self._hints is not None:
            self._hints.at[plugin, event, hint].observe(seconds)


class HealthMetrics:
    """How health checks went, in the form of Kubernetes' own components; served apart from the rest."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._last = prometheus_client.Gauge(
            "kubernetes_healthcheck", "[STABLE] Whether a check passed last.", ("name", "type"), registry=self._registry
        )
        self._all = prometheus_client.Counter(
            "kubernetes_healthchecks_total",
            "[STABLE] Checks by result.",
            ("name", "status", "type"),
            registry=self._registry,
        )

    def observed(self, endpoint: str, check: str, is_well: bool) -> None:
        self._last.labels(check, endpoint).set(is_well)
        self._all.labels(check, "success" if is_well else "error", endpoint).inc()

    def text(self) -> bytes:
        return generate_latest(self._registry)


class Sizes:
    """A gauge or counter of the table whose values are read off something."""

    def __init__(self, name: str, values: Readings) -> None:
        self.name, self.values = name, values


class _Sizes(Collector):
    def __init__(self, sizes: Callable[[], Iterable[Sizes]], metrics: dict[str, Series]) -> None:
        self._sizes = sizes
        self._metrics = metrics

    def describe(self) -> Iterable[Any]:
        """Empty: the table has registered the names, and there may be no numbers yet."""
        return ()

    def collect(self) -> Iterator[Metric]:
        for size in self._sizes():
            metric = self._metrics.get(size.name)
            if metric is not None and size.values:
                yield metric.family(size.values.items())
