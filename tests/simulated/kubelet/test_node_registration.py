"""The Node object of a simulated node."""

from __future__ import annotations

from tests.simulated.builders import NOW, a_node

from mooring.simulated.kubelet.node_registration import node_document, registered_node
from mooring.simulated.kubelet.simulated_nodes import free_ordinal
from mooring.simulated.records import SIMULATED


def test_a_node_is_registered_as_a_kubelet_registers_it():
    node = node_document("node-1", now=NOW)

    labels = node["metadata"]["labels"]
    assert labels["kubernetes.io/hostname"] == "node-1"
    assert (labels["kubernetes.io/os"], labels["kubernetes.io/arch"]) == ("linux", "amd64")
    assert node["status"]["capacity"] == node["status"]["allocatable"]
    assert {"cpu", "memory", "pods", "ephemeral-storage", "hugepages-2Mi"} <= node["status"]["capacity"].keys()
    assert {each["type"]: each["status"] for each in node["status"]["conditions"]} == {
        "MemoryPressure": "False",
        "DiskPressure": "False",
        "PIDPressure": "False",
        "Ready": "True",
    }
    assert node["metadata"]["annotations"][SIMULATED] == "true"
    assert node["status"]["nodeInfo"]["kubeletVersion"] == "v1.36.4-simulated"


def test_nodes_differ_in_addresses_and_take_zones_in_turn():
    nodes = [node_document(f"node-{index}", ordinal=index, now=NOW) for index in range(300)]

    assert len({node["status"]["addresses"][0]["address"] for node in nodes}) == 300
    assert len({node["spec"]["podCIDR"] for node in nodes}) == 300
    zones = [node["metadata"]["labels"]["topology.kubernetes.io/zone"] for node in nodes[:4]]
    assert zones == ["zone-a", "zone-b", "zone-c", "zone-a"]


def test_given_values_override_the_defaults():
    node = node_document(
        "gpu-1",
        labels={"topology.kubernetes.io/zone": "here"},
        taints=[{"key": "gpu", "effect": "NoSchedule"}],
        allocatable={"nvidia.com/gpu": "8", "cpu": "64"},
        now=NOW,
    )

    assert node["metadata"]["labels"]["topology.kubernetes.io/zone"] == "here"
    assert node["spec"]["taints"] == [{"key": "gpu", "effect": "NoSchedule"}]
    assert (node["status"]["allocatable"]["nvidia.com/gpu"], node["status"]["allocatable"]["cpu"]) == ("8", "64")


def test_a_node_written_by_hand_keeps_its_fields():
    written = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "db", "labels": {"kubernetes.io/hostname": "other"}},
        "status": {
            "allocatable": {"cpu": "2"},
            "conditions": [{"type": "Ready", "status": "False"}],
        },
    }

    node = registered_node(written, ordinal=0, now=NOW)

    assert node["metadata"]["labels"]["kubernetes.io/hostname"] == "other"
    assert node["status"]["allocatable"] == node["status"]["capacity"] == {"cpu": "2"}
    ready = [each for each in node["status"]["conditions"] if each["type"] == "Ready"]
    assert ready == [{"type": "Ready", "status": "False"}]
    assert registered_node(node, ordinal=5, now=NOW + 1) == node


def test_a_new_node_gets_a_range_that_is_free():
    assert free_ordinal([]) == 0
    assert free_ordinal([a_node(pod_cidr="10.128.0.0/24"), a_node(pod_cidr="10.128.2.0/24")]) == 1
