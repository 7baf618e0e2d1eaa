"""Nodes, volumes and pods as upstream's harness creates them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mooring.bench.scheduler_perf.devices import resource_slice
from mooring.bench.scheduler_perf.manifests import claim_and_volume, csi_node, nodes_of, typed, with_claim
from mooring.bench.scheduler_perf.operations import CreateNodes, LabelNodes, NodeAllocatable, UniqueNodeLabel
from mooring.bench.scheduler_perf.templates import Template

ZONES = LabelNodes("zone", ["a", "b"])


def labels(operation: CreateNodes) -> list[dict[str, str]]:
    return [node["metadata"]["labels"] for node in nodes_of(operation, None, 0)]


def test_nodes_have_names_of_their_own_and_the_hostname_label():
    nodes = [*nodes_of(CreateNodes(count=2), None, 0), *nodes_of(CreateNodes(count=1), None, 3)]
    names = [node["metadata"]["name"] for node in nodes]
    assert names == ["node-0-0", "node-0-1", "node-3-0"]
    assert [each["metadata"]["labels"]["kubernetes.io/hostname"] for each in nodes] == names
    assert "generateName" not in nodes[0]["metadata"]


def test_label_values_are_given_in_turn():
    found = labels(CreateNodes(count=3, label_node_prepare_strategy=ZONES))
    assert [each["zone"] for each in found] == ["a", "b", "a"]


def test_unique_labels_differ():
    found = labels(CreateNodes(count=3, unique_node_label_strategy=UniqueNodeLabel("id")))
    assert len({each["id"] for each in found}) == 3


def test_a_template_may_name_its_nodes():
    template = Template(Path("n.yaml"), "metadata: {name: 'n-{{.Index}}'}\nstatus: {capacity: {cpu: 4}}")
    nodes = list(nodes_of(CreateNodes(count=2), template, 0))
    assert [node["metadata"]["name"] for node in nodes] == ["n-0", "n-1"]


def test_allocatable_is_added_to_the_capacity_and_the_driver_to_the_csi_node():
    strategy = NodeAllocatable({"example.com/gpu": "2"}, {"csi.example.com": {"count": 39}}, ["kubernetes.io/aws-ebs"])
    template = Template(Path("n.yaml"), "metadata: {name: one}\nstatus: {capacity: {cpu: '4'}}")
    (node,) = nodes_of(CreateNodes(count=1, node_allocatable_strategy=strategy), template, 0)
    assert node["status"]["allocatable"] == {"cpu": "4", "example.com/gpu": "2"}
    found = csi_node("n", strategy)
    assert found["spec"]["drivers"] == [{"name": "csi.example.com", "nodeID": "n", "allocatable": {"count": 39}}]
    assert found["metadata"]["annotations"] == {"storage.alpha.kubernetes.io/migrated-plugins": "kubernetes.io/aws-ebs"}


VOLUMES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "a CSI volume has a handle of its own": ({"csi": {"driver": "d"}}, {"driver": "d", "volumeHandle": "ns-vol-3"}),
    "an in-tree volume has an id": ({"awsElasticBlockStore": {"volumeID": "?"}}, {"volumeID": "vol-3"}),
}


@pytest.mark.parametrize(("spec", "source"), VOLUMES.values(), ids=VOLUMES.keys())
def test_claim_and_volume_are_bound_to_each_other(spec: dict[str, Any], source: dict[str, Any]):
    claim, volume = claim_and_volume({"spec": {}}, {"spec": spec}, 3, "ns")
    assert claim["spec"]["volumeName"] == volume["metadata"]["name"] == "ns-vol-3"
    assert volume["spec"]["claimRef"]["name"] == claim["metadata"]["name"] == "pvc-3"
    assert source in volume["spec"].values()
    assert with_claim({"spec": {}}, 3)["spec"]["volumes"][0]["persistentVolumeClaim"] == {"claimName": "pvc-3"}


def test_field_names_are_matched_regardless_of_the_case_of_their_first_letter_and_keys_of_users_are_kept():
    pod = {"metadata": {"labels": {"App": "x"}}, "spec": {"topologySpreadConstraints": [{"NodeTaintsPolicy": "Honor"}]}}
    assert typed(pod) == {
        "metadata": {"labels": {"App": "x"}},
        "spec": {"topologySpreadConstraints": [{"nodeTaintsPolicy": "Honor"}]},
    }


def test_a_slice_has_the_devices_of_its_node():
    spec = resource_slice("driver.example.com", "n", 3)["spec"]
    assert (spec["nodeName"], spec["pool"]["name"]) == ("n", "n")
    assert [device["name"] for device in spec["devices"]] == ["instance-0", "instance-1", "instance-2"]
