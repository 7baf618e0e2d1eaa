"""When no node is feasible: which plugins run, in which order, the message of the pod, and whose events may help."""

from __future__ import annotations

from typing import Any

import pytest
from tests.engine.builders import a_profile, a_state, made, rejecting, rejecting_at_once

from mooring.engine import Decision, decide
from mooring.framework import PENDING, UNRESOLVABLE, OnlyNodes, Plan, Plugin, Refusal, Rejection, Skip
from mooring.testing import a_pod

NODES = ("a", "b", "c")


def refused(*plugins: Plugin, nodes: tuple[str, ...] = NODES) -> Decision:
    decision = decide(a_profile(*plugins), a_pod(), a_state(*nodes))
    assert decision.is_refused
    return decision


def everywhere(name: str, *reasons: str, code: Any = None) -> Plugin:
    rejection = Rejection(*reasons, code=code) if code else Rejection(*reasons)
    return rejecting(name, dict.fromkeys([*NODES, *(f"n{number}" for number in range(200))], rejection))


def pre_filtering(name: str, result: Any, **more: Any) -> Plugin:
    return made(name, pre_filter=lambda _pod, _cycle: result, **more)


MESSAGES = {
    "nodes are counted per reason, and reasons sorted as text": (
        [
            rejecting("Taints", {"a": Rejection("node(s) had untolerated taint(s)")}),
            everywhere("Fit", "Insufficient cpu"),
        ],
        NODES,
        "0/3 nodes are available: 1 node(s) had untolerated taint(s), 2 Insufficient cpu.",
    ),
    "ten stands before two": (
        [rejecting("X", {"a": Rejection("x"), "b": Rejection("x")}), everywhere("Y", "y")],
        ("a", "b", *(f"n{number}" for number in range(10))),
        "0/12 nodes are available: 10 y, 2 x.",
    ),
    "a node with two reasons counts in both": (
        [everywhere("Fit", "Insufficient cpu", "Insufficient memory")],
        NODES,
        "0/3 nodes are available: 3 Insufficient cpu, 3 Insufficient memory.",
    ),
    "only the first plugin that rejects a node counts": (
        [everywhere("First", "first"), everywhere("Second", "second")],
        NODES,
        "0/3 nodes are available: 3 first.",
    ),
    "a pre_filter's refusal is the reason for all nodes": (
        [pre_filtering("Gang", Refusal("the gang is not complete", "2 of 5")), everywhere("Fit", "never runs")],
        NODES,
        "0/3 nodes are available: the gang is not complete, 2 of 5.",
    ),
    "an unschedulable pre_filter lets the others run, and the last one counts": (
        [pre_filtering("One", Refusal("one")), pre_filtering("Two", Refusal("two"))],
        NODES,
        "0/3 nodes are available: two.",
    ),
    "an unresolvable pre_filter ends it": (
        [pre_filtering("One", Refusal("one", code=UNRESOLVABLE)), pre_filtering("Two", Refusal("two"))],
        NODES,
        "0/3 nodes are available: one.",
    ),
    "one plugin that names no node": (
        [pre_filtering("Local", OnlyNodes(()))],
        NODES,
        "0/3 nodes are available: node(s) didn't satisfy plugin Local.",
    ),
    "plugins that name no node in common": (
        [pre_filtering("One", OnlyNodes({"a"})), pre_filtering("Two", OnlyNodes({"b"}))],
        NODES,
        "0/3 nodes are available: node(s) didn't satisfy plugin(s) [One Two] simultaneously.",
    ),
    "nodes that were not named count as not satisfying the plugins that named others": (
        [
            pre_filtering("Two", OnlyNodes({"a"})),
            pre_filtering("One", OnlyNodes({"a", "b"})),
            everywhere("Fit", "full"),
        ],
        NODES,
        "0/3 nodes are available: 1 full, 2 node(s) didn't satisfy plugin(s) [One Two].",
    ),
    "a named node that does not exist": (
        [pre_filtering("Local", OnlyNodes({"nowhere"}))],
        NODES,
        "0/3 nodes are available: 3 node(s) didn't satisfy plugin(s) [Local].",
    ),
    "no nodes at all": ([everywhere("Fit", "full")], (), "no nodes available to schedule pods"),
    "a rejection without reasons": (
        [everywhere("Mute")],
        NODES,
        "0/3 nodes are available: 3 node(s) rejected by plugin Mute without a reason.",
    ),
    "the messages of post_filters follow, joined": (
        [
            everywhere("Fit", "full"),
            made("One", post_filter=lambda *_: Refusal("no new claims to deallocate")),
            made("Two", post_filter=lambda *_: Refusal("preemption: not helpful.")),
        ],
        NODES,
        "0/3 nodes are available: 3 full. no new claims to deallocate, preemption: not helpful.",
    ),
    "an unresolvable post_filter ends it, and its message alone remains": (
        [
            everywhere("Fit", "full"),
            made("One", post_filter=lambda *_: Refusal("one")),
            made("Two", post_filter=lambda *_: Refusal("two", code=UNRESOLVABLE)),
            made("Three", post_filter=lambda *_: Plan(nominate="a")),
        ],
        NODES,
        "0/3 nodes are available: 3 full. two",
    ),
    "a plan leaves no tail": (
        [everywhere("Fit", "full"), made("Preempt", post_filter=lambda *_: Plan(nominate="a"))],
        NODES,
        "0/3 nodes are available: 3 full.",
    ),
    "a post_filter that fails is named, and the pod stays refused": (
        [everywhere("Fit", "full"), made("Preempt", post_filter=lambda *_: dict[str, str]()["victims"])],
        NODES,
        "0/3 nodes are available: 3 full. running PostFilter plugin \"Preempt\": KeyError: 'victims'",
    ),
}


