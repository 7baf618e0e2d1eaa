"""What cannot work as it is: PodGroups, ElasticQuotas and NodeResourceTopologies, each with its message."""

from __future__ import annotations

from typing import Any

import pytest

from mooring.controllers.cluster_room import ClusterRoom
from mooring.controllers.elastic_quota_controller import quota_problem
from mooring.controllers.node_topology_controller import topology_problem
from mooring.controllers.pod_group_problems import COSCHEDULING, GANG, GroupApi, missing_group, problem_of_group
from mooring.controllers.problem_events import ObjectProblem
from mooring.framework import Pod
from mooring.objects import Node, ObjectMeta
from mooring.objects.pod_groups import GangSchedulingPolicy, PodGroup, PodGroupSchedulingPolicy, PodGroupSpec
from mooring.plugins.community.capacity_scheduling.quotas import ElasticQuota, ElasticQuotaSpec
from mooring.plugins.community.coscheduling.pod_groups import CoschedulingGroup, CoschedulingGroupSpec
from mooring.plugins.community.node_resource_topology.topologies import (
    NodeResourceTopology,
    TopologyAttribute,
    TopologyCost,
    TopologyResource,
    TopologyZone,
)
from mooring.testing import a_node_object, a_pod, a_pod_group


def a_group(members: int, **spec: Any) -> CoschedulingGroup:
    return CoschedulingGroup(
        metadata=ObjectMeta(name="train", namespace="default"), spec=CoschedulingGroupSpec(min_member=members, **spec)
    )


def a_gang(count: int | None) -> PodGroup:
    gang = None if count is None else GangSchedulingPolicy(min_count=count)
    return PodGroup(
        metadata=ObjectMeta(name="train", namespace="default"),
        spec=PodGroupSpec(scheduling_policy=PodGroupSchedulingPolicy(gang=gang)),
    )


def two_nodes() -> list[Node]:
    return [a_node_object("a", cpu=4, memory="8Gi", pods=10), a_node_object("b", cpu=2, memory="8Gi", pods=10)]


def pods(count: int, **requests: Any) -> list[Pod]:
    return [a_pod(f"pod-{at}", **requests) for at in range(count)]


GROUPS: dict[str, tuple[GroupApi[Any], Any, list[Pod], str]] = {
    "a group that may fit": (COSCHEDULING, a_group(20), [], ""),
    "more members than all nodes run": (
        COSCHEDULING,
        a_group(21),
        [],
        "spec.minMember is 21, and all 2 nodes can run 20 pods",
    ),
    "a gang is no different": (
        GANG,
        a_gang(21),
        [],
        "spec.schedulingPolicy.gang.minCount is 21, and all 2 nodes can run 20 pods",
    ),
    "a group whose pods are scheduled one by one": (GANG, a_gang(None), pods(100, cpu=8), ""),
    "minResources that all nodes together have": (COSCHEDULING, a_group(2, min_resources={"cpu": "6"}), [], ""),
    "minResources that they lack": (
        COSCHEDULING,
        a_group(2, min_resources={"cpu": "6", "memory": "20Gi"}),
        [],
        "spec.minResources.memory is 20Gi, and all 2 nodes can hold 16Gi",
    ),
    "minResources of a resource that no node has": (
        COSCHEDULING,
        a_group(2, min_resources={"example.com/gpu": 1}),
        [],
        "spec.minResources.example.com/gpu is 1, and all 2 nodes can hold 0",
    ),
    "pods of which enough fit into the nodes": (COSCHEDULING, a_group(3), pods(3, cpu=2), ""),
    "a pod larger than any node": (
        COSCHEDULING,
        a_group(1),
        pods(1, cpu=5),
        "spec.minMember is 1; its pods request at least cpu 5 each, and all 2 nodes can run 0 of them",
    ),
    "pods that fit one by one, and not together": (
        COSCHEDULING,
        a_group(4),
        pods(4, cpu=2, memory="1Gi"),
        "spec.minMember is 4; its pods request at least cpu 2, memory 1Gi each, and all 2 nodes can run 3 of them",
    ),
    "the smallest pod decides, for others may run beside it": (
        COSCHEDULING,
        a_group(4),
        [*pods(3, cpu="500m"), a_pod("driver", cpu=4)],
        "",
    ),
    "pods that request nothing": (COSCHEDULING, a_group(4), pods(4), ""),
    "pods that are still to come may be smaller": (COSCHEDULING, a_group(4), pods(3, cpu=2), ""),
}


