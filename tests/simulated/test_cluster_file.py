"""Cluster files: their objects, and the messages about their mistakes."""

from __future__ import annotations

import json

import pytest
from tests.simulated.builders import NOW

from mooring.base.errors import OperatorMistake
from mooring.simulated.cluster_file import load_cluster_file, parse_cluster, plain_nodes


def names(documents) -> list[str]:
    return [document["metadata"]["name"] for document in documents]


def problems(text: str) -> list[tuple[str, int | None]]:
    with pytest.raises(OperatorMistake) as mistake:
        parse_cluster(text, "cluster.yaml", now=NOW)
    return [(problem.path, problem.line) for problem in mistake.value.problems]


def test_so_many_nodes_are_numbered_from_one():
    assert names(plain_nodes(3, now=NOW).nodes) == ["node-1", "node-2", "node-3"]
    assert plain_nodes(0, now=NOW).nodes == []


def test_fewer_than_no_nodes_are_a_mistake():
    with pytest.raises(OperatorMistake, match="cannot have -1 nodes"):
        plain_nodes(-1, now=NOW)


SHORT_FORM = """
apiVersion: mooring.dev/v1alpha1
kind: SimulatedNodes
count: 2
namePrefix: gpu-
labels: {accelerator: h100}
taints: [{key: gpu, effect: NoSchedule}]
allocatable: {cpu: 64, nvidia.com/gpu: "8"}
---
apiVersion: mooring.dev/v1alpha1
kind: SimulatedNodes
names: [db]
zones: [zone-z]
---
apiVersion: mooring.dev/v1alpha1
kind: SimulatedNodes
count: 2
"""


def test_the_short_form_makes_nodes():
    nodes = parse_cluster(SHORT_FORM, "cluster.yaml", now=NOW).nodes

    assert names(nodes) == ["gpu-1", "gpu-2", "db", "node-1", "node-2"]
    gpu, db = nodes[0], nodes[2]
    assert gpu["metadata"]["labels"]["accelerator"] == "h100"
    assert gpu["spec"]["taints"] == [{"key": "gpu", "effect": "NoSchedule"}]
    assert (gpu["status"]["allocatable"]["cpu"], gpu["status"]["allocatable"]["nvidia.com/gpu"]) == ("64", "8")
    assert db["metadata"]["labels"]["topology.kubernetes.io/zone"] == "zone-z"
    assert len({node["spec"]["podCIDR"] for node in nodes}) == 5


OBJECTS = """
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Pod, metadata: {name: web}, spec: {containers: []}}
- {apiVersion: v1, kind: Namespace, metadata: {name: shop}}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: quotas.example.com}
---
apiVersion: v1
kind: Node
metadata: {name: by-hand}
status: {allocatable: {cpu: "2"}}
---
apiVersion: example.com/v1
kind: Quota
metadata: {generateName: q-}
"""


def test_objects_are_sorted_by_what_must_exist_first():
    found = parse_cluster(OBJECTS, "cluster.yaml", now=NOW)

    assert names(found.definitions) == ["quotas.example.com"]
    assert names(found.namespaces) == ["shop"]
    assert names(found.nodes) == ["by-hand"]
    assert [document["kind"] for document in found.objects] == ["Pod", "Quota"]


def test_an_object_is_taken_as_it_is_written():
    [pod] = parse_cluster("{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {odd: 1}}", "c", now=NOW).objects
    assert pod == {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {"odd": 1}}


def test_every_mistake_is_found_with_its_place():
    text = """\
apiVersion: mooring.dev/v1alpha1
kind: SimulatedNodes
count: many
lables: {}
labels:
  size: 5
taints:
- key: gpu
  effect: Never
allocatable:
  cpu: a lot
---
kind: Pod
metadata: {name: web}
---
apiVersion: v1
kind: Pod
spec: {}
"""
    assert problems(text) == [
        ("document 1: count", 3),
        ("document 1: lables", 4),
        ("document 1: labels.size", 6),
        ("document 1: taints[0].effect", 9),
        ("document 1: allocatable.cpu", 11),
        ("document 2: apiVersion", 13),
        ("document 3: metadata.name", 16),
    ]


def test_a_field_that_is_nearly_right_is_guessed():
    text = "{apiVersion: mooring.dev/v1alpha1, kind: SimulatedNodes, alocatable: {}}"
    with pytest.raises(OperatorMistake, match='Did you mean "allocatable"'):
        parse_cluster(text, "cluster.yaml", now=NOW)


