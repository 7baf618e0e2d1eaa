"""Which events wake a pod that InterPodAffinity refused: upstream's events, and its hint, case by case."""

from __future__ import annotations

import pytest
from tests.plugins.verdicts import requeues

from mooring.framework import Action, Node
from mooring.framework.events import registered_hints
from mooring.objects import Pod
from mooring.objects.placed import PlacedPod, placed
from mooring.objects.selectors import LabelSelector, LabelSelectorRequirement
from mooring.plugins.default.inter_pod_affinity import InterPodAffinity
from mooring.testing import a_node_object, a_plugin, a_pod, a_term, pod_rules

WEB, DB = {"app": "web"}, {"app": "db"}
NEAR_WEB = a_pod(affinity=pod_rules(near=[a_term(WEB)]), labels=DB)
NEAR_BOTH = a_pod(affinity=pod_rules(near=[a_term(WEB), a_term({"tier": "front"})]))
AWAY_FROM_WEB = a_pod(affinity=pod_rules(away=[a_term(WEB)]))
PLAIN = a_pod(labels=WEB)
NEAR = LabelSelector(match_expressions=(LabelSelectorRequirement(key="app", operator="Near"),))
UNREADABLE = a_pod(affinity=pod_rules(near=[a_term(NEAR)]))


def on_a_node(labels: dict[str, str], **more: object) -> PlacedPod:
    return placed(a_pod(uid="other", labels=labels, **more), "node")  # type: ignore[arg-type]


WEB_THERE, DB_THERE = on_a_node(WEB), on_a_node(DB)
FRONT = on_a_node(WEB | {"tier": "front"})

PODS = {
    "a pod it must be near to came": (NEAR_WEB, None, WEB_THERE, True),
    "another pod came": (NEAR_WEB, None, DB_THERE, False),
    "one that matches only some of the terms came": (NEAR_BOTH, None, WEB_THERE, False),
    "one that matches all came": (NEAR_BOTH, None, FRONT, True),
    "one that matches came, in another namespace": (NEAR_WEB, None, on_a_node(WEB, namespace="shop"), False),
    "a pod that waits came": (NEAR_WEB, None, a_pod(labels=WEB), False),
    "a pod that is nominated came": (NEAR_WEB, None, a_pod(labels=WEB, nominated="node"), True),
    "a pod began to match": (NEAR_WEB, DB_THERE, WEB_THERE, True),
    "a pod changed and matches as before": (NEAR_WEB, WEB_THERE, FRONT, False),
    "a pod ceased to match what it must be near to": (NEAR_WEB, WEB_THERE, DB_THERE, False),
    "a pod ceased to match what it must be away from": (AWAY_FROM_WEB, WEB_THERE, DB_THERE, True),
    "a pod began to match what it must be away from": (AWAY_FROM_WEB, DB_THERE, WEB_THERE, False),
    "a pod it must be away from came": (AWAY_FROM_WEB, None, WEB_THERE, False),
    "a pod it must be away from went": (AWAY_FROM_WEB, WEB_THERE, None, True),
    "another pod went": (AWAY_FROM_WEB, DB_THERE, None, False),
    "a pod that must be away from it went": (PLAIN, on_a_node({}, affinity=pod_rules(away=[a_term(WEB)])), None, True),
    "one that must be away from others went": (
        PLAIN,
        on_a_node({}, affinity=pod_rules(away=[a_term(DB)])),
        None,
        False,
    ),
    "one that is nominated and must be away from it went": (
        PLAIN,
        a_pod(affinity=AWAY_FROM_WEB.spec.affinity, nominated="node"),
        None,
        True,
    ),
    "one that waits went": (PLAIN, AWAY_FROM_WEB, None, False),
    "one whose terms cannot be read went": (PLAIN, on_a_node({}, affinity=pod_rules(away=[a_term(NEAR)])), None, True),
    "anything, if its own terms cannot be read": (UNREADABLE, None, DB_THERE, True),
    "a term of every namespace": (
        a_pod(affinity=pod_rules(near=[a_term(WEB, namespace_selector=LabelSelector())])),
        None,
        on_a_node(WEB, namespace="shop"),
        True,
    ),
    "namespaces are not looked up": (
        a_pod(affinity=pod_rules(near=[a_term(WEB, namespace_selector=LabelSelector(match_labels={"a": "b"}))])),
        None,
        WEB_THERE,
        False,
    ),
}


@pytest.mark.parametrize(("pod", "before", "after", "expected"), PODS.values(), ids=PODS.keys())
def test_changes_of_other_pods(
    pod: Pod, before: Pod | PlacedPod | None, after: Pod | PlacedPod | None, expected: bool
) -> None:
    assert requeues(a_plugin(InterPodAffinity), pod, before, after) is expected


def test_labels_of_its_own_that_changed() -> None:
    before, after = a_pod(uid="same", labels=DB), a_pod(uid="same", labels=WEB)
    assert requeues(a_plugin(InterPodAffinity), before, before, after)
    assert not requeues(a_plugin(InterPodAffinity), before, before, a_pod(uid="same", labels=DB))


def zone(value: str | None, **more: str) -> Node:
    return a_node_object(labels=more | ({} if value is None else {"zone": value}))


NODES = {
    "a new node with the key": (NEAR_WEB, None, zone("a"), True),
    "a new node without it": (NEAR_WEB, None, zone(None), False),
    "a node that got the key": (NEAR_WEB, zone(None), zone("a"), True),
    "a node that moved to another domain": (NEAR_WEB, zone("a"), zone("b"), True),
    "a node that lost the key": (NEAR_WEB, zone("a"), zone(None), False),
    "another label": (NEAR_WEB, zone("a"), zone("a", disk="ssd"), False),
    "any new node, for anti-affinity": (AWAY_FROM_WEB, None, zone(None), True),
    "a node that got the key, for anti-affinity": (AWAY_FROM_WEB, zone(None), zone("a"), False),
    "a node that lost the key, for anti-affinity": (AWAY_FROM_WEB, zone("a"), zone(None), True),
    "a node that moved, for anti-affinity": (AWAY_FROM_WEB, zone("a"), zone("b"), True),
    "another label, for anti-affinity": (AWAY_FROM_WEB, zone("a"), zone("a", disk="ssd"), False),
    "a new node, for a pod without terms": (PLAIN, None, zone("a"), False),
    "a new node, if the terms cannot be read": (UNREADABLE, None, zone(None), True),
    "nor if those of anti-affinity cannot": (a_pod(affinity=pod_rules(away=[a_term(NEAR)])), None, zone(None), True),
}


@pytest.mark.parametrize(("pod", "before", "after", "expected"), NODES.values(), ids=NODES.keys())
def test_changes_of_nodes(pod: Pod, before: Node | None, after: Node, expected: bool) -> None:
    assert requeues(a_plugin(InterPodAffinity), pod, before, after) is expected


def test_the_events_are_upstreams() -> None:
    hints = registered_hints(a_plugin(InterPodAffinity).events(), can_refuse=True)
    assert [(hint.resource, hint.action) for hint in hints] == [
        ("Pod", Action.ADD | Action.UPDATE_POD_LABEL | Action.DELETE),
        ("Node", Action.ADD | Action.UPDATE_NODE_LABEL),
        ("Node", Action.UPDATE_NODE_TAINT),
    ]
