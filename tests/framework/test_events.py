"""Cluster events, and which queueing hints they match."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mooring.framework.events import (
    ASSIGNED_POD,
    BROADCAST_KINDS,
    EVERYTHING,
    NODE,
    NODE_ADDED,
    POD,
    UNSCHEDULABLE_POD,
    UNSCHEDULABLE_TIMEOUT,
    Action,
    ClusterEvent,
    Hint,
    node_changes,
    pending_pod_changes,
    placed_pod_changes,
    registered_hints,
    resource_name,
)
from mooring.objects import CustomResource, Node, Pod
from mooring.objects.core import PodStatus
from mooring.objects.placed import placed

LABEL, TAINT, ALLOCATABLE = Action.UPDATE_NODE_LABEL, Action.UPDATE_NODE_TAINT, Action.UPDATE_NODE_ALLOCATABLE

CONCERNS: dict[str, tuple[Hint, ClusterEvent, bool]] = {
    "the action it names": (Hint(NODE, Action.ADD), NODE_ADDED, True),
    "one of several actions": (Hint(NODE, Action.ADD | LABEL), ClusterEvent(NODE, LABEL), True),
    "another action": (Hint(NODE, LABEL), NODE_ADDED, False),
    "another kind": (Hint(POD, Action.ALL), NODE_ADDED, False),
    "pods are assigned pods too": (Hint(POD, Action.DELETE), ClusterEvent(ASSIGNED_POD, Action.DELETE), True),
    "pods are pending pods too": (
        Hint(POD, Action.UPDATE_POD_LABEL),
        ClusterEvent(UNSCHEDULABLE_POD, Action.UPDATE_POD_LABEL),
        True,
    ),
    "assigned pods are not all pods": (
        Hint(ASSIGNED_POD, Action.ALL),
        ClusterEvent(UNSCHEDULABLE_POD, Action.UPDATE),
        False,
    ),
    "an unspecific update concerns those that wait for any": (
        Hint(POD, Action.UPDATE),
        ClusterEvent(ASSIGNED_POD, Action.UPDATE),
        True,
    ),
    "an unspecific update does not concern a narrow registration": (
        Hint(POD, Action.UPDATE_POD_LABEL),
        ClusterEvent(ASSIGNED_POD, Action.UPDATE),
        False,
    ),
    "everything concerns who waits for everything": (Hint(EVERYTHING, Action.ALL), UNSCHEDULABLE_TIMEOUT, True),
    "a timeout matches no other": (Hint(NODE, Action.ALL), UNSCHEDULABLE_TIMEOUT, False),
    "any kind, one action": (Hint(EVERYTHING, Action.ADD), NODE_ADDED, True),
}


@pytest.mark.parametrize(("hint", "event", "expected"), CONCERNS.values(), ids=CONCERNS.keys())
def test_which_hints_an_event_matches(hint, event, expected):
    """3.2: changed fields decide which events are raised."""
    assert hint.matches(event) is expected


@given(st.sampled_from(list(Action)))
def test_who_waits_for_all_actions_misses_none(action):
    assert Hint(NODE).matches(ClusterEvent(NODE, action))


LABELS = {
    "NodeAdd": NODE_ADDED,
    "NodeUpdateNodeTaint": ClusterEvent(NODE, TAINT),
    "AssignedPodUpdate": ClusterEvent(ASSIGNED_POD, Action.UPDATE),
    "UnschedulableTimeout": UNSCHEDULABLE_TIMEOUT,
}


@pytest.mark.parametrize(("label", "event"), LABELS.items(), ids=LABELS.keys())
def test_events_have_kube_schedulers_labels(label, event):
    assert event.label == label


def test_only_everything_is_a_wildcard():
    assert UNSCHEDULABLE_TIMEOUT.is_wildcard
    assert not NODE_ADDED.is_wildcard


class Quota(CustomResource, group="example.com", version="v1", plural="quotas"):
    pass


def test_kinds_are_named_as_kube_scheduler_names_them():
    assert resource_name(Node) == "Node"
    assert resource_name(Quota) == "quotas.v1.example.com"
    assert Hint(Quota, Action.ADD).resource == "quotas.v1.example.com"


def a_node(**fields: Any) -> Node:
    base = {"metadata": {"name": "n", "labels": {"zone": "a"}}}
    return msgspec.convert({**base, **fields}, Node)


def conditions(status: str) -> dict[str, Any]:
    return {"status": {"conditions": [{"type": "Ready", "status": status}]}}


TAINTED = {"spec": {"taints": [{"key": "a", "effect": "NoSchedule"}]}}

NODE_CHANGES: dict[str, tuple[Node, Node, list[Action]]] = {
    "a heartbeat": (a_node(**conditions("True")), a_node(**conditions("True")), []),
    "a label": (a_node(), a_node(metadata={"name": "n", "labels": {"zone": "b"}}), [LABEL]),
    "an annotation": (
        a_node(),
        a_node(metadata={"name": "n", "labels": {"zone": "a"}, "annotations": {"a": "b"}}),
        [Action.UPDATE_NODE_ANNOTATION],
    ),
    "room": (a_node(), a_node(status={"allocatable": {"cpu": "1"}}), [ALLOCATABLE]),
    "a condition": (a_node(**conditions("True")), a_node(**conditions("False")), [Action.UPDATE_NODE_CONDITION]),
    "a taint": (a_node(), a_node(**TAINTED), [TAINT]),
    "uncordoned": (a_node(spec={"unschedulable": True}), a_node(), [TAINT]),
    "cordoned": (a_node(), a_node(spec={"unschedulable": True}), []),
    "uncordoned and tainted": (a_node(spec={"unschedulable": True}), a_node(**TAINTED), [TAINT]),
    "features": (
        a_node(),
        a_node(status={"declaredFeatures": ["x"]}),
        [Action.UPDATE_NODE_DECLARED_FEATURE],
    ),
    "two things": (
        a_node(),
        a_node(metadata={"name": "n", "labels": {}}, status={"allocatable": {"cpu": "1"}}),
        [ALLOCATABLE, LABEL],
    ),
}


@pytest.mark.parametrize(("old", "new", "actions"), NODE_CHANGES.values(), ids=NODE_CHANGES.keys())
def test_a_changed_node_gives_its_events_one_by_one(old, new, actions):
    """3.2: changed fields decide which events are raised."""
    assert node_changes(old, new) == [ClusterEvent(NODE, action) for action in actions]


def a_pod(cpu: str = "2", labels: dict[str, str] | None = None, **spec: Any) -> Pod:
    containers = [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]
    return msgspec.convert(
        {"metadata": {"name": "p", "labels": labels or {}}, "spec": {"containers": containers, **spec}}, Pod
    )


def a_pod_with(status: dict[str, Any]) -> Pod:
    return msgspec.structs.replace(a_pod(), status=msgspec.convert(status, PodStatus))


POD_CHANGES: dict[str, tuple[Pod, Pod, Action]] = {
    "a label": (a_pod(), a_pod(labels={"a": "b"}), Action.UPDATE_POD_LABEL),
    "fewer requests": (a_pod(cpu="2"), a_pod(cpu="1"), Action.UPDATE_POD_SCALE_DOWN),
    "more requests": (a_pod(cpu="1"), a_pod(cpu="2"), Action.UPDATE),
    "a toleration": (a_pod(), a_pod(tolerations=[{"operator": "Exists"}]), Action.UPDATE_POD_TOLERATION),
    "the last gate": (a_pod(schedulingGates=[{"name": "g"}]), a_pod(), Action.UPDATE_POD_GATES_ELIMINATED),
    "a claim made for it": (
        a_pod(),
        a_pod_with({"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": "p-gpu"}]}),
        Action.UPDATE_POD_GENERATED_CLAIM,
    ),
    "a claim made for its extended resources": (
        a_pod(),
        a_pod_with({"extendedResourceClaimStatus": {"resourceClaimName": "p-extended-resources-1"}}),
        Action.UPDATE_POD_GENERATED_CLAIM,
    ),
    "nothing that matters": (a_pod(), a_pod(), Action.UPDATE),
}


@pytest.mark.parametrize(("old", "new", "action"), POD_CHANGES.values(), ids=POD_CHANGES.keys())
def test_a_changed_pending_pod(old, new, action):
    """3.2: changed fields decide which events are raised."""
    assert pending_pod_changes(old, new) == [ClusterEvent(UNSCHEDULABLE_POD, action)]


def reported(pod: Pod, words: str, *, version: str = "2", **status: Any) -> Pod:
    """The pod once the reason why it is pending was reported."""
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": words}
    others = [{"type": "Ready", "status": status.pop("ready", "False")}]
    changed = msgspec.convert({"conditions": [*others, condition], **status}, PodStatus)
    metadata = msgspec.structs.replace(pod.metadata, resource_version=version)
    return msgspec.structs.replace(pod, status=changed, metadata=metadata)


BEFORE = reported(a_pod(), "no", version="1")
REPORTED = {
    "why it waits": (reported(a_pod(), "not yet"), []),
    "that, and which node is kept for it": (reported(a_pod(), "not yet", nominatedNodeName="node-1"), []),
    "that, while something else changed": (reported(a_pod(), "not yet", ready="True"), [Action.UPDATE]),
    "that, while its spec changed": (reported(a_pod(cpu="3"), "not yet"), [Action.UPDATE]),
    "that, while a label changed": (reported(a_pod(labels={"a": "b"}), "not yet"), [Action.UPDATE_POD_LABEL]),
    "only which node is kept for it": (reported(a_pod(), "no", nominatedNodeName="node-1"), [Action.UPDATE]),
    "nothing": (reported(a_pod(), "no"), [Action.UPDATE]),
}


@pytest.mark.parametrize(("after", "actions"), REPORTED.values(), ids=REPORTED.keys())
def test_a_pending_pod_with_a_reported_condition(after, actions):
    """3.2, but for a scheduler's own word."""
    assert pending_pod_changes(BEFORE, after) == [ClusterEvent(UNSCHEDULABLE_POD, action) for action in actions]


