"""How many pods fit, on which nodes, and what limits them."""

from __future__ import annotations

from pathlib import Path

import pytest

from mooring.base.errors import OperatorMistake
from mooring.framework import Cycle, NodeView, Plugin, Pod, Rejection
from mooring.objects import Node
from mooring.simulator import Cluster, FitResult, fit, profile
from mooring.simulator.planning.pod_manifests import pod_manifest
from mooring.testing import a_node_object, a_pod, a_taint
from mooring.testing.builders import a_constraint, a_term, a_toleration, pod_rules

LARGE, SMALL = a_node_object("large", cpu="4"), a_node_object("small", cpu="2")
TAINTED = a_node_object("tainted", cpu="4", taints=[a_taint("gpu:NoSchedule")])
FULL = a_node_object("full", cpu="4", pods=1)
apart = pod_rules(away=[a_term({"app": "web"}, "kubernetes.io/hostname")])


def in_zone(name: str, zone: str, cpu: str) -> Node:
    return a_node_object(name, cpu=cpu, labels={"zone": zone})


CASES = {
    "cpu limits on every node": (
        [LARGE, SMALL],
        a_pod("web", cpu="1500m"),
        {"large": 2, "small": 1},
        [("Insufficient cpu", 2, 2, "cpu", 1500, 1000, "large")],
    ),
    "a taint keeps pods away": (
        [SMALL, TAINTED],
        a_pod("web", cpu="2"),
        {"small": 1},
        [("Insufficient cpu", 1, 1, "cpu", 2000, 0, "small"), ("node(s) had untolerated taint(s)", 1, 1)],
    ),
    "which is tolerated": (
        [SMALL, TAINTED],
        a_pod("web", cpu="2", tolerations=[a_toleration("gpu:NoSchedule")]),
        {"tainted": 2, "small": 1},
        [("Insufficient cpu", 2, 2, "cpu", 2000, 0, "small")],
    ),
    "a node may run no more pods": (
        [FULL],
        a_pod("web"),
        {"full": 1},
        [("Too many pods", 1, 1, "pods", 1, 0, "full")],
    ),
    "two resources are short": (
        [a_node_object("n", cpu="1", memory="1Gi")],
        a_pod("web", cpu="1", memory="1Gi"),
        {"n": 1},
        [("Insufficient cpu", 1, 0, "cpu", 1000, 0, "n"), ("Insufficient memory", 1, 0, "memory", 1 << 30, 0, "n")],
    ),
    "anti-affinity: one on each node": (
        [LARGE, SMALL],
        a_pod("web", labels={"app": "web"}, affinity=apart),
        {"large": 1, "small": 1},
        [("node(s) didn't match pod anti-affinity rules", 2, 2)],
    ),
    "spread: the small zone limits": (
        [in_zone("a", "a", "1"), in_zone("b", "b", "8")],
        a_pod("web", cpu="1", labels={"app": "web"}, spread=[a_constraint("zone", labels={"app": "web"})]),
        {"b": 2, "a": 1},
        [
            ("Insufficient cpu", 1, 1, "cpu", 1000, 0, "a"),
            ("node(s) didn't match pod topology spread constraints", 1, 1),
        ],
    ),
    "a host port is taken once": (
        [LARGE],
        a_pod("web", ports=[80]),
        {"large": 1},
        [("node(s) didn't have free ports for the requested pod ports", 1, 1)],
    ),
    "no node has the labels": (
        [LARGE],
        a_pod("web", node_selector={"disk": "ssd"}),
        {},
        [("node(s) didn't match Pod's node affinity/selector", 1, 1)],
    ),
}


@pytest.mark.parametrize(("nodes", "pod", "taken", "limits"), CASES.values(), ids=CASES.keys())
def test_pods_fit(nodes: list[Node], pod: Pod, taken: dict[str, int], limits: list[tuple[object, ...]]):
    result = fit(Cluster(nodes), pod)
    assert (result.nodes, result.fits) == (taken, sum(taken.values()))
    assert [
        (limit.reason, limit.nodes, limit.only_reason)
        + ((limit.resource, limit.requested, limit.most_free, limit.most_free_on) if limit.resource else ())
        for limit in result.limits
    ] == limits
    assert result.dominant == result.limits[0]
    assert result.message.startswith(f"0/{len(nodes)} nodes are available: ")


def test_pods_of_the_cluster_count():
    running = a_pod("web-1", cpu="1", node="small", uid="u")
    result = fit(Cluster([SMALL], [running]), a_pod("web", cpu="500m"))
    assert result.fits == 2


