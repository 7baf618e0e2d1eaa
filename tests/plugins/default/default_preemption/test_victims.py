"""DefaultPreemption: the victims on a node."""

from __future__ import annotations

import pytest
from tests.plugins.default.default_preemption.made import (
    a_budget,
    a_preempting_cluster,
    a_running,
    an_important,
    candidate,
    victims,
)

from mooring.objects.core import TopologySpreadConstraint
from mooring.objects.selectors import LabelSelector
from mooring.testing import a_node, a_pod

ON_ONE_NODE = {
    "no more than needed": ([a_running("big", cpu="3"), a_running("small")], "1", ["small"]),
    "the most important are spared, even if more have to go": (
        [a_running("big", 5, cpu="2"), a_running("a", 1), a_running("b", 1)],
        "2",
        ["a", "b"],
    ),
    "of equal priority the older are spared": (
        [a_running("young", started=9, cpu="2"), a_running("old", started=1, cpu="2")],
        "2",
        ["young"],
    ),
    "one that has not started counts as the youngest": (
        [a_running("new", started=None, cpu="2"), a_running("old", started=1, cpu="2")],
        "2",
        ["new"],
    ),
    "of several that have not started the last is spared": (
        [a_running("first", started=None, cpu="2"), a_running("last", started=None, cpu="2")],
        "2",
        ["first"],
    ),
    "of several that started at once the first is spared": (
        [a_running("first", started=1, cpu="2"), a_running("last", started=1, cpu="2")],
        "2",
        ["last"],
    ),
    "the most important victim is named first": (
        [a_running("c", 1, started=2), a_running("b", 1, started=1), a_running("a", 2), a_running("d", 1, started=3)],
        "4",
        ["a", "b", "c", "d"],
    ),
    "pods of the same or a higher priority stay": (
        [a_running("equal", 10, cpu="2"), a_running("lower", 9, cpu="2")],
        "2",
        ["lower"],
    ),
    "one that is going already is a victim like any other": (
        [a_running("going", going=True, cpu="2"), a_running("staying", 1, cpu="2")],
        "2",
        ["going"],
    ),
}


@pytest.mark.parametrize(("running", "cpu", "expected"), ON_ONE_NODE.values(), ids=ON_ONE_NODE.keys())
def test_victims_of_a_node_of_four_cpus(running, cpu, expected):
    """4.7.2: victims have lower priority and are few."""
    assert victims(a_preempting_cluster(a_node("n", running=running)).decide(an_important(cpu))) == expected


WEB, DB = {"app": "web"}, {"app": "db"}
BUDGETS = {
    "who is protected is spared before the others": (
        [a_running("web", labels=WEB, cpu="2"), a_running("free", 5, cpu="2")],
        [a_budget("web", 0, WEB)],
        (["free"], 0),
    ),
    "where all are protected, that many violations are counted": (
        [a_running("web", labels=WEB, cpu="2"), a_running("db", 5, labels=DB, cpu="2")],
        [a_budget("web", 0, WEB), a_budget("db", 0, DB)],
        (["web"], 1),
    ),
    "as many may go as the budget allows, the most important first": (
        [a_running("a", 5, labels=WEB, cpu="2"), a_running("b", 1, labels=WEB, cpu="2")],
        [a_budget("web", 1, WEB)],
        # b is the one too many; it is put back first.
        (["a"], 0),
    ),
    "a pod that two budgets protect counts against both": (
        [a_running("both", 5, labels=WEB | DB | {"tier": "x"}, cpu="2"), a_running("db", 1, labels=DB, cpu="2")],
        [a_budget("db", 1, DB), a_budget("tier", 1, {"tier": "x"})],
        (["both"], 0),
    ),
    "one that the API server is evicting has been counted": (
        [a_running("web", labels=WEB, cpu="2"), a_running("free", 5, cpu="2")],
        [a_budget("web", 0, WEB, disrupted=["web"])],
        (["web"], 0),
    ),
    "a budget of another namespace protects no pod here": (
        [a_running("web", labels=WEB, cpu="2"), a_running("free", 5, cpu="2")],
        [a_budget("web", 0, WEB, namespace="other")],
        (["web"], 0),
    ),
    "an empty selector protects no pod": (
        [a_running("web", labels=WEB, cpu="2"), a_running("free", 5, cpu="2")],
        [a_budget("all", 0, {})],
        (["web"], 0),
    ),
    "nor does none": (
        [a_running("web", labels=WEB, cpu="2"), a_running("free", 5, cpu="2")],
        [a_budget("none", 0, None)],
        (["web"], 0),
    ),
}


@pytest.mark.parametrize(("running", "budgets", "expected"), BUDGETS.values(), ids=BUDGETS.keys())
def test_disruption_budgets(running, budgets, expected):
    """4.7.2: victims have lower priority and are few."""
    decision = a_preempting_cluster(a_node("n", running=running), budgets=budgets).decide(an_important())
    found = candidate(decision, "n")
    assert ([victim.name for victim in found.victims], found.budget_violations) == expected


def test_protected_and_other_victims_are_named_in_one_order_of_importance():
    running = [a_running("free", 1, cpu="2"), a_running("web", 0, labels=WEB), a_running("web2", 5, labels=WEB)]
    cluster = a_preempting_cluster(a_node("n", running=running), budgets=[a_budget("web", 0, WEB)])
    found = candidate(cluster.decide(an_important("4")), "n")
    assert ([victim.name for victim in found.victims], found.budget_violations) == (["web2", "free", "web"], 2)


def test_a_port_is_free_as_soon_as_one_of_its_holders_is_evicted():
    # Two pods can hardly hold one port; where they do, kube-scheduler's dry run counts it as free, and so do we.
    running = [a_running("equal", 10, ports=[80]), a_running("lower", 0, ports=[80])]
    decision = a_preempting_cluster(a_node("n", running=running)).decide(an_important("1", ports=[80]))
    assert victims(decision) == ["lower"]


def test_spreading_counts_a_pod_that_is_going_when_it_is_evicted():
    """One that is being deleted is not counted, and yet taken off when it is evicted: as upstream."""
    labels = {"app": "a"}
    spread = TopologySpreadConstraint(
        max_skew=1,
        topology_key="kubernetes.io/hostname",
        when_unsatisfiable="DoNotSchedule",
        label_selector=LabelSelector(match_labels=labels),
    )
    full = a_node(
        "full", running=[a_running("kept", 5, labels=labels), a_running("going", labels=labels, going=True, cpu="3")]
    )
    empty = a_node("empty", cpu="500m")
    cluster = a_preempting_cluster(full, empty)
    before = cluster.decide(an_important("1", labels=labels, spread=[spread]))
    assert victims(before) == ["going"]
    again = cluster.decide(an_important("1", labels=labels, spread=[spread]))
    assert victims(again) == ["going"], "and nothing of that is left behind"


def test_lower_priority_pods_nominated_to_the_node_are_not_counted():
    cluster = a_preempting_cluster(a_node("n", running=[a_running("v", cpu="4")]))
    cluster.state.nominations.set(a_pod("lesser", cpu="4", priority=5), "n")
    assert victims(cluster.decide(an_important("4"))) == ["v"]