def test_two_changes_of_a_pod_are_two_events():
    found = pending_pod_changes(a_pod(cpu="2"), a_pod(cpu="1", labels={"a": "b"}))
    assert [event.action for event in found] == [Action.UPDATE_POD_LABEL, Action.UPDATE_POD_SCALE_DOWN]


PLACED_CHANGES: dict[str, tuple[Pod, Pod, Action]] = {
    name: POD_CHANGES[name] for name in ("a label", "fewer requests", "more requests", "nothing that matters")
}


@pytest.mark.parametrize(("old", "new", "action"), PLACED_CHANGES.values(), ids=PLACED_CHANGES.keys())
def test_a_changed_pod_on_a_node(old, new, action):
    """3.2: changed fields decide which events are raised."""
    assert placed_pod_changes(placed(old), placed(new)) == [ClusterEvent(ASSIGNED_POD, action)]


def test_a_plugin_without_events_that_can_refuse_gets_all_that_could_matter():
    """3.3: which events a plugin receives without registering them."""
    hints = registered_hints(None, can_refuse=True)
    assert [hint.resource for hint in hints] == list(BROADCAST_KINDS)
    assert all(hint.action == Action.ALL and hint.test is None for hint in hints)


def test_who_cannot_refuse_needs_no_waking():
    assert registered_hints(None, can_refuse=False) == []