@pytest.mark.parametrize(("plugins", "nodes", "message"), MESSAGES.values(), ids=MESSAGES.keys())
def test_the_message_of_the_pod(plugins: list[Plugin], nodes: tuple[str, ...], message: str) -> None:
    """4.3.2, 4.6: PreFilter skips, ends or continues; messages and conditions are kube-scheduler's."""
    assert refused(*plugins, nodes=nodes).message == message


REJECTORS = {
    "every plugin that rejected a node": (
        [rejecting("One", {"a": Rejection("x")}), everywhere("Two", "y")],
        NODES,
        ({"One", "Two"}, set()),
    ),
    "not one that rejected nothing": ([rejecting("One", {}), everywhere("Two", "y")], NODES, ({"Two"}, set())),
    "those that wait for something are kept apart": (
        [rejecting("One", {"a": Rejection("x", code=PENDING)}), everywhere("Two", "y")],
        NODES,
        ({"Two"}, {"One"}),
    ),
    "the pre_filter that refused": ([pre_filtering("Gang", Refusal("x"))], NODES, ({"Gang"}, set())),
    "a pre_filter that waits": ([pre_filtering("Gang", Refusal("x", code=PENDING))], NODES, (set(), {"Gang"})),
    "those that named the only nodes, with those that rejected them": (
        [pre_filtering("Local", OnlyNodes({"a"})), everywhere("Fit", "full")],
        NODES,
        ({"Local", "Fit"}, set()),
    ),
    "those that had no node in common": (
        [pre_filtering("One", OnlyNodes({"a"})), pre_filtering("Two", OnlyNodes({"b"}))],
        NODES,
        ({"One", "Two"}, set()),
    ),
    "no plugin where there are no nodes": ([everywhere("Fit", "full")], (), (set(), set())),
}


@pytest.mark.parametrize(("plugins", "nodes", "expected"), REJECTORS.values(), ids=REJECTORS.keys())
def test_whose_events_may_help(plugins: list[Plugin], nodes: tuple[str, ...], expected: Any) -> None:
    """4.3.2: PreFilter skips, ends or continues."""
    assert refused(*plugins, nodes=nodes).rejectors == expected


def test_each_node_has_the_plugin_that_rejected_it_with_all_its_reasons() -> None:
    decision = refused(
        rejecting_at_once(
            "Fit", ({"a", "b"}, "Insufficient cpu", {"b"}), ({"b"}, "Insufficient memory", False), (set(), "x", True)
        ),
        rejecting("Last", {"c": Rejection("last", code=UNRESOLVABLE)}),
    )
    assert dict(decision.rejections) == {
        "a": ("Fit", Rejection("Insufficient cpu")),
        "b": ("Fit", Rejection("Insufficient cpu", "Insufficient memory", code=UNRESOLVABLE)),
        "c": ("Last", Rejection("last", code=UNRESOLVABLE)),
    }
    assert "nowhere" not in decision.rejections


def test_more_reasons_than_a_number_has_bits() -> None:
    reasons = [({"a"} if number % 2 else {"a", "b", "c"}, f"reason {number}", False) for number in range(70)]
    decision = refused(rejecting_at_once("Many", *reasons))
    assert len(decision.rejections["a"][1].reasons) == 70
    assert len(decision.rejections["b"][1].reasons) == 35


def test_rejections_outlive_the_next_decision_and_changes_of_nodes() -> None:
    profile, state = a_profile(everywhere("Fit", "full")), a_state(*NODES)
    first = decide(profile, a_pod(), state)
    state.remove_node("a")
    decide(profile, a_pod(), state)
    assert set(first.rejections) == set(NODES)
    assert first.evidence()["rejections"] == [
        {"plugin": "Fit", "reasons": ["full"], "code": "Unschedulable", "count": 3, "nodes": ["a", "b", "c"]}
    ]


def test_a_filter_whose_pre_filter_skips_does_not_run() -> None:
    """4.3.2: PreFilter skips, ends or continues."""
    plugin = rejecting("Skipping", dict.fromkeys(NODES, Rejection("x")), pre_filter=lambda _pod, _cycle: Skip())
    assert decide(a_profile(plugin), a_pod(), a_state(*NODES)).node is not None


def test_only_named_nodes_are_looked_at() -> None:
    """4.3.4: nodes outside the PreFilter result are left out."""
    evaluated = []
    looking = made("Looking", filter=lambda _pod, node, _cycle: evaluated.append(node.name))
    decision = decide(a_profile(pre_filtering("Local", OnlyNodes({"b", "c"})), looking), a_pod(), a_state(*NODES))
    assert evaluated == ["b", "c"]
    assert (decision.evaluated_nodes, decision.feasible_nodes, decision.node_count) == (2, 2, 3)


def test_a_rejected_node_is_not_shown_to_later_plugins() -> None:
    evaluated = []
    looking = made("Looking", filter=lambda _pod, node, _cycle: evaluated.append(node.name))
    decide(a_profile(rejecting("First", {"a": Rejection("x")}), looking), a_pod(), a_state(*NODES))
    assert evaluated == ["b", "c"]
