"""Builders take only what a case is about, and return real objects."""

from __future__ import annotations

import msgspec
import pytest

from mooring.framework import NodeView, Rejection
from mooring.objects import Pod
from mooring.objects.core import Taint, Toleration
from mooring.testing import Services, a_cluster, a_cycle, a_node, a_plugin, a_pod, a_taint, a_toleration


def test_each_pod_is_another_one():
    assert a_pod().uid != a_pod().uid


def test_a_pod_survives_the_wire():
    pod = a_pod("web", cpu="1", requests={"example.com/gpu": 2}, labels={"app": "web"}, ports=[80], gates=["wait"])
    again = msgspec.json.decode(msgspec.json.encode(pod), type=Pod)
    assert again == pod
    assert (again.request("cpu"), again.request("example.com/gpu")) == (1000, 2)


def test_a_node_counts_what_runs_on_it():
    node: NodeView = a_node(cpu="4", pods=3, running=[a_pod(cpu="1"), a_pod(cpu="500m")])
    assert (node.free("cpu"), node.free("pods"), len(node.pods)) == (2500, 1, 2)
    assert {pod.node for pod in node.pods} == {node.name}


@pytest.mark.parametrize(
    ("text", "taint", "toleration"),
    [
        ("gpu=yes:NoSchedule", Taint(key="gpu", value="yes", effect="NoSchedule"), None),
        ("spot:NoExecute", Taint(key="spot", effect="NoExecute"), None),
        ("gpu=yes:NoSchedule", None, Toleration(key="gpu", operator="Equal", value="yes", effect="NoSchedule")),
        ("gpu", None, Toleration(key="gpu", operator="Exists")),
        ("*", None, Toleration(operator="Exists")),
    ],
)
def test_taints_and_tolerations_are_written_as_kubectl_writes_them(text, taint, toleration):
    if taint is not None:
        assert a_taint(text) == taint
    if toleration is not None:
        assert a_toleration(text) == toleration


def test_a_cluster_refuses_two_nodes_of_one_name():
    with pytest.raises(ValueError, match="two nodes"):
        a_cluster(a_node(), a_node())


def test_a_scheduled_pod_counts_for_the_next_one():
    from mooring.plugins.default.node_resources_fit import NodeResourcesFit

    cluster = a_cluster(a_node(cpu="1"), plugins=[a_plugin(NodeResourcesFit)])
    decisions = [cluster.schedule(a_pod(name, cpu="600m")) for name in ("first", "second")]
    assert [decision.node for decision in decisions] == ["node", None]
    assert decisions[1].message == "0/1 nodes are available: 1 Insufficient cpu."
    assert decisions[1].rejections["node"] == ("NodeResourcesFit", Rejection("Insufficient cpu"))


def test_a_cluster_made_with_services_shows_its_pods_to_the_plugins():
    services = Services(pods=[a_pod("waits"), a_pod("runs", node="node")])
    cluster = a_cluster(a_node(), services=services)
    assert [pod.name for pod in cluster.node("node").pods] == ["runs"]


def test_a_cycle_runs_the_plugins_own_pre_filter_when_its_state_is_read():
    from mooring.plugins.default.node_resources_fit import NodeResourcesFit

    pod, fit = a_pod(cpu="1"), a_plugin(NodeResourcesFit)
    assert a_cycle(pod).filter_state(fit) == {"cpu": 1000}
