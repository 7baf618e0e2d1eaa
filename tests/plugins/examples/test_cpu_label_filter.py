"""sample2: only nodes labelled cpu=true, with the node's name as the reason."""

from __future__ import annotations

import pytest
from tests.plugins.verdicts import requeues, verdict

from mooring.framework import UNSCHEDULABLE
from mooring.plugins.default.node_resources_fit import NodeResourcesFit
from mooring.plugins.examples.cpu_label_filter import CpuLabelFilter
from mooring.testing import Services, a_cluster, a_cycle, a_node, a_node_object, a_plugin, a_pod

ADMITTED = {"cpu": "true"}


def test_its_name_in_configurations_is_sample2():
    assert CpuLabelFilter.name == "sample2"


@pytest.mark.parametrize(
    ("labels", "refusal"),
    [
        (ADMITTED, None),
        ({"cpu": "false"}, (UNSCHEDULABLE, ("Node: gpu02",))),
        ({}, (UNSCHEDULABLE, ("Node: gpu02",))),
    ],
)
def test_only_nodes_with_the_label_are_admitted(labels, refusal):
    pod = a_pod()
    assert verdict(a_plugin(CpuLabelFilter).filter(pod, a_node("gpu02", labels=labels), a_cycle(pod))) == refusal


def test_the_refused_nodes_are_named_in_the_message():
    cluster = a_cluster(a_node("gpu02"), a_node("gpu03"), plugins=[a_plugin(CpuLabelFilter)])
    assert cluster.schedule(a_pod()).message.startswith("0/2 nodes are available: 1 Node: gpu02, 1 Node: gpu03.")


def test_the_feasible_nodes_are_logged():
    services = Services()
    nodes = [a_node(name, labels=ADMITTED) for name in ("a", "b")]
    plugins = [a_plugin(CpuLabelFilter, services), a_plugin(NodeResourcesFit)]
    a_cluster(*nodes, a_node("c"), plugins=plugins).schedule(a_pod())
    assert [values["nodes"] for _, _, values in services.log.lines] == ["a b"]


WAKING = {
    "a new node with the label": (None, a_node_object(labels=ADMITTED), True),
    "a new node without": (None, a_node_object(), False),
    "a node that gets the label": (a_node_object(), a_node_object(labels=ADMITTED), True),
    "a node that had it": (a_node_object(labels=ADMITTED), a_node_object(labels=ADMITTED | {"x": "y"}), False),
}


@pytest.mark.parametrize(("before", "after", "expected"), WAKING.values(), ids=WAKING.keys())
def test_what_wakes_a_refused_pod(before, after, expected):
    assert requeues(a_plugin(CpuLabelFilter), a_pod(), before, after) is expected
