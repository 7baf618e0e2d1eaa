"""Which plugin moved which pods: each cause in a scenario where it is the only one possible."""

from __future__ import annotations

import pytest
from tests.simulator.scenarios import a_cluster_of, arriving

from mooring.framework import Plugin, Rejection
from mooring.objects.core import Taint
from mooring.simulator import Arrival, Cluster, profile, simulate
from mooring.simulator.comparison import SimulationComparison, compare, simulate_each
from mooring.simulator.configurations import AnyConfiguration
from mooring.simulator.moves import EARLIER, FAULT, FILTER, SCORE, TIE
from mooring.testing import a_node_object


class LikesB(Plugin):
    """Scores node b."""

    def score(self, pod, node, cycle):
        return 100 if node.name == "b" else 0


class KeepsOffA(Plugin):
    """Rejects node a."""

    def filter(self, pod, node, cycle):
        return Rejection("it is a") if node.name == "a" else None


class FailsLarge(Plugin):
    """Fails on large pods."""

    def filter(self, pod, node, cycle):
        if pod.request("cpu") > 1000:
            raise ValueError("too large")


PLAIN = profile(disable=["*"], enable=["NodeResourcesFit"], weights={"NodeResourcesFit": 1})


def both(
    second: AnyConfiguration, *arrivals: Arrival, first: AnyConfiguration = PLAIN, cpu: str = "1"
) -> SimulationComparison:
    cluster = a_cluster_of("a", "b", cpu=cpu)
    return simulate_each(cluster, arrivals, {"first": first, "second": second}, ties="first")


def test_a_score_that_shifted_moved_the_pod():
    comparison = both(profile(disable=["*"], enable=["NodeResourcesFit", LikesB]), arriving(0, "pod"))
    [move] = comparison.moves("second")
    assert (move.before, move.after, move.cause, move.plugin) == ("a", "b", SCORE, "LikesB")
    assert move.points == 100
    assert move.explained() == "LikesB shifted 100 points from a to b"


def test_a_score_that_is_gone_moved_the_pod_too():
    comparison = both(PLAIN, arriving(0, "pod"), first=profile(disable=["*"], enable=["NodeResourcesFit", LikesB]))
    [move] = comparison.moves("second")
    assert (move.before, move.after, move.cause, move.plugin, move.points) == ("b", "a", SCORE, "LikesB", 100)


def test_a_filter_that_rejects_the_other_node_moved_the_pod():
    comparison = both(profile(disable=["*"], enable=["NodeResourcesFit", KeepsOffA]), arriving(0, "pod"))
    [move] = comparison.moves("second")
    assert (move.after, move.cause, move.plugin, move.reason) == ("b", FILTER, "KeepsOffA", "rejects a: it is a")


def test_a_filter_that_is_gone_moved_the_pod_too():
    first = profile(disable=["*"], enable=["NodeResourcesFit", KeepsOffA])
    [move] = both(PLAIN, arriving(0, "pod"), first=first).moves("second")
    assert (move.after, move.cause, move.plugin) == ("a", FILTER, "KeepsOffA")


def test_a_pod_that_finds_its_node_taken_moved_because_of_earlier_placements():
    """The first goes to b by a score; the second would go to b with either configuration, but finds it full."""
    tainted = a_node_object("a", cpu="1", taints=[Taint(key="soft", effect="PreferNoSchedule")])
    cluster = Cluster([a_node_object("c", cpu="1"), a_node_object("b", cpu="1"), tainted])
    first = profile(disable=["*"], enable=["NodeResourcesFit", "TaintToleration"])
    second = profile(disable=["*"], enable=["NodeResourcesFit", "TaintToleration", LikesB], weights={"LikesB": 10})
    arrivals = [arriving(0, "one"), arriving(1, "two")]
    comparison = simulate_each(cluster, arrivals, {"first": first, "second": second}, ties="first")
    one, two = comparison.moves("second")
    assert (one.before, one.after, one.cause) == ("c", "b", SCORE)
    assert (two.before, two.after, two.cause, two.plugin) == ("b", "c", EARLIER, "")
    assert comparison.first_move("second") == one
    assert [(each.cause, each.plugin, each.pods) for each in comparison.causes("second")] == [
        (SCORE, "LikesB", 1),
        (EARLIER, "", 1),
    ]


def test_a_pod_that_is_pending_in_one_run_is_explained():
    selective = profile(disable=["*"], enable=["NodeResourcesFit", KeepsOffA])
    comparison = both(selective, arriving(0, "one"), arriving(1, "two"))
    by_pod = {move.pod: move for move in comparison.moves("second")}
    two = by_pod["default/two"]
    assert (two.before, two.after, two.cause, two.plugin) == ("b", None, FILTER, "KeepsOffA")


def test_a_plugin_that_fails_is_named():
    broken = profile(disable=["*"], enable=["NodeResourcesFit", FailsLarge])
    [move] = both(broken, arriving(0, "large", cpu="2"), cpu="4").moves("second")
    assert (move.after, move.cause, move.plugin) == (None, FAULT, "FailsLarge")


def test_one_of_several_equal_nodes_is_a_tie():
    """The filter leaves two of three equal nodes. Of each set the seed takes the second."""
    selective = profile(disable=["*"], enable=["NodeResourcesFit", KeepsOffA])
    cluster = a_cluster_of("a", "b", "c")
    comparison = simulate_each(cluster, [arriving(0, "pod")], {"first": PLAIN, "second": selective})
    [move] = comparison.moves("second")
    assert (move.before, move.after, move.cause, move.instead) == ("b", "c", TIE, "b")
    assert move.explained() == "c and b have equal scores"


def test_the_same_configuration_moves_no_pod():
    assert both(PLAIN, arriving(0, "pod")).moves("second") == []


def test_a_baseline_changes_no_decision():
    arrivals = [arriving(number, f"pod-{number}", cpu="300m", seconds=4) for number in range(20)]
    cluster = a_cluster_of("a", "b", "c")
    second = profile(enable=[LikesB])
    alone = simulate(cluster, arrivals, second)
    beside = simulate_each(cluster, arrivals, {"first": None, "second": second}).results["second"]
    assert beside.moves
    assert alone.pods == beside.pods
    assert alone.timeline == beside.timeline


def test_results_that_were_run_apart_are_compared_without_causes():
    cluster = a_cluster_of("a", "b")
    runs = {"one": simulate(cluster, [arriving(0, "pod")], PLAIN, ties="first")}
    runs["two"] = simulate(cluster, [arriving(0, "pod")], profile(enable=[KeepsOffA]))
    comparison = compare(runs)
    [move] = comparison.moves("two")
    assert (move.before, move.after, move.cause) == ("a", "b", "")
    assert set(comparison.summary()) == {"one", "two"}


def test_a_comparison_of_nothing_is_a_mistake():
    with pytest.raises(ValueError, match="at least one result"):
        compare({})
