"""NodePorts: which host ports conflict, whose ports count, and what requeues a refused pod."""

from __future__ import annotations

import pytest
from msgspec.structs import force_setattr
from tests.plugins.verdicts import requeues, verdict

from mooring.framework import UNSCHEDULABLE, Skip
from mooring.objects.core import Container, ContainerPort
from mooring.objects.placed import placed
from mooring.plugins.default.node_ports import TAKEN, NodePorts
from mooring.testing import a_cluster, a_cycle, a_node, a_node_object, a_plugin, a_pod

REFUSED = (UNSCHEDULABLE, (TAKEN,))


def a_pod_with(*ports: str, name: str = "pod", nominated: str = ""):
    """Ports as `80`, `80/UDP`, `10.0.0.1:80`."""
    pod = a_pod(name, nominated=nominated)
    force_setattr(pod.spec.containers[0], "ports", tuple(a_port(text) for text in ports))
    return pod


def a_port(text: str) -> ContainerPort:
    address, _, rest = text.rpartition(":")
    number, _, protocol = rest.partition("/")
    return ContainerPort(host_port=int(number), host_ip=address, protocol=protocol or "TCP")


CASES = {
    "a free port": (["80"], ["81"], None),
    "a taken port": (["80"], ["80"], REFUSED),
    "one of several": (["79", "80"], ["80", "81"], REFUSED),
    "another protocol is another port": (["80/UDP"], ["80/TCP"], None),
    "another address is another port": (["10.0.0.1:80"], ["10.0.0.2:80"], None),
    "the same address": (["10.0.0.1:80"], ["10.0.0.1:80"], REFUSED),
    "all addresses include the one that is taken": (["80"], ["10.0.0.1:80"], REFUSED),
    "an address is among all that are taken": (["10.0.0.1:80"], ["0.0.0.0:80"], REFUSED),
    "IPv6's all addresses are an address like others": ([":::80"], ["10.0.0.1:80"], None),
    "no protocol is TCP": (["80"], ["80/TCP"], REFUSED),
}


@pytest.mark.parametrize(("wanted", "held", "refusal"), CASES.values(), ids=CASES.keys())
def test_conflicts(wanted, held, refusal):
    pod, node = a_pod_with(*wanted), a_node(running=[a_pod_with(*held)])
    plugin = a_plugin(NodePorts)
    assert verdict(plugin.filter(pod, node, a_cycle(pod))) == refusal
    [rejections] = plugin.filter_nodes(pod, a_cluster(node).nodes, a_cycle(pod))
    assert rejections.mask.tolist() == [refusal is not None]


def test_a_pod_without_host_ports_is_not_looked_at():
    assert isinstance(a_plugin(NodePorts).pre_filter(a_pod_with("0"), a_cycle(a_pod())), Skip)


@pytest.mark.parametrize(("restart_policy", "refusal"), [(None, None), ("Always", REFUSED)])
def test_of_init_containers_only_sidecars_hold_ports(restart_policy, refusal):
    running = a_pod()
    force_setattr(running.spec, "init_containers", (Container(ports=(a_port("80"),), restart_policy=restart_policy),))
    pod = a_pod_with("80")
    assert verdict(a_plugin(NodePorts).filter(pod, a_node(running=[running]), a_cycle(pod))) == refusal


WAKING = {
    "a placed pod that held the port goes": (placed(a_pod_with("80"), "node"), None, True),
    "one that held another goes": (placed(a_pod_with("81"), "node"), None, False),
    "one without ports goes": (placed(a_pod(), "node"), None, False),
    "a waiting pod goes": (a_pod_with("80"), None, False),
    "a nominated pod goes": (a_pod_with("80", nominated="node"), None, True),
    "a node is added": (None, a_node_object(), True),
    "a node's labels change": (a_node_object(), a_node_object(labels={"a": "b"}), False),
}


@pytest.mark.parametrize(("before", "after", "expected"), WAKING.values(), ids=WAKING.keys())
def test_what_wakes_a_refused_pod(before, after, expected):
    assert requeues(a_plugin(NodePorts), a_pod_with("80"), before, after) is expected
