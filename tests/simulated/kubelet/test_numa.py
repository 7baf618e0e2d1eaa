"""NUMA nodes of simulated nodes: admission by policy and scope, and the objects that nodes publish."""

from __future__ import annotations

from typing import Any

import pytest
from tests.simulated.builders import a_pod
from tests.simulated.conftest import NODE, POD, Bench, pod_document

from mooring.base.errors import OperatorMistake
from mooring.framework.definitions import definition_of
from mooring.objects.pod_fingerprint import ATTRIBUTE, fingerprint
from mooring.plugins.community.node_resource_topology.topologies import NodeResourceTopology
from mooring.simulated.cluster_file import parse_cluster
from mooring.simulated.kubelet.node_topologies import TOPOLOGY
from mooring.simulated.kubelet.numa import NUMA, NumaNodeState, read_numa
from mooring.simulated.records import PodRecord

GPU = "nvidia.com/gpu"
ALLOCATABLE = {"cpu": "8", "memory": "32Gi", GPU: "2", "pods": "110"}


def container(cpu: str = "", *, gpus: str = "", name: str = "app", is_limited: bool = True) -> dict[str, Any]:
    requests = ({"cpu": cpu, "memory": "1Gi"} if cpu else {}) | ({GPU: gpus} if gpus else {})
    resources = {"requests": requests} | ({"limits": requests} if is_limited else {})
    return {"name": name, "image": "pause", "resources": resources}


def pod_of(*containers: dict[str, Any], name: str = "web") -> PodRecord:
    return a_pod(name, node="node-1", containers=list(containers))


def a_state(policy: str = "single-numa-node", scope: str = "container", zones: str = "2") -> NumaNodeState:
    text = f'{{"policy": "{policy}", "scope": "{scope}", "zones": {zones}}}'
    return NumaNodeState(read_numa(text, ALLOCATABLE))


def cpus(state: NumaNodeState) -> list[int]:
    return [int(zone["cpu"]) for zone in state.available()]


def test_what_the_node_can_allocate_is_shared_by_its_numa_nodes():
    zones = a_state(zones="3").available()
    assert [int(zone["cpu"]) for zone in zones] == [3, 3, 2]
    assert [int(zone[GPU]) for zone in zones] == [1, 1, 0]
    assert "pods" not in zones[0]


ADMITTED: dict[str, tuple[dict[str, str], list[dict[str, Any]], list[int] | None]] = {
    "a container has one NUMA node": ({}, [container("3")], [1, 4]),
    "the next one has another": ({}, [container("3"), container("3")], [1, 1]),
    "more than one NUMA node has is rejected": ({}, [container("6")], None),
    "the containers of a pod together": ({"scope": "pod"}, [container("3"), container("3")], None),
    "best effort takes what there is": ({"policy": "best-effort"}, [container("6")], [0, 2]),
    "none rejects nothing": ({"policy": "none"}, [container("6")], [0, 2]),
    "restricted takes as many as are needed": ({"policy": "restricted"}, [container("6")], [0, 2]),
    "parts of a CPU are shared": ({}, [container("1500m")], [4, 4]),
    "CPUs of a pod that is not Guaranteed are shared": ({}, [container("6", is_limited=False)], [4, 4]),
    "a device decides where": (
        {"zones": '[{"cpu": 4, "memory": "16Gi"}, {"cpu": 4, "memory": "16Gi", "nvidia.com/gpu": 2}]'},
        [container("2", gpus="1")],
        [4, 2],
    ),
}


@pytest.mark.parametrize(("how", "containers", "left"), ADMITTED.values(), ids=ADMITTED.keys())
def test_the_topology_manager_admits_by_policy_and_scope(how, containers, left):
    state = a_state(**how)
    assert state.admit(pod_of(*containers)) == (left is not None)
    assert cpus(state) == (left or [4, 4])


def test_restricted_rejects_a_pod_that_would_need_more_numa_nodes_than_usual():
    state = a_state("restricted")
    assert state.admit(pod_of(container("2"), name="one"))
    assert state.admit(pod_of(container("3"), name="two"))
    assert not state.admit(pod_of(container("3"), name="three"))


def test_what_a_pod_had_is_free_when_it_ends():
    state = a_state()
    state.admit(pod_of(container("3")))
    assert state.release(pod_of(container("3")))
    assert cpus(state) == [4, 4]


