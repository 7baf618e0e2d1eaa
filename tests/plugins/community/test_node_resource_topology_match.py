"""NodeResourceTopologyMatch: pods on NUMA nodes."""

from __future__ import annotations

from fractions import Fraction

import pytest
from msgspec.structs import force_setattr

from mooring.base.errors import OperatorMistake
from mooring.objects import ObjectMeta
from mooring.objects.core import Container, PodSpec, ResourceRequirements
from mooring.objects.pod_fingerprint import ATTRIBUTE, fingerprint, xxhash64
from mooring.plugins.community.node_resource_topology import NodeResourceTopologyMatch
from mooring.plugins.community.node_resource_topology.caches import TopologyPod, TopologyPodSpec, TopologyPodStatus
from mooring.plugins.community.node_resource_topology.scores import GO_NAN, balanced_allocation
from mooring.plugins.community.node_resource_topology.topologies import (
    NodeResourceTopology,
    TopologyAttribute,
    TopologyCost,
    TopologyResource,
    TopologyZone,
)
from mooring.testing import Services, a_cluster, a_cycle, a_node, a_plugin, a_pod

GPU = "example.com/gpu"
STALE = "invalid node topology data"


def a_topology(*zones, policy="single-numa-node", scope="container", attributes=None, allocatable="0", **more):
    """NUMA nodes that have this available, and so many allocatable CPUs."""
    given = {"topologyManagerPolicy": policy, "topologyManagerScope": scope} | (attributes or {})
    return NodeResourceTopology(
        metadata=ObjectMeta(name="node"),
        zones=[
            TopologyZone(
                name=f"node-{id}",
                type="Node",
                resources=[
                    TopologyResource(name=name, available=text, allocatable=allocatable if name == "cpu" else 0)
                    for name, text in available.items()
                ],
                costs=[TopologyCost(name=f"node-{other}", value=10 if other == id else 20) for other in range(4)],
            )
            for id, available in enumerate(zones)
        ],
        attributes=[TopologyAttribute(name=name, value=value) for name, value in given.items()],
        **more,
    )


def has(cpu="4", memory="8Gi", **devices):
    return {"cpu": cpu, "memory": memory} | ({GPU: devices["gpu"]} if devices else {})


def a_guaranteed_pod(*containers, init=(), sidecars=(), name="pod"):
    """A pod whose containers have these whole CPUs, and a GiB each."""

    def container(cpu, **more):
        wanted = {"cpu": cpu, "memory": "1Gi"} if isinstance(cpu, str) else cpu
        return Container(resources=ResourceRequirements(requests=wanted, limits=wanted), **more)

    pod = a_pod(name)
    force_setattr(
        pod,
        "spec",
        PodSpec(
            containers=tuple(container(cpu) for cpu in containers),
            init_containers=(
                *(container(cpu) for cpu in init),
                *(container(cpu, restart_policy="Always") for cpu in sidecars),
            ),
        ),
    )
    return pod


class Numa:
    """A node with a topology, and the plugin."""

    def __init__(self, topology, *, services=None, resources=None, running=(), **arguments):
        self.services = services or Services()
        if topology is not None:
            self.services.objects(NodeResourceTopology).put(topology)
        offered = {GPU: "4"} if resources is None else resources
        node = a_node("node", cpu="16", memory="64Gi", resources=offered, running=list(running))
        self.cluster = a_cluster(node, services=self.services)
        self.plugin = a_plugin(NodeResourceTopologyMatch, self.services, **arguments)

    @property
    def node(self):
        return next(iter(self.cluster.nodes))

    def refusal(self, pod):
        cycle = a_cycle(pod, self.cluster)
        rejection = self.plugin.filter(pod, self.node, cycle)
        reason = None if rejection is None else rejection.reasons[0]
        at_once = [each.reason for each in self.plugin.filter_nodes(pod, self.cluster.nodes, cycle)]
        assert at_once == ([] if reason is None else [reason])
        return reason

    def score(self, pod):
        cycle = a_cycle(pod, self.cluster)
        score = self.plugin.score(pod, self.node, cycle)
        assert self.plugin.score_nodes(pod, self.cluster.nodes, cycle).tolist() == [score]
        return score

    def reserve(self, pod):
        self.plugin.reserve(pod, self.node, a_cycle(pod, self.cluster))

    def unreserve(self, pod):
        self.plugin.unreserve(pod, self.node, a_cycle(pod, self.cluster))


