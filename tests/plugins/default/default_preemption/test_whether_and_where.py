"""DefaultPreemption: who may preempt, which nodes are tried, and the message when it does not help."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import force_setattr
from tests.plugins.default.default_preemption.made import (
    PREEMPTED,
    a_preempting_cluster,
    a_running,
    an_important,
    plan_of,
    victims,
    words,
)
from tests.plugins.verdicts import requeues

from mooring.base.errors import OperatorMistake, PluginFault
from mooring.framework import Plugin, Pod, Rejection
from mooring.objects.core import PodCondition
from mooring.objects.placed import placed
from mooring.plugins.default.default_preemption import DefaultPreemption
from mooring.plugins.default.default_preemption.plugin import UNDER_WAY
from mooring.plugins.default.default_preemption.search import Search
from mooring.testing import Services, a_cluster, a_node, a_plugin, a_pod


def four() -> list[Pod]:
    """Four CPUs' worth of pods of priority 0."""
    return [a_running(name) for name in "abcd"]


def test_pods_of_lower_priority_make_room():
    decision = a_preempting_cluster(a_node("n", running=four())).decide(an_important())
    assert decision.is_refused
    assert plan_of(decision).nominate == "n"
    assert len(victims(decision)) == 2
    assert decision.message == "0/1 nodes are available: 1 Insufficient cpu."


WHY_NOT = {
    "the same priority is not lower": (
        {"priority": 0},
        "0/1 nodes are available: 1 No preemption victims found for incoming pod.",
    ),
    "more than the empty node has: evicting cannot help": (
        {"cpu": "5"},
        "0/1 nodes are available: 1 Preemption is not helpful for scheduling.",
    ),
}


@pytest.mark.parametrize(("wanted", "message"), WHY_NOT.values(), ids=WHY_NOT.keys())
def test_no_room_can_be_made(wanted, message):
    """4.7.1: which pods may preempt, and on which nodes."""
    decision = a_preempting_cluster(a_node("n", running=four())).decide(an_important(**wanted))
    assert decision.plan is None
    assert words(decision) == message
    assert decision.post_filtered.nominate == "", "an earlier nomination is given up"


def test_each_node_reports_what_is_wrong_with_it():
    cluster = a_preempting_cluster(
        a_node("cordoned", unschedulable=True, running=four()),
        a_node("small", cpu="1"),
        a_node("of-equals", running=[a_running("e", 10, cpu="4")]),
        a_node("mixed", running=[a_running("f", 10, cpu="3"), a_running("g", 0)]),
    )
    assert words(cluster.decide(an_important())) == (
        "0/4 nodes are available: 1 Insufficient cpu, 1 No preemption victims found for incoming pod, "
        "2 Preemption is not helpful for scheduling."
    )


def test_a_pod_that_must_not_preempt_does_not():
    """4.7.1: which pods may preempt, and on which nodes."""
    pod = an_important(nominated="n")
    force_setattr(pod.spec, "preemption_policy", "Never")
    decision = a_preempting_cluster(a_node("n", running=four())).decide(pod)
    assert decision.plan is None
    assert words(decision) == "not eligible due to preemptionPolicy=Never."
    assert decision.post_filtered.nominate is None, "an earlier nomination stays"


GOING_ON_NOMINATED_NODE = {
    "a victim of preemption is still going": ({"going": True, "conditions": [PREEMPTED]}, False),
    "the victim has a priority that is not lower": ({"going": True, "conditions": [PREEMPTED], "priority": 10}, True),
    "a user deleted it": ({"going": True}, True),
    "it was evicted for another reason": (
        {"going": True, "conditions": [PodCondition(type="DisruptionTarget", status="True", reason="EvictionByAPI")]},
        True,
    ),
    "it is marked and not going yet": ({"conditions": [PREEMPTED]}, True),
}


@pytest.mark.parametrize(("running", "preempts"), GOING_ON_NOMINATED_NODE.values(), ids=GOING_ON_NOMINATED_NODE.keys())
def test_a_pod_waits_for_its_victims_to_go(running, preempts):
    """4.7.1: which pods may preempt, and on which nodes."""
    nodes = a_node("n", running=[a_running("v", **running), *four()[:3]]), a_node("other", running=four())
    decision = a_preempting_cluster(*nodes).decide(an_important(nominated="n"))
    assert (decision.plan is not None) == preempts
    if not preempts:
        assert words(decision) == "not eligible due to a terminating pod on the nominated node."
        assert decision.post_filtered.nominate is None


@pytest.mark.parametrize("nominated", ["cordoned", "gone"])
def test_a_pod_does_not_wait_where_its_node_will_not_do_any_more(nominated):
    going = [a_running("v", going=True, conditions=[PREEMPTED]), *four()[:3]]
    nodes = a_node("cordoned", unschedulable=True, running=going), a_node("other", running=four())
    assert plan_of(a_preempting_cluster(*nodes).decide(an_important(nominated=nominated))).nominate == "other"


def test_nominated_pods_of_higher_or_equal_priority_keep_their_room():
    cluster = a_preempting_cluster(a_node("n", running=four()))
    cluster.state.nominations.set(a_pod("first", cpu="3", priority=10), "n")
    assert words(cluster.decide(an_important())) == "0/1 nodes are available: 1 Insufficient cpu."
    cluster.state.nominations.set(a_pod("lesser", uid="x", cpu="3", priority=9), "n")
    assert victims(cluster.decide(an_important(cpu="1", priority=10)))