def test_a_running_pod_is_never_rejected():
    state = a_state()
    assert state.admit(pod_of(container("6")), is_running=True)
    assert cpus(state) == [0, 2]


WRONG = {
    "not JSON": ("{", "is not JSON"),
    "another document": ("[]", "must be policy, scope and zones"),
    "no policy": ('{"policy": "single"}', "policy must be one of none, best-effort, restricted, single-numa-node"),
    "an unknown field": ('{"zone": 2}', "zone is not a field of numa"),
    "no zones": ('{"zones": 0}', "zones must be a whole number from 1 to 8"),
    "a quantity that is none": ('{"zones": [{"cpu": "x"}]}', "zones.0.cpu must be a quantity"),
    "more than the node has": ('{"zones": [{"cpu": 5}, {"cpu": 5}]}', "have 10 of cpu, but the node can allocate 8"),
}


@pytest.mark.parametrize(("text", "message"), WRONG.values(), ids=WRONG.keys())
def test_what_is_wrong_is_named(text, message):
    with pytest.raises(ValueError, match=message.replace("[", r"\[")):
        read_numa(text, ALLOCATABLE)


def test_the_cluster_file_names_its_mistakes():
    text = """
apiVersion: mooring.dev/v1alpha1
kind: SimulatedNodes
allocatable: {cpu: "8"}
numa: {policy: single, zones: [{cpu: 5}, {cpu: 5}]}
"""
    with pytest.raises(OperatorMistake) as mistake:
        parse_cluster(text, "cluster.yaml", now=0.0)
    assert [problem.path for problem in mistake.value.problems] == ["document 1: numa.policy"]


NODES = """
apiVersion: mooring.dev/v1alpha1
kind: SimulatedNodes
allocatable: {cpu: "8", memory: 32Gi}
numa: {policy: single-numa-node, zones: 2}
"""


async def topology(bench: Bench) -> dict[str, Any]:
    return await bench.client.get(TOPOLOGY, "node-1")


def available(document: dict[str, Any], resource: str = "cpu") -> list[str]:
    return [each["available"] for zone in document["zones"] for each in zone["resources"] if each["name"] == resource]


async def test_a_node_publishes_its_topology_as_pods_come_and_go(bench: Bench):
    bench.server.load([definition_of(NodeResourceTopology)])
    await bench.start(NODES)
    store = bench.server.store

    def published() -> list[str]:
        found = store.get("noderesourcetopologies.topology.node.k8s.io", "node-1")
        return available(found) if found is not None else []

    await bench.seen.until(lambda: published() == ["4", "4"])
    await bench.client.create(POD, pod_document("web", containers=[container("3")]), "default")
    await bench.seen.until(lambda: published() == ["1", "4"])
    document = await topology(bench)
    assert {each["name"]: each["value"] for each in document["attributes"]} == {
        "topologyManagerPolicy": "single-numa-node",
        "topologyManagerScope": "container",
        ATTRIBUTE: fingerprint([("default", "web")]),
    }
    await bench.client.create(POD, pod_document("wide", containers=[container("6")]), "default")
    rejection = ("TopologyAffinityError", "Resources cannot be allocated with Topology locality")
    await bench.seen.until(lambda: rejection in bench.seen.events)
    await bench.seen.until(lambda: {pod.name: pod.status.phase for pod in bench.seen.pods}["wide"] == "Failed")
    await bench.client.delete(POD, "web", "default")
    await bench.seen.until(lambda: published() == ["4", "4"])


async def test_a_node_that_contradicts_itself_has_an_event_and_no_topology(bench: Bench):
    bench.server.load([definition_of(NodeResourceTopology)])
    zones = '{"zones": [{"cpu": 5}, {"cpu": 5}]}'
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "wrong", "annotations": {NUMA: zones}}}
    await bench.start(1)
    await bench.client.create(NODE, node)
    await bench.seen.until(lambda: any(reason == "InvalidNUMA" for reason, _ in bench.seen.events))
    (message,) = (message for reason, message in bench.seen.events if reason == "InvalidNUMA")
    assert "have 10 of cpu, but the node can allocate 4" in message
    assert bench.server.store.get("noderesourcetopologies.topology.node.k8s.io", "wrong") is None