TWO = (has("4"), has("2"))
FILTERED = {
    "a container that fits a NUMA node": (a_topology(*TWO), a_guaranteed_pod("4"), None),
    "one that would need two": (a_topology(*TWO), a_guaranteed_pod("5"), "cannot align container"),
    "containers on different NUMA nodes": (a_topology(*TWO), a_guaranteed_pod("4", "2"), None),
    "the second finds too little left": (a_topology(*TWO), a_guaranteed_pod("3", "3"), "cannot align container"),
    "the pod as a whole": (a_topology(*TWO, scope="pod"), a_guaranteed_pod("3", "2"), "cannot align pod"),
    "an init container": (a_topology(*TWO), a_guaranteed_pod("1", init=["5"]), "cannot align init container"),
    "a sidecar": (a_topology(*TWO), a_guaranteed_pod("1", sidecars=["5"]), "cannot align sidecar container"),
    "init containers leave what they had": (a_topology(*TWO), a_guaranteed_pod("4", init=["4"]), None),
    "the policy best-effort admits": (a_topology(*TWO, policy="best-effort"), a_guaranteed_pod("5"), None),
    "a node without a report admits": (None, a_guaranteed_pod("5"), None),
    "the deprecated field counts": (
        a_topology(*TWO, policy="", scope="", topology_policies=["SingleNUMANodePodLevel"]),
        a_guaranteed_pod("3", "2"),
        "cannot align pod",
    ),
    "an invalid attribute is ignored": (a_topology(*TWO, policy="strict"), a_guaranteed_pod("5"), None),
    "a pod that is not Guaranteed shares CPUs": (a_topology(*TWO), a_pod(cpu="5", memory="1Gi"), None),
    "a pod without requests": (a_topology(has("0")), a_pod(), None),
    "a device on no NUMA node": (a_topology(*TWO), a_guaranteed_pod({"cpu": "1", "memory": "1Gi", GPU: "1"}), None),
    "a device beside too few CPUs": (
        a_topology(has("1", gpu="1"), has("4", gpu="0")),
        a_guaranteed_pod({"cpu": "2", "memory": "1Gi", GPU: "1"}),
        "cannot align container",
    ),
    "a device that the node lacks": (
        a_topology(*TWO),
        a_guaranteed_pod({"cpu": "1", "memory": "1Gi", "example.com/nic": "1"}),
        "cannot align container",
    ),
    "memory that no NUMA node lists": (a_topology({"cpu": "4"}), a_guaranteed_pod("1"), None),
    "restricted: fewer NUMA nodes do not suffice even when empty": (
        a_topology(*TWO, policy="restricted", allocatable="4"),
        a_guaranteed_pod("5"),
        None,
    ),
    "restricted: one would do, were it empty": (
        a_topology(has("2"), has("2"), policy="restricted", allocatable="4"),
        a_guaranteed_pod("3"),
        "cannot align container",
    ),
    "restricted: parts of CPUs are shared": (
        a_topology(has("2"), has("2"), policy="restricted", allocatable="4"),
        a_guaranteed_pod("2500m"),
        None,
    ),
    "restricted: the second container finds too little left": (
        a_topology(has("4"), has("1"), policy="restricted", allocatable="4"),
        a_guaranteed_pod("3", "2"),
        "cannot align container",
    ),
    "restricted: the pod as a whole": (
        a_topology(has("3"), has("2"), policy="restricted", allocatable="4", scope="pod"),
        a_guaranteed_pod("2", "2"),
        "cannot align pod",
    ),
    "restricted: a pod that is not Guaranteed shares CPUs": (
        a_topology(has("2"), has("2"), policy="restricted", allocatable="4"),
        a_pod(cpu="3", memory="1Gi"),
        None,
    ),
}
COMPATIBLE = {
    "a policy that rejects pods admits": (
        a_topology(has("2"), has("2"), policy="restricted", allocatable="4"),
        a_guaranteed_pod("3"),
        None,
    ),
    "memory that no NUMA node lists": (a_topology({"cpu": "4"}), a_guaranteed_pod("1"), "cannot align container"),
}


