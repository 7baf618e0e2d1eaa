"""kube-scheduler's metrics: names, types, labels, buckets and stability, as dashboards and alerts know them."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
from prometheus_client import CollectorRegistry, disable_created_metrics

from mooring.framework.gates import FeatureGates
from mooring.scheduler.metrics.series import Counter, Gauge, Histogram, Series

PREFIX = "scheduler_"

# Prometheus' Go client, which kube-scheduler uses, writes no such series.
disable_created_metrics()  # type: ignore[no-untyped-call]


def doubling(first: float, count: int, factor: float = 2.0) -> tuple[float, ...]:
    """Bucket bounds as the Go client makes them: each the one before times the factor."""
    bounds = [first]
    while len(bounds) < count:
        bounds.append(bounds[-1] * factor)
    return tuple(bounds)


ATTEMPT = doubling(0.001, 15)
POINT = doubling(0.0001, 12)
PLUGIN = doubling(0.00001, 20, 1.5)
SHORT = doubling(0.00001, 12)

STABLE, BETA, ALPHA = "STABLE", "BETA", "ALPHA"
"""What Kubernetes promises: stable ones stay as they are, alpha ones may change or go with any version."""


class Row(msgspec.Struct, frozen=True):
    """One metric."""

    name: str
    stability: str
    help: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()
    """A histogram has buckets."""
    is_gauge: bool = False
    gate: str | None = None
    """The feature gate without which the metric is absent."""

    def make(self) -> Series:
        name, description = PREFIX + self.name, f"[{self.stability}] {self.help}"
        if self.buckets:
            return Histogram(name, description, self.labels, self.buckets)
        if self.is_gauge:
            return Gauge(name, description, self.labels)
        return Counter(name, description, self.labels)


HINTS, ASYNC_PREEMPTION, ASYNC_CALLS = "SchedulerQueueingHints", "SchedulerAsyncPreemption", "SchedulerAsyncAPICalls"
CONDITIONS, WORKLOADS = "DRADeviceBindingConditions", "GenericWorkload"

ROWS = (
    # Attempts
    Row("schedule_attempts_total", STABLE, "Attempts to schedule pods, by result.", ("result", "profile")),
    Row(
        "scheduling_attempt_duration_seconds",
        STABLE,
        "Time of an attempt, with binding.",
        ("result", "profile"),
        ATTEMPT,
    ),
    Row("scheduling_algorithm_duration_seconds", ALPHA, "Time of the decision, without binding.", (), ATTEMPT),
    Row("pod_scheduling_sli_duration_seconds", BETA, "From ready to bound.", ("attempts",), doubling(0.01, 20)),
    Row("pod_scheduling_attempts", STABLE, "Attempts that a bound pod needed.", (), doubling(1, 5)),
    Row("pod_scheduled_after_flush_total", ALPHA, "Pods bound right after the flush of long unschedulable ones."),
    # Plugins
    Row(
        "framework_extension_point_duration_seconds",
        STABLE,
        "All plugins of an extension point.",
        ("extension_point", "status", "profile"),
        POINT,
    ),
    Row(
        "plugin_execution_duration_seconds",
        ALPHA,
        "One plugin at an extension point; measured in a tenth of the attempts.",
        ("plugin", "extension_point", "status"),
        PLUGIN,
    ),
    Row(
        "plugin_evaluation_total",
        BETA,
        "Attempts in which a plugin was evaluated (PreFilter, Filter, PreScore and Score).",
        ("plugin", "extension_point", "profile"),
    ),
    Row("permit_wait_duration_seconds", BETA, "Waiting on permit.", ("result",), ATTEMPT),
    # The queue
    Row("queue_incoming_pods_total", STABLE, "Pods that entered a queue, by the event.", ("queue", "event")),
    Row("pending_pods", STABLE, "Pending pods, by queue.", ("queue",), is_gauge=True),
    Row(
        "unschedulable_pods",
        BETA,
        "Pending pods by the plugin that rejected them last; a pod counts once for every plugin that rejected it.",
        ("plugin", "profile"),
        is_gauge=True,
    ),
    Row("event_handling_duration_seconds", ALPHA, "Time to handle a cluster event.", ("event",), POINT),
    Row(
        "queueing_hint_execution_duration_seconds",
        ALPHA,
        "Time to run a queueing hint of a plugin.",
        ("plugin", "event", "hint"),
        PLUGIN,
        gate=HINTS,
    ),
    Row(
        "inflight_events",
        ALPHA,
        "Events recorded for in-flight pods, and (PodPopped) those pods.",
        ("event",),
        is_gauge=True,
        gate=HINTS,
    ),
    # The cluster, and work beside the loop
    Row("cache_size", ALPHA, "Objects in the cluster cache, by type.", ("type",), is_gauge=True),
    Row("goroutines", BETA, "Running tasks, by operation.", ("operation",), is_gauge=True),
    # Preemption
    Row("preemption_victims", STABLE, "Victims chosen by a preemption.", (), doubling(1, 7)),
    Row("preemption_attempts_total", STABLE, "Preemption attempts."),
    Row(
        "preemption_goroutines_duration_seconds",
        ALPHA,
        "Time to execute a preemption.",
        ("result",),
        doubling(0.01, 20),
        gate=ASYNC_PREEMPTION,
    ),
    Row(
        "preemption_goroutines_execution_total",
        ALPHA,
        "Executed preemptions, by result.",
        ("result",),
        gate=ASYNC_PREEMPTION,
    ),
    # Pods of one kind after each other
    Row("batch_attempts_total", ALPHA, "Attempts to reuse the last decision.", ("profile", "result")),
    Row("batch_cache_flushed_total", ALPHA, "Decisions that could not be reused.", ("profile", "reason")),
    Row("get_node_hint_duration_seconds", ALPHA, "Time to look up a reusable decision.", ("hinted", "profile"), SHORT),
    Row("store_schedule_results_duration_seconds", ALPHA, "Time to store a decision for reuse.", ("profile",), SHORT),
    # Volumes and devices
    Row("volume_binder_cache_requests_total", ALPHA, "Requests to the cache of volume bindings.", ("operation",)),
    Row("volume_scheduling_stage_error_total", ALPHA, "Failures to bind volumes.", ("operation",)),
    Row("resourceclaim_creates_total", ALPHA, "ResourceClaims created.", ("status",), gate="DRAExtendedResource"),
    Row(
        "dra_bindingconditions_allocations_total",
        ALPHA,
        "Allocations that had to wait for binding conditions.",
        ("profile", "driver", "status"),
        gate=CONDITIONS,
    ),
    Row(
        "dra_bindingconditions_wait_duration_seconds",
        ALPHA,
        "Waiting for binding conditions.",
        ("profile", "driver", "status"),
        doubling(0.1, 14),
        gate=CONDITIONS,
    ),
    # Pod groups
    Row("podgroup_schedule_attempts_total", ALPHA, "Attempts at pod groups.", ("result", "profile"), gate=WORKLOADS),
    Row(
        "podgroup_scheduling_attempt_duration_seconds",
        ALPHA,
        "An attempt at a pod group.",
        ("result", "profile"),
        ATTEMPT,
        gate=WORKLOADS,
    ),
    Row("podgroup_scheduling_algorithm_duration_seconds", ALPHA, "Its decision.", (), ATTEMPT, gate=WORKLOADS),
    # What Mooring does not do, whatever the gate: there are never series, but for those without labels
    Row("async_api_call_execution_total", ALPHA, "API calls made.", ("call_type", "result"), gate=ASYNC_CALLS),
    Row(
        "async_api_call_execution_duration_seconds",
        ALPHA,
        "Making an API call.",
        ("call_type", "result"),
        ATTEMPT,
        gate=ASYNC_CALLS,
    ),
    Row("pending_async_api_calls", ALPHA, "API calls to make.", ("call_type",), is_gauge=True, gate=ASYNC_CALLS),
)


def registered(registry: CollectorRegistry, gates: FeatureGates) -> Iterator[tuple[str, Series]]:
    """Every metric whose gate is on, by its name without the prefix."""
    for row in ROWS:
        if row.gate is None or gates.on(row.gate):
            metric = row.make()
            registry.register(metric)
            yield row.name, metric