def test_pending_pods_of_the_cluster_come_first():
    result = fit(Cluster([SMALL], [a_pod("waiting", cpu="1", uid="u")]), a_pod("web", cpu="1"))
    assert result.fits == 1


def test_no_more_than_a_number_is_tried():
    result = fit(Cluster([LARGE]), a_pod("web", cpu="1"), count=3)
    assert (result.fits, result.is_limited, result.limits) == (3, False, [])
    assert fit(Cluster([LARGE]), a_pod("web", cpu="1"), count=5).fits == 4


def test_evictions_make_no_room_but_are_reported():
    running = a_pod("batch", cpu="4", node="large", uid="u", priority=-1)
    result = fit(Cluster([LARGE], [running]), a_pod("web", cpu="1", priority=10))
    assert (result.fits, result.would_preempt, result.would_preempt_on) == (0, ["default/batch"], "large")


class OnlyLarge(Plugin):
    """Rejects all other nodes."""

    def filter(self, pod: Pod, node: NodeView, cycle: Cycle) -> Rejection | None:
        return None if node.name == "large" else Rejection("node(s) are not large")


class InPairs(Plugin):
    """Permits no pod."""

    def permit(self, pod: Pod, node: NodeView, cycle: Cycle) -> Rejection:
        return Rejection("waits for its pair")


def plugged(plugin: type[Plugin], count: int | None = None) -> FitResult:
    return fit(Cluster([LARGE, SMALL]), a_pod("web", cpu="2"), profile(enable=[plugin]), count=count)


def test_plugins_of_the_configuration_take_part():
    result = plugged(OnlyLarge)
    assert (result.nodes, [limit.reason for limit in result.limits]) == (
        {"large": 2},
        ["Insufficient cpu", "node(s) are not large"],
    )


def test_a_pod_that_is_not_permitted_does_not_fit():
    result = plugged(InPairs, 1)
    assert (result.fits, result.is_limited) == (0, True)
    assert "waits for its pair" in result.message


def test_a_pod_of_another_scheduler_is_refused():
    with pytest.raises(OperatorMistake, match='No profile serves schedulerName "other"'):
        fit(Cluster([LARGE]), a_pod("web", scheduler="other"))


DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, NAMED}
spec:
  replicas: 0
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: app, image: nginx, resources: {requests: {cpu: 2}}}]}
"""
POD = """
apiVersion: v1
kind: Pod
metadata: {name: web, uid: u, resourceVersion: "7", creationTimestamp: "2026-01-01T00:00:00Z"}
spec: {nodeName: large, containers: [{name: app, image: nginx, resources: {requests: {cpu: 2}}}]}
status: {phase: Running}
"""
MANIFESTS = {
    "an owner, whatever its replicas": DEPLOYMENT.replace(", NAMED", ""),
    "one that an API server wrote": DEPLOYMENT.replace("NAMED", "uid: u"),
    "a pod that runs": POD,
    "with a class of its own": POD.replace("spec: {", "spec: {priorityClassName: high, ")
    + "---\n{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: high}, value: 7}\n",
}


@pytest.mark.parametrize("text", MANIFESTS.values(), ids=MANIFESTS.keys())
def test_manifests(tmp_path: Path, text: str):
    (tmp_path / "web.yaml").write_text(text)
    result = fit(Cluster([LARGE], [a_pod("web-1", uid="x", node="large")]), tmp_path / "web.yaml")
    assert (result.pod, result.fits) == ("default/web", 2)


MISTAKES = {
    "nothing that makes pods": ("{apiVersion: v1, kind: Namespace, metadata: {name: it}}", "has no pod"),
    "two pods": (POD + "---" + DEPLOYMENT.replace(", NAMED", ""), "has 2 objects that make pods"),
    "a node": ("{apiVersion: v1, kind: Node, metadata: {name: it}}", "has nodes"),
    "a DaemonSet": ("{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: d}, spec: {}}", "is not simulated"),
    "an invalid pod": ("{apiVersion: v1, kind: Pod, metadata: {name: it}, spec: {}}", "spec.containers"),
    "a gated pod": (
        POD.replace("spec: {", "spec: {schedulingGates: [{name: example.com/quota}], "),
        "example.com/quota",
    ),
}


@pytest.mark.parametrize(("text", "message"), MISTAKES.values(), ids=MISTAKES.keys())
def test_bad_manifests(text: str, message: str):
    with pytest.raises(OperatorMistake, match=message):
        pod_manifest(text, "it.yaml", Cluster([LARGE]))