def test_while_room_is_made_the_pod_is_kept_out_of_the_queue():
    """4.7.d: the preemptor is gated until then."""
    services = Services()
    plugin, pod = a_plugin(DefaultPreemption, services), a_pod()
    assert plugin.pre_enqueue(pod) is None
    services.preemptions.under_way.add(pod.uid)
    assert plugin.pre_enqueue(pod) == UNDER_WAY


def test_it_names_deletions_of_pods_but_never_wakes_by_them():
    plugin = a_plugin(DefaultPreemption)
    [hint] = plugin.events()
    assert (hint.resource, hint.action.names()) == ("Pod", ["Delete"])
    assert not requeues(plugin, a_pod(), placed(a_pod(node="n")), None)


# How many nodes are tried


def of_many(nodes: int, **args: Any):
    each = [a_node(f"n{number:03d}", running=[a_running(f"v{number}", cpu="4")]) for number in range(nodes)]
    return a_preempting_cluster(*each, **args).decide(an_important())


ENOUGH = {
    "by default all of a small cluster": (50, {}, 50),
    "by default a hundred of a larger one": (130, {}, 100),
    "the percentage where it is more": (
        100,
        {"min_candidate_nodes_percentage": 30, "min_candidate_nodes_absolute": 5},
        30,
    ),
    "the number where that is more": (20, {"min_candidate_nodes_percentage": 10, "min_candidate_nodes_absolute": 5}, 5),
    "none of it, still one": (20, {"min_candidate_nodes_percentage": 0, "min_candidate_nodes_absolute": 1}, 1),
}


@pytest.mark.parametrize(("nodes", "args", "tried"), ENOUGH.values(), ids=ENOUGH.keys())
def test_the_search_ends_when_enough_candidates_are_found(nodes, args, tried):
    assert len(plan_of(of_many(nodes, **args)).candidates) == tried


@pytest.mark.parametrize("at_once", [1, 64, 150, 1000])
def test_how_many_nodes_are_tried_at_once_changes_no_candidate(at_once):
    each = [a_node(f"n{number:03d}", running=[a_running("v", number % 3 * 9, cpu="4")]) for number in range(200)]
    cluster, pod = a_preempting_cluster(*each), an_important()
    pod.template.notes.keep(Search, None)
    plan = plan_of(cluster.decide(pod))
    pod.template.notes.keep(Search, at_once)
    again = plan_of(cluster.decide(pod))
    assert list(again.candidates) == list(plan.candidates)
    assert (again.nominate, again.evict) == (plan.nominate, plan.evict)
    assert 100 < pod.template.notes.get(Search) < 200


def test_both_limits_at_zero_are_a_mistake():
    with pytest.raises(OperatorMistake, match="both"):
        a_plugin(DefaultPreemption, min_candidate_nodes_percentage=0, min_candidate_nodes_absolute=0)


# Faults


class Fragile(Plugin):
    """Refuses every node of a pod at first sight, and breaks on one without pods."""

    def filter(self, pod: Any, node: Any, cycle: Any) -> Rejection | None:
        if node.pods:
            return Rejection("occupied")
        if node.name.startswith("bad"):
            raise RuntimeError("oh")
        return None


def test_a_filter_that_breaks_on_one_node_costs_that_node():
    plugins = [Fragile(), a_plugin(DefaultPreemption)]
    nodes = [a_node("bad", running=[a_running("a")]), a_node("good", running=[a_running("b")])]
    assert plan_of(a_cluster(*nodes, plugins=plugins).decide(an_important())).nominate == "good"


def test_a_filter_that_breaks_on_every_node_is_reported():
    plugins = [Fragile(), a_plugin(DefaultPreemption)]
    decision = a_cluster(a_node("bad", running=[a_running("a")]), plugins=plugins).decide(an_important())
    assert decision.message == (
        '0/1 nodes are available: 1 occupied. preemption: running "Fragile" filter plugin: RuntimeError: oh'
    )
    assert isinstance(decision.post_filtered.results[0][1], PluginFault)
    assert decision.post_filtered.nominate is None


# Evidence


def test_the_evidence_names_the_victims_and_every_candidate():
    nodes = [a_node("a", running=[a_running("x", cpu="4")]), a_node("b", running=[a_running("y", 1, cpu="4")])]
    reported = a_preempting_cluster(*nodes).decide(an_important()).evidence()["plan"]
    assert reported == {
        "nominate": "a",
        "evict": ["default/x"],
        "candidateCount": 2,
        "candidates": [
            {"node": "a", "victims": ["default/x"], "budgetViolations": 0},
            {"node": "b", "victims": ["default/y"], "budgetViolations": 0},
        ],
    }


def test_the_evidence_names_where_room_was_sought_in_vain():
    nodes = [a_node("a", running=[a_running("x", 10, cpu="4")]), a_node("b", cpu="1")]
    reported = a_preempting_cluster(*nodes).decide(an_important()).evidence()["noRoom"]
    assert reported == [{"reasons": ["No preemption victims found for incoming pod"], "count": 1, "nodes": ["a"]}]
