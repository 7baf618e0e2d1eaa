"""Extended resources that a node lacks and a class provides: what NodeResourcesFit leaves to devices, and scores."""

from __future__ import annotations

from typing import Any

import pytest
from tests.plugins.default.dynamic_resources.builders import a_claim, a_class, a_slice, allocated, devices

from mooring.framework import UNRESOLVABLE, Action, ClusterEvent, NodeView, Plugin, Pod
from mooring.framework.events import NODE, registered_hints, resource_name
from mooring.objects import Node
from mooring.objects.resource import DeviceClass, ResourceClaim, ResourceSlice
from mooring.plugins.default.balanced_allocation import NodeResourcesBalancedAllocation
from mooring.plugins.default.node_resources_fit import NodeResourcesFit, insufficient
from mooring.testing import (
    Services,
    a_cluster,
    a_node,
    a_node_object,
    a_plugin,
    a_pod,
    refused_at_once,
    refused_one_by_one,
    scored_at_once,
    scored_one_by_one,
)

GPU, OWN_NAME = "example.com/gpu", "deviceclass.resource.kubernetes.io/gpu"
WITHOUT = {"DRAExtendedResource": False}


def services(gates: dict[str, bool] | None = None) -> Services:
    """Four devices on a node, one of them in use."""
    slices = [a_slice(*devices("gpu-0", "gpu-1", "gpu-2", "gpu-3"), node="node")]
    claims = [a_claim("used", allocation=allocated("gpu-0"))]
    classes = [a_class("gpu", provides=GPU)]
    return Services(objects={DeviceClass: classes, ResourceSlice: slices, ResourceClaim: claims}, gates=gates)


def a_fit(gates: dict[str, bool] | None = None, **arguments: Any) -> NodeResourcesFit:
    return a_plugin(NodeResourcesFit, services(gates), **arguments)


NONE_HERE: dict[str, tuple[Pod, NodeView, dict[str, bool], str | None]] = {
    "a resource that the node lacks is left to devices": (a_pod(requests={GPU: 9}), a_node(), {}, None),
    "also if the node reports none of it": (a_pod(requests={GPU: 9}), a_node(resources={GPU: 0}), {}, None),
    "also by the name of the class": (a_pod(requests={OWN_NAME: 9}), a_node(), {}, None),
    "not if the node has some": (a_pod(requests={GPU: 9}), a_node(resources={GPU: 1}), {}, GPU),
    "not if no class provides it": (a_pod(requests={"example.com/nic": 1}), a_node(), {}, "example.com/nic"),
    "not without the gate": (a_pod(requests={GPU: 1}), a_node(), WITHOUT, GPU),
}


@pytest.mark.parametrize(("pod", "node", "gates", "short"), NONE_HERE.values(), ids=NONE_HERE.keys())
def test_what_is_left_to_devices(pod, node, gates, short):
    fit, cluster = a_fit(gates=gates), a_cluster(node)
    refused = {} if short is None else {"node": (UNRESOLVABLE, (insufficient(short),))}
    assert refused_one_by_one(fit, pod, cluster) == refused
    assert refused_at_once(fit, pod, cluster) == refused


ALL_USED: dict[str, Any] = {"scoring_strategy": {"type": "MostAllocated", "resources": [{"name": GPU}]}}
BALANCED = {"resources": [{"name": "cpu"}, {"name": GPU}]}
SCORES: dict[str, tuple[Plugin, dict[str, int]]] = {
    # One of four devices is in use, and the pod takes another; of a device plugin's two it takes one.
    "most allocated": (a_fit(**ALL_USED), {"node": 50, "plugin": 50, "nothing": 0}),
    # cpu 0 → 50 %, devices 25 → 50 %: from a deviation of 12.5 to none; the plugin's 0 → 50 % was in balance and stays.
    "balanced": (
        a_plugin(NodeResourcesBalancedAllocation, services(), **BALANCED),
        {"node": 50 + (50 + 100 - 87) // 2, "plugin": 75, "nothing": 75},
    ),
}


@pytest.mark.parametrize(("plugin", "expected"), SCORES.values(), ids=SCORES.keys())
def test_scores_count_devices_where_the_node_lacks_the_resource(plugin, expected):
    cluster = a_cluster(a_node("node"), a_node("plugin", resources={GPU: 2}), a_node("nothing"))
    pod = a_pod(cpu="2", requests={GPU: 1})
    assert scored_one_by_one(plugin, pod, cluster) == expected
    assert scored_at_once(plugin, pod, cluster) == expected


def wakes(fit: Plugin, event: ClusterEvent, before: object, after: object, pod: Pod) -> bool:
    return any(
        hint.matches(event) and (hint.test is None or hint.test(pod, before, after))
        for hint in registered_hints(fit.events(), can_refuse=True)
    )


CLASSES: dict[str, tuple[DeviceClass | None, DeviceClass, str, bool]] = {
    "a new class provides it": (None, a_class("new", provides=GPU), GPU, True),
    "a new class of that name": (None, a_class("gpu"), OWN_NAME, True),
    "a new class provides something else": (None, a_class("new"), GPU, False),
    "a class begins to provide it": (a_class("old"), a_class("old", provides=GPU), GPU, True),
    "a class still provides it": (a_class("old", provides=GPU), a_class("old", "true", provides=GPU), GPU, False),
    "a class of that name changes": (a_class("gpu"), a_class("gpu", provides=GPU), OWN_NAME, False),
}


@pytest.mark.parametrize(("before", "after", "resource", "does"), CLASSES.values(), ids=CLASSES.keys())
def test_which_class_wakes_a_pod(before, after, resource, does):
    event = ClusterEvent(resource_name(DeviceClass), Action.ADD if before is None else Action.UPDATE)
    assert wakes(a_fit(), event, before, after, a_pod(requests={resource: 1})) is does
    assert not wakes(a_fit(gates=WITHOUT), event, before, after, a_pod(requests={resource: 1}))


NODES: dict[str, tuple[Node | None, Node, bool]] = {
    "a new node that lacks the resource may have devices": (None, a_node_object(), True),
    "a changed node that lacks it too": (a_node_object(cpu="4"), a_node_object(cpu="3"), True),
    "a new node with too few does not help": (None, a_node_object(resources={GPU: 1}), False),
    "a new node that is too small does not help": (None, a_node_object(cpu="1"), False),
}


@pytest.mark.parametrize(("before", "after", "does"), NODES.values(), ids=NODES.keys())
def test_which_node_wakes_a_pod(before, after, does):
    event = ClusterEvent(NODE, Action.ADD if before is None else Action.UPDATE_NODE_ALLOCATABLE)
    assert wakes(a_fit(), event, before, after, a_pod(cpu="2", requests={GPU: 2})) is does