@pytest.mark.parametrize(("api", "group", "members", "message"), GROUPS.values(), ids=GROUPS.keys())
def test_pod_groups_that_no_order_of_events_can_place(api, group, members, message):
    found = problem_of_group(api, group, members, ClusterRoom(two_nodes()))
    assert found == (ObjectProblem("PodGroupTooLarge", message) if message else None)


def test_min_resources_that_are_no_quantity():
    found = problem_of_group(COSCHEDULING, a_group(2, min_resources={"cpu": "many"}), [], ClusterRoom(two_nodes()))
    assert found is not None
    assert (found.reason, found.message.partition(";")[0]) == (
        "InvalidPodGroup",
        "spec.minResources.cpu: 'many' is not a quantity",
    )


def test_a_cluster_without_nodes_holds_no_group():
    found = problem_of_group(COSCHEDULING, a_group(1), [], ClusterRoom())
    assert found == ObjectProblem("PodGroupTooLarge", "spec.minMember is 1, and no node can run 0 pods")


LACKING = "spec.schedulingConstraints.topology[0].key is rack, and {} has a label of this key"
GROUP_TOPOLOGIES = {
    "a label of no node": (a_pod_group("near", topology_key="rack"), two_nodes(), LACKING.format("none of 2 nodes")),
    "a label of none of one": (a_pod_group("near", topology_key="rack"), two_nodes()[:1], LACKING.format("no node")),
    "a label of some": (
        a_pod_group("near", min_count=2, topology_key="rack"),
        [*two_nodes(), a_node_object("c", labels={"rack": "1"})],
        "",
    ),
    "no constraint": (a_pod_group("anywhere", min_count=2), two_nodes(), ""),
}


@pytest.mark.parametrize(("group", "nodes", "message"), GROUP_TOPOLOGIES.values(), ids=GROUP_TOPOLOGIES.keys())
def test_a_topology_that_no_node_is_part_of(group: PodGroup, nodes: list[Node], message: str):
    found = problem_of_group(GANG, group, [], ClusterRoom(nodes))
    assert found == (ObjectProblem("PodGroupTopologyNotFound", message) if message else None)


def test_the_room_follows_the_labels_of_nodes():
    node, changes = a_node_object("a"), []
    room = ClusterRoom([node])
    room.subscribe(lambda: changes.append(room.has_label("rack")))
    room.put(a_node_object("a", labels={"rack": "1"}))
    room.put(a_node_object("a", labels={"rack": "2"}))  # no key came or went
    room.put(node)
    assert changes == [True, False]


def test_the_room_follows_the_nodes():
    room, changes = ClusterRoom(two_nodes()), []
    room.subscribe(lambda: changes.append(room.total("cpu")))
    room.put(a_node_object("a", cpu=8, pods=10))
    room.put(a_node_object("a", cpu=8, pods=10))
    room.remove(a_node_object("b"))
    assert changes == [10_000, 8_000]
    assert (room.nodes, room.most_pods({}), room.most_pods({"cpu": 3000})) == (1, 10, 2)


def test_a_missing_group_is_named_with_its_api():
    assert missing_group(COSCHEDULING, "default/train").message == (
        "PodGroup default/train (scheduling.x-k8s.io) does not exist; the pod waits for it"
    )
    assert "(scheduling.k8s.io)" in missing_group(GANG, "default/train").message


def a_quota(name: str = "quota", **spec: Any) -> ElasticQuota:
    return ElasticQuota(metadata=ObjectMeta(name=name, namespace="default", uid=name), spec=ElasticQuotaSpec(**spec))


QUOTAS: dict[str, tuple[ElasticQuota, ObjectProblem | None]] = {
    "a usable one": (a_quota(min={"cpu": 2}, max={"cpu": 4}), None),
    "max may be more than the nodes have": (a_quota(max={"cpu": 400}), None),
    "min above max": (
        a_quota(min={"cpu": 4}, max={"cpu": 2}),
        ObjectProblem("InvalidQuota", "spec.min.cpu is 4, more than spec.max.cpu 2"),
    ),
    "a negative min": (
        a_quota(min={"memory": "-1Gi"}),
        ObjectProblem("InvalidQuota", "spec.min.memory is -1Gi: it must not be negative"),
    ),
    "a negative max": (
        a_quota(max={"cpu": -1}),
        ObjectProblem("InvalidQuota", "spec.max.cpu is -1: it must not be negative"),
    ),
    "min above what all nodes have": (
        a_quota(min={"cpu": "6500m"}),
        ObjectProblem("QuotaTooLarge", "spec.min.cpu is 6500m, and all nodes together have 6"),
    ),
}


