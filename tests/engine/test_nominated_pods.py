"""Room that was made for others is theirs: a node must do with the pods that are nominated to it, and without them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.engine.builders import a_state, made

from mooring.engine import Form, Profile, decide
from mooring.framework import Plugin, Point, Refusal, Rejection, Rejections, Skip
from mooring.framework.points import points_of
from mooring.testing import a_pod

FULL, ALONE = "node(s) are full", "node(s) have no friend of the pod"


def fits(most: int) -> Plugin:
    """Rejects nodes that have so many pods."""

    def filter_nodes(pod: Any, nodes: Any, cycle: Any) -> Any:
        yield Rejections(np.array([len(node.pods) >= most for node in nodes]), FULL)

    return made(
        "Fits",
        filter=lambda _pod, node, _cycle: Rejection(FULL) if len(node.pods) >= most else None,
        filter_nodes=filter_nodes,
    )


def near_a_friend() -> Plugin:
    """Rejects nodes without a pod called friend."""

    def is_alone(node: Any) -> bool:
        return all(pod.name != "friend" for pod in node.pods)

    def filter_nodes(pod: Any, nodes: Any, cycle: Any) -> Any:
        yield Rejections(np.array([is_alone(node) for node in nodes]), ALONE)

    return made(
        "NearAFriend",
        filter=lambda _pod, node, _cycle: Rejection(ALONE) if is_alone(node) else None,
        filter_nodes=filter_nodes,
    )


def rejected(plugin: Plugin, form: Form, pod: Any, *nominated: Any) -> dict[str, tuple[str, str]]:
    """Node → who rejects it and why, of the nodes a and b; each of `nominated` is a pod and its node."""
    state = a_state("a", "b")
    for other, node in nominated:
        state.nominations.set(other, node)
    points = {point: [(plugin, 1)] for point in points_of(type(plugin))}
    decision = decide(Profile("test", points, form=form), pod, state)
    assert decision.fault is None
    assert all(not node.pods for node in state.nodes), "a what-if has left something behind"
    return {node: (whose, refusal.reasons[0]) for node, (whose, refusal) in decision.rejections.items()}


POD = a_pod("incoming", priority=5)
NOTHING: dict[str, tuple[str, str]] = {}
BOTH_ALONE = {"a": ("NearAFriend", ALONE), "b": ("NearAFriend", ALONE)}
CASES = {
    "a pod of higher priority keeps its room": (fits(1), [(a_pod("high", priority=9), "a")], {"a": ("Fits", FULL)}),
    "a pod of equal priority keeps its room": (fits(1), [(a_pod("equal", priority=5), "a")], {"a": ("Fits", FULL)}),
    "a pod of lower priority does not": (fits(1), [(a_pod("low", priority=4), "a")], NOTHING),
    "the pod's own nomination does not stand in its way": (fits(1), [(POD, "a")], NOTHING),
    "several pods on a node count together": (
        fits(2),
        [(a_pod("one", priority=9), "a"), (a_pod("other", priority=9), "a")],
        {"a": ("Fits", FULL)},
    ),
    "of several, those of lower priority do not count": (
        fits(2),
        [(a_pod("one", priority=9), "a"), (a_pod("low", priority=1), "a")],
        NOTHING,
    ),
    "every node is judged with its own": (
        fits(1),
        [(a_pod("one", priority=9), "a"), (a_pod("other", priority=9), "b")],
        {"a": ("Fits", FULL), "b": ("Fits", FULL)},
    ),
    "a nominated pod is no company yet": (near_a_friend(), [(a_pod("friend", priority=9), "a")], BOTH_ALONE),
    "a nomination to a node that is gone changes nothing": (fits(1), [(a_pod("high", priority=9), "gone")], NOTHING),
}


@pytest.mark.parametrize("form", Form)
@pytest.mark.parametrize(("plugin", "nominated", "rejections"), CASES.values(), ids=CASES.keys())
def test_a_node_must_do_with_its_nominated_pods_and_without(form, plugin, nominated, rejections):
    """Q47: filters pass with the nominated pods and without them."""
    assert rejected(plugin, form, POD, *nominated) == rejections


def test_pre_filters_run_again_with_the_nominated_pods_there():
    """Q47: filters pass with the nominated pods and without them."""
    seen: list[dict[str, int]] = []

    def pre_filter(pod: Any, cycle: Any) -> Any:
        seen.append({node.name: len(node.pods) for node in cycle.nodes})
        return seen[-1]

    plugin = made("Counts", pre_filter=pre_filter, filter=lambda _pod, _node, _cycle: None)
    assert rejected(plugin, Form.FASTER, POD, (a_pod("high", priority=9), "a")) == NOTHING
    assert seen == [{"a": 0, "b": 0}, {"a": 1, "b": 0}]


def test_what_a_pre_filter_refuses_then_is_refused_of_that_node_alone():
    def pre_filter(pod: Any, cycle: Any) -> Any:
        return Refusal("too many") if any(node.pods for node in cycle.nodes) else None

    plugin = made("Counts", pre_filter=pre_filter, filter=lambda _pod, _node, _cycle: None)
    found = rejected(plugin, Form.FASTER, POD, (a_pod("high", priority=9), "a"))
    assert found == {"a": ("Counts", "too many")}


def test_a_pre_filter_that_skipped_does_not_run_again():
    called: list[Any] = []

    def pre_filter(pod: Any, cycle: Any) -> Skip:
        called.append(pod)
        return Skip()

    plugin = made("Skips", pre_filter=pre_filter, filter=lambda _pod, _node, _cycle: Rejection("never runs"))
    assert rejected(plugin, Form.FASTER, POD, (a_pod("high", priority=9), "a")) == NOTHING
    assert len(called) == 1


def test_the_first_plugin_that_rejects_with_the_nominated_pods_there_is_the_one_that_counts():
    state = a_state("a")
    state.nominations.set(a_pod("high", priority=9), "a")
    plugins = [near_a_friend(), fits(1)]
    points = {Point.FILTER: [(plugin, 1) for plugin in reversed(plugins)]}
    decision = decide(Profile("test", points), POD, state)
    assert decision.rejections["a"][0] == "Fits"
    assert decision.message == f"0/1 nodes are available: 1 {FULL}."


def test_a_nominated_node_that_is_kept_for_others_is_not_taken():
    """Q47, 4.3.6: filters pass with the nominated pods and without them; the nominated node is evaluated first."""
    state = a_state("a", "b")
    mine = a_pod("incoming", priority=5, nominated="a")
    state.nominations.set(mine, "a")
    state.nominations.set(a_pod("high", priority=9), "a")
    points = {Point.FILTER: [(fits(1), 1)]}
    assert decide(Profile("test", points), mine, state).node == "b"