def test_a_plugin_with_no_hints_gets_no_events():
    assert registered_hints([], can_refuse=True) == []


def test_who_waits_for_new_nodes_is_woken_by_taints_too():
    """3.3: which events a plugin receives without registering them."""
    declared = [Hint(NODE, Action.ADD)]
    assert registered_hints(declared, can_refuse=True) == [*declared, Hint(NODE, TAINT)]


def test_a_plugin_with_a_hint_for_taints_gets_no_second_one():
    for declared in (
        [Hint(NODE, Action.ADD | TAINT)],
        [Hint(NODE, Action.ADD), Hint(NODE, TAINT)],
        [Hint(NODE, LABEL)],
    ):
        assert registered_hints(declared, can_refuse=True) == declared


@pytest.mark.parametrize(("name", "meant"), [("Podd", "Pod"), ("node", "Node"), ("Pods", "Pod")])
def test_a_misspelt_kind_is_refused_with_the_name_that_was_meant(name, meant):
    with pytest.raises(ValueError, match=f'there are no events of "{name}". Did you mean "{meant}"'):
        Hint(name)


@pytest.mark.parametrize("name", ["racks.v1.example.com", "storage.k8s.io/VolumeAttachment", "ConfigMap"])
def test_kinds_that_only_a_plugin_reads_have_events_too(name):
    assert Hint(name).resource == name