@pytest.mark.parametrize(("topology", "pod", "reason"), FILTERED.values(), ids=FILTERED.keys())
def test_a_node_is_refused_where_its_kubelet_would_refuse_the_pod(topology, pod, reason):
    assert Numa(topology).refusal(pod) == reason


@pytest.mark.parametrize(("topology", "pod", "reason"), COMPATIBLE.values(), ids=COMPATIBLE.keys())
def test_compatibility_refuses_as_the_original(topology, pod, reason):
    assert Numa(topology, compatibility="scheduler-plugins").refusal(pod) == reason


UNLISTED = {"LeastAllocated": 75, "MostAllocated": 25, "BalancedAllocation": 100, "LeastNUMANodes": 94}


@pytest.mark.parametrize(("type", "score"), UNLISTED.items())
def test_memory_that_no_numa_node_lists_does_not_count_in_scores(type, score):
    assert Numa(a_topology({"cpu": "4"}), scoring_strategy=strategy(type)).score(a_guaranteed_pod("1")) == score


def strategy(type, **weights):
    return {"type": type, "resources": [{"name": name, "weight": weight} for name, weight in weights.items()]}


FOUR = (has("4"), has("4"), has("4"), has("4"))
MOST_FOUR = {"topologyManagerMaxNUMANodes": "4"}
SCORED = {
    "the more is left the better": (a_topology(has("4", "4Gi")), "1", strategy("LeastAllocated"), 75),
    "the more is used the better": (a_topology(has("4", "4Gi")), "1", strategy("MostAllocated"), 25),
    "weights count": (a_topology(has("4", "2Gi")), "1", strategy("LeastAllocated", cpu=3), (3 * 75 + 50) // 4),
    "the worst NUMA node that will do counts": (
        a_topology(has("4", "4Gi"), has("2", "2Gi"), has("0", "0")),
        "1",
        strategy("LeastAllocated"),
        50,
    ),
    "equal shares are balanced": (a_topology(has("4", "4Gi")), "1", strategy("BalancedAllocation"), 100),
    "a policy without alignment scores 0": (a_topology(*TWO, policy="none"), "1", strategy("LeastAllocated"), 0),
    "one of at most eight NUMA nodes": (a_topology(*FOUR), "4", strategy("LeastNUMANodes"), 100 - 12 + 6),
    "one of at most four": (a_topology(*FOUR, attributes=MOST_FOUR), "4", strategy("LeastNUMANodes"), 100 - 25 + 12),
    "two": (a_topology(*FOUR, attributes=MOST_FOUR), "8", strategy("LeastNUMANodes"), 100 - 50 + 12),
    "more than there are": (a_topology(*FOUR), "17", strategy("LeastNUMANodes"), 0),
    "any policy will do": (a_topology(*FOUR, policy="none"), "4", strategy("LeastNUMANodes"), 94),
}


@pytest.mark.parametrize(("topology", "cpus", "scoring", "expected"), SCORED.values(), ids=SCORED.keys())
def test_a_node_is_scored_by_the_strategy(topology, cpus, scoring, expected):
    assert Numa(topology, scoring_strategy=scoring).score(a_guaranteed_pod(cpus)) == expected


def test_pods_that_are_not_guaranteed_score_alike():
    assert Numa(a_topology(*TWO)).score(a_pod(cpu="1")) == 100


def test_a_node_without_a_report_scores_0():
    assert Numa(None).score(a_guaranteed_pod("1")) == 0


def test_numa_ids_with_a_gap_are_scored():
    topology = a_topology(has("4", "4Gi"))
    force_setattr(topology.zones[0], "name", "node-3")
    assert Numa(topology).score(a_guaranteed_pod("1")) == 75


def test_one_resource_alone_is_balanced():
    [numa] = a_topology({"cpu": "4"}).numa_nodes
    requests = {"cpu": Fraction(1)}
    assert balanced_allocation(one_is_nan=False)(requests, numa) == 100
    assert balanced_allocation(one_is_nan=True)(requests, numa) == GO_NAN


def test_without_a_cache_reservations_do_not_count():
    numa = Numa(a_topology(has("4")))
    numa.reserve(a_guaranteed_pod("4", name="first"))
    assert numa.refusal(a_guaranteed_pod("4")) is None


async def test_a_node_is_left_out_while_a_pod_is_bound_to_it():
    numa, first = Numa(a_topology(*TWO), discard_reserved_nodes=True), a_guaranteed_pod("1", name="first")
    numa.reserve(first)
    assert numa.refusal(a_guaranteed_pod("1")) == STALE
    assert numa.score(a_guaranteed_pod("1")) == 0
    await numa.plugin.post_bind(first, numa.node, a_cycle(first, numa.cluster))
    assert numa.refusal(a_guaranteed_pod("1")) is None


OVER_RESERVE = {"cache_resync_period_seconds": 5}


def test_a_reserved_pod_counts_on_every_numa_node():
    numa, first = Numa(a_topology(has("4"), has("4")), **OVER_RESERVE), a_guaranteed_pod("3", name="first")
    numa.reserve(first)
    assert numa.refusal(a_guaranteed_pod("2")) == "cannot align container"
    numa.unreserve(first)
    assert numa.refusal(a_guaranteed_pod("2")) is None


def on_node(name, scheduler="default-scheduler", requests=None, phase="Running"):
    wanted = requests or {}
    container = Container(resources=ResourceRequirements(requests=wanted, limits=wanted))
    return TopologyPod(
        metadata=ObjectMeta(name=name, namespace="default", uid=name),
        spec=TopologyPodSpec(node_name="node", scheduler_name=scheduler, containers=[container]),
        status=TopologyPodStatus(phase=phase),
    )


async def test_a_report_with_the_fingerprint_of_all_pods_is_taken_over():
    numa, first = Numa(a_topology(has("4"), has("4")), **OVER_RESERVE), a_guaranteed_pod("3", name="first")
    await numa.plugin.start()
    assert numa.services.background.periods == [5.0]
    numa.reserve(first)
    assert numa.refusal(a_guaranteed_pod("2")) == "cannot align container"
    numa.services.objects(TopologyPod).put(on_node("first"))
    for pods, expected in (([], "cannot align container"), ([("default", "first")], None)):
        report = a_topology(has("4"), has("1"), attributes={ATTRIBUTE: fingerprint(pods)})
        numa.services.objects(NodeResourceTopology).put(report)
        await numa.services.background.step()
        assert numa.refusal(a_guaranteed_pod("2")) == expected


async def test_a_node_with_pods_of_another_scheduler_is_left_out_until_its_report_contains_them():
    numa = Numa(a_topology(*TWO), **OVER_RESERVE)
    await numa.plugin.start()
    assert numa.refusal(a_guaranteed_pod("1")) is None
    numa.services.objects(TopologyPod).put(on_node("foreign", scheduler="other"))
    assert numa.refusal(a_guaranteed_pod("1")) == STALE
    report = a_topology(*TWO, attributes={ATTRIBUTE: fingerprint([("default", "foreign")])})
    numa.services.objects(NodeResourceTopology).put(report)
    await numa.services.background.step()
    assert numa.refusal(a_guaranteed_pod("1")) is None


EXCLUSIVE = {
    "whole CPUs of a Guaranteed pod": ({"cpu": "1", "memory": "1Gi"}, STALE),
    "a device of a NUMA node": ({GPU: "1"}, STALE),
    "a device of none": ({"example.com/nic": "1"}, None),
    "nothing": ({}, None),
}


@pytest.mark.parametrize(("requests", "reason"), EXCLUSIVE.values(), ids=EXCLUSIVE.keys())
def test_only_foreign_pods_with_resources_of_their_own_may_count(requests, reason):
    cache = {"foreignPodsDetect": "OnlyExclusiveResources"}
    numa = Numa(a_topology(has("4", gpu="1")), cache=cache, **OVER_RESERVE)
    numa.services.objects(TopologyPod).put(on_node("foreign", scheduler="other", requests=requests))
    assert numa.refusal(a_guaranteed_pod("1")) == reason


def test_foreign_pods_may_be_ignored():
    numa = Numa(a_topology(*TWO), cache={"foreignPodsDetect": "None"}, **OVER_RESERVE)
    numa.services.objects(TopologyPod).put(on_node("foreign", scheduler="other"))
    assert numa.refusal(a_guaranteed_pod("1")) is None


async def test_a_changed_policy_is_taken_over():
    numa = Numa(a_topology(*TWO), **OVER_RESERVE)
    await numa.plugin.start()
    assert numa.refusal(a_guaranteed_pod("5")) == "cannot align container"
    numa.services.objects(NodeResourceTopology).put(a_topology(*TWO, policy="none"))
    await numa.services.background.step()
    assert numa.refusal(a_guaranteed_pod("5")) is None


def test_hashes_have_known_values():
    assert xxhash64(b"") == 0xEF46DB3751D8E999
    assert xxhash64(b"abc") == 0x44BC2CF5AD770999
    assert xxhash64(b"\x4eobody inspects the spammish repetition") == 0xFBCEA83C8A378BF1


WRONG = {
    "an unknown strategy": ({"scoring_strategy": {"type": "Bogus"}}, "Bogus"),
    "a strategy without a type": ({"scoring_strategy": {}}, ""),
}


@pytest.mark.parametrize(("arguments", "value"), WRONG.values(), ids=WRONG.keys())
def test_mistakes_are_reported_in_the_words_of_the_original(arguments, value):
    with pytest.raises(OperatorMistake) as mistake:
        a_plugin(NodeResourceTopologyMatch, Services(), **arguments)
    assert f'Invalid value: "{value}": invalid ScoringStrategyType' in str(mistake.value)


async def test_a_quantity_that_is_none_rejects_the_node_and_no_other():
    services = Services()
    wrong = Numa(a_topology(has(cpu="much")), services=services)
    assert wrong.refusal(a_guaranteed_pod("1")) == STALE
    (line,) = (values for severity, _, values in services.log.lines if severity == "W")
    assert "available of cpu in zone node-0: 'much' is not a quantity" in str(line["err"])
    assert services.metrics.value("node_resource_topologies_wrong") == 1


CONTRADICTIONS = {
    "more available than allocatable": (TopologyResource(name="cpu", allocatable="2", available="3"), "2 allocatable"),
    "less than nothing": (TopologyResource(name="cpu", allocatable="2", available="-1"), "-1 available"),
    "more than the node has": (
        TopologyResource(name="cpu", allocatable="400", available="4"),
        "its zones have cpu 400, the node has",
    ),
}


@pytest.mark.parametrize(("resource", "message"), CONTRADICTIONS.values(), ids=CONTRADICTIONS.keys())
def test_a_report_that_contradicts_itself_or_its_node_is_logged_once(resource, message):
    services = Services()
    topology = a_topology(has())
    force_setattr(topology.zones[0], "resources", [resource, *topology.zones[0].resources[1:]])
    numa = Numa(topology, services=services)
    for _ in range(3):
        numa.refusal(a_guaranteed_pod("1"))
    (line,) = (values for severity, _, values in services.log.lines if severity == "W")
    assert message in str(line["err"])
