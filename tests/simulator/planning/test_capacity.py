"""The fewest nodes for a workload."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import force_setattr
from tests.simulator.scenarios import a_cluster_of, arriving

from mooring.base.errors import OperatorMistake
from mooring.objects import Node, OwnerReference
from mooring.simulator import Arrival, CapacityPlan, Cluster, capacity
from mooring.simulator.planning.node_kinds import read_node_kind
from mooring.testing import a_node_object, a_pod, a_taint
from mooring.testing.builders import a_constraint, a_term, pod_rules

BIG, SMALL, GPU = "cpu=8,memory=32Gi", "cpu=2,memory=8Gi", "cpu=2,memory=8Gi,nvidia.com/gpu=1"
apart = pod_rules(away=[a_term({"app": "web"}, "kubernetes.io/hostname")])


def pods(count: int, cpu: str = "1", **more: Any) -> list[Arrival]:
    return [arriving(0.0, f"p{number}", cpu=cpu, **more) for number in range(count)]


def found(plan: CapacityPlan | None) -> dict[str, int] | None:
    """What to add; None: nothing suffices."""
    return plan.trial.nodes if plan is not None and plan.suffices else None


CASES: dict[str, tuple[list[Arrival], list[str], list[float] | None, dict[str, int]]] = {
    "the cluster has room": (pods(1), [BIG], None, {BIG: 0}),
    "cpu is short": (pods(10), [BIG], None, {BIG: 2}),
    "whole pods must fit, not only their sum": (pods(5, "1500m"), [SMALL], None, {SMALL: 5}),
    "one on each node": (pods(4, "100m", labels={"app": "web"}, affinity=apart), [BIG], None, {BIG: 3}),
    "the fewest of two kinds": (pods(9), [SMALL, BIG], None, {SMALL: 0, BIG: 1}),
    "the cheapest of two kinds": (pods(9), [SMALL, BIG], [1.0, 5.0], {SMALL: 4, BIG: 0}),
    "a mix is the cheapest": (pods(11), [SMALL, BIG], [1.0, 3.5], {SMALL: 1, BIG: 1}),
    "some pods need a kind": (
        [*pods(9), arriving(0.0, "g", requests={"nvidia.com/gpu": "1"})],
        [BIG, GPU],
        None,
        {BIG: 1, GPU: 1},
    ),
    "pods that end make room: the peak counts": (
        [arriving(at * 100.0, f"j{at}-{number}", seconds=100.0) for at in range(5) for number in range(3)],
        [SMALL],
        None,
        {SMALL: 1},
    ),
    "short pods may not queue": (
        [arriving(0.0, f"j{number}", seconds=60.0) for number in range(9)],
        [BIG],
        None,
        {BIG: 1},
    ),
}


@pytest.mark.parametrize(("workload", "kinds", "costs", "expected"), CASES.values(), ids=CASES.keys())
def test_the_fewest_nodes(
    workload: list[Arrival], kinds: list[str], costs: list[float] | None, expected: dict[str, int]
):
    result = capacity(a_cluster_of("a"), workload, kinds, costs=costs)
    plan = result.without_preemption
    assert found(plan) == expected
    assert plan is not None
    assert plan.is_proven
    assert result.suffices
    assert [trial.unplaced > 0 for trial in plan.one_fewer] == [True] * sum(count > 0 for count in expected.values())


def test_waiting_may_be_allowed():
    workload = [arriving(0.0, f"j{number}", seconds=60.0) for number in range(9)]
    assert found(capacity(a_cluster_of("a"), workload, [BIG], max_wait=10_000.0).without_preemption) == {BIG: 0}


def test_a_result_without_proof_is_marked():
    result = capacity(a_cluster_of("a"), pods(16, "10m", labels={"app": "web"}, affinity=apart), [BIG], proofs=0)
    plan = result.without_preemption
    assert plan is not None
    assert (plan.trial.nodes, plan.is_proven, plan.one_fewer[0].unplaced) == ({BIG: 15}, False, 1)


def test_preemption_saves_nodes():
    cluster = a_cluster_of("a", cpu="4", pods=(a_pod("batch", uid="b", cpu="4", node="a", priority=-10),))
    result = capacity(cluster, pods(4), [SMALL])
    assert (found(result.without_preemption), found(result.with_preemption)) == ({SMALL: 2}, {SMALL: 0})
    assert result.with_preemption is not None
    assert result.with_preemption.trial.evicted == ["default/batch"]


def test_without_priorities_preemption_is_not_tried():
    result = capacity(a_cluster_of("a"), pods(4), [SMALL])
    assert result.with_preemption is result.without_preemption


def test_a_pod_that_no_kind_can_run_is_named_at_once():
    result = capacity(a_cluster_of("a"), [*pods(2), arriving(0.0, "huge", cpu="64")], [SMALL, BIG])
    assert [(pod.pod, pod.message) for pod in result.impossible] == [
        ("default/huge", "0/3 nodes are available: 3 Insufficient cpu.")
    ]
    assert (result.without_preemption, result.suffices) == (None, False)


def test_a_pod_that_fits_on_no_kind_may_fit_into_the_cluster():
    cluster = a_cluster_of("a", cpu="64")
    assert capacity(cluster, [arriving(0.0, "huge", cpu="64")], [SMALL]).suffices
    result = capacity(cluster, pods(2, "40"), [SMALL])
    assert ([pod.pod for pod in result.unfit], result.impossible, result.suffices) == (["default/p0"], [], False)
    assert result.without_preemption is not None
    assert result.without_preemption.runs == 1


def test_a_pod_may_need_another_of_the_workload():
    near = pod_rules(near=[a_term({"app": "db"}, "kubernetes.io/hostname")])
    workload = [arriving(0.0, "db", labels={"app": "db"}), arriving(0.0, "web", affinity=near)]
    assert found(capacity(a_cluster_of("a", cpu="1"), workload, [SMALL]).without_preemption) == {SMALL: 1}


def test_what_cannot_be_placed_by_more_nodes_is_reported_with_its_reason():
    spread = [a_constraint("zone", labels={"app": "web"})]
    cluster = Cluster([a_node_object("a", cpu="1", labels={"zone": "a"})])
    result = capacity(cluster, pods(3, labels={"app": "web"}, spread=spread), [SMALL])
    assert result.without_preemption is not None
    [*_, last] = result.without_preemption.trial.examples
    assert (result.suffices, result.impossible) == (False, [])
    assert "node(s) didn't match pod topology spread constraints" in last.message


def test_pending_pods_of_the_cluster_are_placed_on_demand():
    cluster = a_cluster_of("a", pods=(a_pod("waiting", uid="w", cpu="2"),))
    assert found(capacity(cluster, [], [SMALL], pending=True).without_preemption) == {SMALL: 1}
    with pytest.raises(OperatorMistake, match="no pod to place"):
        capacity(cluster, [], [SMALL])


DAEMON = {
    "apiVersion": "apps/v1",
    "kind": "DaemonSet",
    "metadata": {"name": "agent", "namespace": "default", "uid": "agent"},
    "spec": {
        "selector": {"matchLabels": {"app": "agent"}},
        "template": {
            "metadata": {"labels": {"app": "agent"}},
            "spec": {"containers": [{"name": "agent", "resources": {"requests": {"cpu": "1"}}}]},
        },
    },
}


def test_daemons_take_their_share_of_new_nodes():
    cluster = Cluster([a_node_object("a", cpu="1")], documents={("apps/v1", "DaemonSet"): [DAEMON]})
    assert found(capacity(cluster, pods(3), [SMALL]).without_preemption) == {SMALL: 2}


def test_daemons_are_like_those_that_run():
    running = a_pod("agent-x", uid="x", cpu="2", node="a")
    force_setattr(
        running.metadata,
        "owner_references",
        (OwnerReference(kind="DaemonSet", name="agent", uid="agent", controller=True),),
    )
    cluster = Cluster([a_node_object("a", cpu="2")], [running], documents={("apps/v1", "DaemonSet"): [DAEMON]})
    result = capacity(cluster, pods(1), [SMALL])
    assert result.unfit


TEMPLATE = """
apiVersion: mooring.dev/v1alpha1
kind: SimulatedNodes
labels: {disk: ssd}
taints: [{key: gpu, effect: NoSchedule}]
allocatable: {cpu: "2"}
"""


def added(text: str, cluster: Cluster, count: int = 1) -> list[Node]:
    return list(read_node_kind(text, cluster).added_to(cluster, count).nodes[len(cluster.nodes) :])


def in_zone(name: str, zone: str, **more: Any) -> Node:
    labels = {"topology.kubernetes.io/zone": zone, "topology.kubernetes.io/region": "eu"}
    return a_node_object(name, labels=labels, **more)


def test_kinds_of_resources_are_in_the_zones_of_the_cluster():
    cluster = Cluster([in_zone("a", "z2"), in_zone("b", "z1")])
    nodes = added(SMALL, cluster, 3)
    assert [node.labels["topology.kubernetes.io/zone"] for node in nodes] == ["z1", "z2", "z1"]
    assert [node.labels["kubernetes.io/hostname"] for node in nodes] == [node.name for node in nodes]
    assert {node.labels["topology.kubernetes.io/region"] for node in nodes} == {"eu"}
    assert nodes[0].status.allocatable["cpu"] == "2"
    [node] = added(f"{SMALL},zone=z2", cluster)
    assert node.labels["topology.kubernetes.io/zone"] == "z2"


def test_kinds_of_files(tmp_path: Path):
    (tmp_path / "gpu.yaml").write_text(TEMPLATE)
    [node] = added(str(tmp_path / "gpu.yaml"), a_cluster_of("a"))
    assert (node.name, node.labels["disk"], node.spec.taints[0].key) == ("gpu-new-1", "ssd", "gpu")


def test_kinds_like_a_node_are_healthy_and_new():
    csi = {"apiVersion": "storage.k8s.io/v1", "kind": "CSINode", "metadata": {"name": "a"}, "spec": {"drivers": []}}
    device = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": "a-gpus"},
        "spec": {"nodeName": "a", "pool": {"name": "a"}, "driver": "gpu.example.com"},
    }
    taints = [a_taint("node.kubernetes.io/unschedulable:NoSchedule"), a_taint("gpu:NoSchedule")]
    cluster = Cluster(
        [a_node_object("a", taints=taints, unschedulable=True, images={"nginx": 1})],
        documents={("storage.k8s.io/v1", "CSINode"): [csi], ("resource.k8s.io/v1", "ResourceSlice"): [device]},
    )
    larger = read_node_kind("like:a", cluster).added_to(cluster, 2)
    node = larger.nodes[1]
    assert (node.name, node.spec.unschedulable, node.status.images) == ("a-new-1", False, ())
    assert [taint.key for taint in node.spec.taints] == ["gpu"]
    names = ["a", "a-new-1", "a-new-2"]
    assert [each["metadata"]["name"] for each in larger.documents["storage.k8s.io/v1", "CSINode"]] == names
    slices = larger.documents["resource.k8s.io/v1", "ResourceSlice"]
    assert [(each["spec"]["nodeName"], each["spec"]["pool"]["name"]) for each in slices] == [
        (name, name) for name in names
    ]


MISTAKES = {
    "an unknown node": ("like:b", 'no node "b"'),
    "an unknown resource": ("cpu=1,memory=1Gi,mem=1", "no resource of nodes"),
    "no amount": ("cpu=,memory=1Gi", "must be RESOURCE=AMOUNT"),
    "no memory": ("cpu=1", "memory"),
    "no quantity": ("cpu=1,memory=lots", "must be a quantity"),
    "no file": ("gone.yaml", "cannot be read"),
}


@pytest.mark.parametrize(("text", "message"), MISTAKES.values(), ids=MISTAKES.keys())
def test_bad_kinds(text: str, message: str):
    with pytest.raises(OperatorMistake, match=message):
        read_node_kind(text, a_cluster_of("a"))


def test_bad_costs():
    with pytest.raises(OperatorMistake, match="2 kinds of nodes and 1 costs"):
        capacity(a_cluster_of("a"), pods(1), [SMALL, BIG], costs=[1.0])
    with pytest.raises(OperatorMistake, match="greater than 0"):
        capacity(a_cluster_of("a"), pods(1), [SMALL], costs=[0.0])
    with pytest.raises(OperatorMistake, match="given twice"):
        capacity(a_cluster_of("a"), pods(1), [SMALL, SMALL])
