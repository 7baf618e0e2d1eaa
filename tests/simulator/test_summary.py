"""The figures of a run, under names that do not change."""

from __future__ import annotations

import pytest
from tests.simulator.scenarios import a_cluster_of, arriving, simulated

from mooring.base.errors import OperatorMistake
from mooring.objects.migration import ZONE
from mooring.simulator import Cluster, simulate
from mooring.simulator.outcome import SimulatedEviction
from mooring.simulator.spread import OwnerSpread
from mooring.testing import a_node_object


def test_the_figures_of_a_run():
    outcome = simulated(
        a_cluster_of("a", cpu="2"), arriving(0, "first", seconds=100, cpu="2"), arriving(0, "second"), arriving(50, "x")
    )
    figures = outcome.summary()
    assert {name: figures[name] for name in ("pods", "bound", "pending", "preempted", "attempts", "ended_at")} == {
        "pods": 3,
        "bound": 3,
        "pending": 0,
        "preempted": 0,
        "attempts": 5,
        "ended_at": 100.0,
    }
    assert [figures[f"waited_{name}"] for name in ("mean", "p50", "p90", "p99", "max")] == [50.0, 50.0, 100, 100, 100]
    assert (figures["cpu_requested_mean"], figures["cpu_requested_peak"]) == (1.0, 1.0)
    assert (figures["cpu_fragmentation_mean"], figures["cpu_imbalance_end"]) == (0.0, 0.0)


def test_a_run_that_takes_no_time_has_no_means():
    outcome = simulated(a_cluster_of("a", "b"), arriving(0, "large", cpu="2"))
    figures = outcome.summary()
    assert (figures["waited_p50"], figures["cpu_requested_mean"], figures["cpu_fragmentation_mean"]) == (None,) * 3
    assert figures["cpu_fragmentation_end"] == 1.0  # two nodes with 1 free each, for a pod of 2


def test_all_runs_of_a_cluster_and_a_workload_have_the_same_figures():
    one = simulated(a_cluster_of("a"), arriving(0, "pod", cpu="1"))
    other = simulated(a_cluster_of("a"), arriving(0, "pod", cpu="3"))
    assert list(one.summary()) == list(other.summary())


def test_owners_are_spread_over_nodes_and_zones():
    nodes = [a_node_object(name, cpu="4", labels={ZONE: zone}) for name, zone in (("a", "x"), ("b", "x"), ("c", "y"))]
    pods = [arriving(0, f"web-{number}", owner="web", node_selector=None) for number in range(6)]
    outcome = simulate(
        Cluster(nodes), [*pods, arriving(0, "alone"), arriving(0, "single", owner="single")], ties="first"
    )
    assert outcome.spread == [OwnerSpread("web", 6, 3, 2, 2, 2)]
    figures = outcome.summary()
    assert {name: value for name, value in figures.items() if name.startswith("spread_")} == {
        "spread_owners": 1,
        "spread_nodes_per_pod": 0.5,
        "spread_most_on_node": 2,
        "spread_zone_skew_mean": 2.0,
        "spread_zone_skew_max": 2,
    }


def test_the_moment_counts_at_which_the_most_pods_of_an_owner_ran():
    one_by_one = [arriving(number * 10, f"job-{number}", seconds=5, owner="job") for number in range(3)]
    outcome = simulated(a_cluster_of("a"), *one_by_one, arriving(100, "b-0", owner="b", cpu="500m"))
    assert outcome.spread == []


def test_who_preempted_a_pod_is_kept():
    outcome = simulated(a_cluster_of("a"), arriving(0, "low", priority=1), arriving(60, "high", priority=10))
    assert outcome.evictions == [SimulatedEviction(60.0, "default/low", "default/high", "a")]
    assert [pod.preempted_by for pod in outcome.pods] == ["default/high", ""]


def test_requests_that_cannot_be_read_name_the_pod():
    with pytest.raises(OperatorMistake, match="requests of pod default/odd cannot be read"):
        simulated(a_cluster_of("a"), arriving(0, "odd", cpu="lots"))