@pytest.mark.parametrize(("quota", "problem"), QUOTAS.values(), ids=QUOTAS.keys())
def test_quotas(quota, problem):
    assert quota_problem(quota, quota, ClusterRoom(two_nodes())) == problem


def test_the_second_quota_of_a_namespace_is_reported_as_ignored():
    assert quota_problem(a_quota("new"), a_quota("old"), ClusterRoom(two_nodes())) == ObjectProblem(
        "IgnoredQuota", "the namespace has an older quota, old, which counts alone"
    )


def a_zone(name: str, *, costs: tuple[str, ...] = (), **resources: tuple[Any, Any]) -> TopologyZone:
    """Each resource: allocatable, available."""
    return TopologyZone(
        name=name,
        type="Node",
        costs=[TopologyCost(name=other, value=20) for other in costs],
        resources=[
            TopologyResource(name=resource, capacity=allocatable, allocatable=allocatable, available=available)
            for resource, (allocatable, available) in resources.items()
        ],
    )


def a_topology(*zones: TopologyZone, old: str = "", **attributes: str) -> NodeResourceTopology:
    return NodeResourceTopology(
        metadata=ObjectMeta(name="a"),
        zones=list(zones),
        topology_policies=[old] if old else [],
        attributes=[TopologyAttribute(name=name, value=value) for name, value in attributes.items()],
    )


HALVES = (
    a_zone("node-0", costs=("node-0", "node-1"), cpu=(2, 1), memory=("4Gi", "4Gi")),
    a_zone("node-1", costs=("node-0", "node-1"), cpu=(2, 2), memory=("4Gi", "0")),
)
TOPOLOGIES: dict[str, tuple[NodeResourceTopology, str]] = {
    "zones that make up the node": (a_topology(*HALVES, topologyManagerPolicy="single-numa-node"), ""),
    "a deprecated policy": (a_topology(*HALVES, old="SingleNUMANodePodLevel"), ""),
    "a deprecated policy without alignment": (a_topology(*HALVES, old="None"), ""),
    "no zones": (a_topology(), "it has no zone of type Node"),
    "zones that exceed the node": (
        a_topology(*HALVES, a_zone("node-2", cpu=(4, 4))),
        "its zones have cpu 8, the node has 4",
    ),
    "a resource that the node does not have": (
        a_topology(a_zone("node-0", gpu=(1, 1))),
        "its zones have gpu 1, the node has 0",
    ),
    "more available than allocatable": (
        a_topology(a_zone("node-0", cpu=(2, 3))),
        "node-0 has cpu 3 available, but 2 allocatable",
    ),
    "two zones of one name": (a_topology(HALVES[0], HALVES[0]), "two zones are named node-0"),
    "a zone is missing to which another has a distance": (
        a_topology(HALVES[0]),
        "node-0 has a distance to node-1, which is no zone",
    ),
    "a zone whose number cannot be read": (
        a_topology(a_zone("socket", cpu=(1, 1))),
        "zone 'socket' is not named node-<number> and is ignored",
    ),
    "an unknown policy": (
        a_topology(*HALVES, topologyManagerPolicy="strict"),
        "topologyManagerPolicy is 'strict'; a kubelet has one of none, best-effort, restricted, single-numa-node",
    ),
    "an unknown scope": (
        a_topology(*HALVES, topologyManagerScope="node"),
        "topologyManagerScope is 'node'; a kubelet has one of pod, container",
    ),
    "an unknown deprecated policy": (
        a_topology(*HALVES, old="Strict"),
        "topologyPolicies has 'Strict', which is no policy of a kubelet",
    ),
}


@pytest.mark.parametrize(("topology", "message"), TOPOLOGIES.values(), ids=TOPOLOGIES.keys())
def test_topologies(topology, message):
    assert topology_problem(topology, a_node_object("a", cpu=4, memory="8Gi")) == message


def test_a_topology_without_a_node():
    assert topology_problem(a_topology(*HALVES), None) == "no node has this name"