MISTAKES = {
    "a text is no object": ("hello", "must be an object"),
    "more nodes than a cluster has": (
        "{apiVersion: mooring.dev/v1alpha1, kind: SimulatedNodes, count: 2000000}",
        "makes 2,000,000 nodes, and at most 1,000,000 are made here",
    ),
    "more generated nodes than a cluster has": (
        "{apiVersion: mooring.dev/v1alpha1, kind: GeneratedCluster, kinds: "
        "[{name: a, count: 1000000}, {name: b, count: 1000000}]}",
        "makes 2,000,000 nodes, and at most 1,000,000 are made here",
    ),
    "names and count exclude each other": (
        "{apiVersion: mooring.dev/v1alpha1, kind: SimulatedNodes, names: [a], count: 2}",
        "give one or the other",
    ),
    "a version we do not know": ("{apiVersion: mooring.dev/v9, kind: SimulatedNodes}", "mooring.dev/v1alpha1"),
    "two nodes of one name": (
        "{apiVersion: mooring.dev/v1alpha1, kind: SimulatedNodes, names: [a, a]}",
        'Node "a" is already in document 1',
    ),
    "a node with an impossible quantity": (
        "{apiVersion: v1, kind: Node, metadata: {name: a}, status: {allocatable: {cpu: -1}}}",
        "at least 0",
    ),
    "a key that is given twice": ("a: 1\na: 2", "given twice"),
    "text that is not YAML": ("a: [", "cannot be read"),
    "a name that YAML reads as a boolean": (
        "{apiVersion: v1, kind: Node, metadata: {name: off}}",
        "must be text, got the boolean false, as YAML reads n, no, off and false without quotes; quote it",
    ),
    "a namespace that YAML reads as a number": (
        "{apiVersion: v1, kind: Pod, metadata: {name: a, namespace: 12}}",
        "must be text, got the number 12; write it in quotes",
    ),
    "a node's name that YAML reads as a boolean": (
        "{apiVersion: mooring.dev/v1alpha1, kind: SimulatedNodes, names: [on]}",
        "must be a valid node name, got the boolean true",
    ),
    "a name that no node can have": (
        "{apiVersion: mooring.dev/v1alpha1, kind: SimulatedNodes, names: [Big_One]}",
        "must be a valid node name",
    ),
}


@pytest.mark.parametrize(("text", "message"), MISTAKES.values(), ids=MISTAKES.keys())
def test_mistakes_are_explained(text, message):
    with pytest.raises(OperatorMistake) as mistake:
        parse_cluster(text, "cluster.yaml", now=NOW)
    assert message in str(mistake.value)


def test_a_file_that_is_not_there_is_a_mistake(tmp_path):
    with pytest.raises(OperatorMistake, match="cannot be read"):
        load_cluster_file(str(tmp_path / "none.yaml"), now=NOW)


def test_a_file_is_read(tmp_path):
    path = tmp_path / "cluster.yaml"
    path.write_text(SHORT_FORM)
    assert len(load_cluster_file(str(path), now=NOW).nodes) == 5


DUMP = """
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Pod, metadata: {name: seen, uid: 1-2, namespace: shop}, spec: {containers: []}}
- {apiVersion: v1, kind: Namespace, metadata: {name: shop}}
- {apiVersion: v1, kind: Node, metadata: {name: far, resourceVersion: "7"}}
---
apiVersion: v1
kind: Pod
metadata: {name: by-hand, creationTimestamp: null}
"""


def test_what_an_api_server_wrote_is_restored_and_the_rest_is_created():
    found = parse_cluster(DUMP, "cluster.yaml", now=NOW)
    assert names(found.restored) == ["shop", "seen", "far"]
    assert names(found.objects) == ["by-hand"]
    assert (found.nodes, found.namespaces) == ([], [])


def test_json_means_what_the_same_yaml_means():
    items = [{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "uid": "1"}, "spec": {"priority": 1e3}}]
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": items}, indent=1)
    assert parse_cluster(text, "c", now=NOW) == parse_cluster(f"# YAML\n{text}", "c", now=NOW)


def test_mistakes_in_json_have_lines_too():
    item = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": False}}
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": [item]}, indent=1)
    assert problems(text) == [("document 1, items[0]: metadata.name", 9)]
    assert problems("{]")[0][1] == 1
