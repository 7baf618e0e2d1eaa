"""What is counted, under which names; and what plugins count of their own."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from mooring.base.clock import ManualClock
from mooring.base.errors import Fault
from mooring.framework import FeatureGates
from mooring.scheduler.metrics import AttemptResult, SchedulerMetrics, Sizes
from mooring.scheduler.metrics.metric_definitions import ROWS
from mooring.scheduler.metrics.series import spelled

START = 1000.0
GATED = {row.gate for row in ROWS if row.gate is not None}
PROFILE = {"profile": "default-scheduler"}


def value(metrics: SchedulerMetrics, name: str, /, **labels: str) -> float:
    """What a scrape shows of one series."""
    return next(
        sample.value
        for family in text_string_to_metric_families(metrics.text().decode())
        for sample in family.samples
        if (sample.name, sample.labels) == (name, labels)
    )


def test_an_attempt_is_counted_by_result_and_profile():
    metrics = SchedulerMetrics(FeatureGates(), ManualClock(START))
    metrics.attempted(AttemptResult.SCHEDULED, "default-scheduler", START - 0.003)
    metrics.attempted(AttemptResult.UNSCHEDULABLE, "default-scheduler", START - 0.001)
    took, placed = "scheduler_scheduling_attempt_duration_seconds", {"result": "scheduled"} | PROFILE
    assert value(metrics, "scheduler_schedule_attempts_total", **placed) == 1
    assert value(metrics, f"{took}_count", result="unschedulable", **PROFILE) == 1
    assert value(metrics, f"{took}_bucket", le="0.002", **placed) == 0
    assert value(metrics, f"{took}_bucket", le="0.004", **placed) == 1


@pytest.mark.parametrize(("attempts", "label"), [(1, "1"), (14, "14"), (15, "15+"), (99, "15+")])
def test_many_attempts_share_a_label(attempts, label):
    metrics = SchedulerMetrics(FeatureGates(), ManualClock(START))
    metrics.bound(attempts, START - 1.5, after_flush=attempts == 99)
    assert value(metrics, "scheduler_pod_scheduling_sli_duration_seconds_count", attempts=label) == 1
    assert value(metrics, "scheduler_pod_scheduled_after_flush_total") == (attempts == 99)


def test_sizes_are_read_at_each_scrape():
    metrics = SchedulerMetrics(FeatureGates(), ManualClock(START))
    pending = {("active",): 1}
    metrics.watch(lambda: [Sizes("pending_pods", pending)])
    pending[("active",)] = 7
    assert value(metrics, "scheduler_pending_pods", queue="active") == 7


def test_the_metrics_of_a_gate_that_is_off_are_absent():
    metrics = SchedulerMetrics(FeatureGates({"SchedulerAsyncPreemption": False}), ManualClock(START))
    metrics.preempted(succeeded=True, seconds=1)
    assert b"preemption_goroutines" not in metrics.text()
    assert b"preemption_attempts_total" in metrics.text()


def test_a_metric_without_series_is_absent_as_the_go_client_has_it():
    reported = SchedulerMetrics(FeatureGates(), ManualClock(START)).text()
    assert b"scheduler_schedule_attempts_total" not in reported
    assert b"scheduler_preemption_attempts_total 0.0" in reported
    assert b"scheduler_preemption_victims_count 0.0" in reported


def test_help_begins_with_the_stability():
    metrics = SchedulerMetrics(FeatureGates(), ManualClock(START))
    metrics.preempting()
    assert b"# HELP scheduler_preemption_attempts_total [STABLE] " in metrics.text()


def test_bounds_are_spelled_as_go_spells_them():
    metrics = SchedulerMetrics(FeatureGates(), ManualClock(START))
    metrics.bound(3, None, after_flush=False)
    metrics.gated("default-scheduler", "Success", 0.0003)
    assert b'scheduler_pod_scheduling_attempts_bucket{le="4"} 1.0' in metrics.text()
    assert b'le="0.0004",profile="default-scheduler"' in metrics.text()
    assert b'le="4.0"' not in metrics.text()


@pytest.mark.parametrize(
    ("bound", "text"),
    [(1e-05, "1e-05"), (0.0001, "0.0001"), (1, "1"), (262144, "262144"), (1048576, "1.048576e+06"), (1e7, "1e+07")],
)
def test_a_bound_as_go_spells_it(bound, text):
    assert spelled(float(bound)) == text


def test_a_plugin_may_count_on_kube_schedulers_own_metric():
    metrics = SchedulerMetrics(FeatureGates(), ManualClock(START))
    made = metrics.plugins.counter("scheduler_resourceclaim_creates_total", "Mine.", "status")
    made.inc(status="success")
    assert value(metrics, "scheduler_resourceclaim_creates_total", status="success") == 1


def test_counting_on_a_metric_whose_gate_is_off_counts_nothing():
    metrics = SchedulerMetrics(FeatureGates({"DRAExtendedResource": False}), ManualClock(START))
    metrics.plugins.counter("scheduler_resourceclaim_creates_total", "Mine.", "status").inc(status="success")
    assert b"resourceclaim_creates" not in metrics.text()


def test_requests_are_reported_as_the_go_client_reports_them():
    metrics = SchedulerMetrics(FeatureGates(), ManualClock(START))
    metrics.requests.responded("POST", "10.0.0.1:6443", "201", 0.004, 300)
    metrics.requests.received("POST", "10.0.0.1:6443", 100)
    metrics.requests.held_back("POST", "10.0.0.1:6443", 0.0)
    where = {"verb": "POST", "host": "10.0.0.1:6443"}
    assert value(metrics, "rest_client_requests_total", code="201", method="POST", host="10.0.0.1:6443") == 1
    assert value(metrics, "rest_client_request_duration_seconds_bucket", le="0.005", **where) == 1
    assert value(metrics, "rest_client_request_size_bytes_bucket", le="512", **where) == 1
    assert value(metrics, "rest_client_response_size_bytes_sum", **where) == 100


def test_a_lease_that_needed_another_look_is_counted():
    metrics = SchedulerMetrics(FeatureGates(), ManualClock(START))
    metrics.took_slow_path("mooring")
    assert value(metrics, "leader_election_slowpath_total", name="mooring") == 1


def test_every_metric_of_the_table_can_be_reported():
    metrics = SchedulerMetrics(FeatureGates(dict.fromkeys(GATED, True)), ManualClock(START))
    names = {family.name for family in metrics.registry.collect()}
    unlabelled = {row.name.removesuffix("_total") for row in ROWS if not row.labels}
    assert {f"scheduler_{name}" for name in unlabelled} <= names


def test_features_and_build_are_reported():
    metrics = SchedulerMetrics(FeatureGates({"SchedulerAsyncPreemption": False}), ManualClock(START))
    assert value(metrics, "kubernetes_feature_enabled", name="SchedulerAsyncPreemption", stage="BETA") == 0
    assert value(metrics, "kubernetes_feature_enabled", name="SchedulerQueueingHints", stage="") == 1
    assert b'kubernetes_build_info{build_date=""' in metrics.text()
    assert b"process_cpu_seconds_total" in metrics.text()


def test_the_leader_is_reported_where_there_is_an_election():
    metrics = SchedulerMetrics(FeatureGates(), ManualClock(START))
    assert b"leader_election" not in metrics.text()
    metrics.leads("mooring", False)
    metrics.leads("mooring", True)
    assert value(metrics, "leader_election_master_status", name="mooring") == 1


def test_a_plugin_counts_what_it_likes():
    metrics = SchedulerMetrics(FeatureGates(), ManualClock(START))
    requested = metrics.plugins.counter("quota_requests_total", "Requests.", "team")
    requested.inc(team="red")
    requested.inc(2, team="red")
    metrics.plugins.gauge("quota_left", "What is left.").set(5)
    metrics.plugins.histogram("quota_seconds", "How long.", buckets=(1.0, 2.0)).observe(1.5)
    assert value(metrics, "quota_requests_total", team="red") == 3
    assert value(metrics, "quota_left") == 5
    assert value(metrics, "quota_seconds_bucket", le="2.0") == 1


def test_two_instances_of_a_plugin_share_their_metrics():
    metrics = SchedulerMetrics(FeatureGates(), ManualClock(START))
    first, second = (metrics.plugins.counter("quota_requests_total", "Requests.") for _ in range(2))
    first.inc()
    second.inc(2)
    assert value(metrics, "quota_requests_total") == 3


@pytest.mark.parametrize(
    ("name", "logged"),
    [
        ("scheduler_mine", "names that begin with scheduler_ are kube-scheduler's"),
        ("2fast", "is not the name of a metric"),
        ("rest_client_requests_total", "choose another name"),
        ("quota_left", "is there already, as another type"),
    ],
)
def test_a_name_that_cannot_be_had_is_refused(name, logged):
    plugins = SchedulerMetrics(FeatureGates(), ManualClock(START)).plugins
    plugins.gauge("quota_left", "What is left.")
    with pytest.raises(Fault, match=logged):
        plugins.counter(name, "Mine.")


def test_the_documentation_names_every_metric_with_its_labels():
    page = (Path(__file__).parents[3] / "docs" / "metrics.md").read_text(encoding="utf-8")
    missing = [
        row.name for row in ROWS if not re.search(rf"\| `{row.name}` \| \w+ \| {', '.join(row.labels)} \|", page)
    ]
    assert missing == []
