"""Which pods a proposal deletes: none that its controller brings back into the way, and none of the pod's own kin."""

from __future__ import annotations

from typing import Any

import pytest
from tests.why.clusters import owned, recomputing

from mooring.framework import Pod
from mooring.objects import Node
from mooring.objects.meta import ObjectMeta
from mooring.objects.policy import PodDisruptionBudget, PodDisruptionBudgetSpec, PodDisruptionBudgetStatus
from mooring.objects.selectors import LabelSelector
from mooring.plugins.community.capacity_scheduling.quotas import ElasticQuota
from mooring.plugins.community.coscheduling.pod_groups import GROUP_LABEL
from mooring.testing import a_node_object, a_pod
from mooring.why import recomputed

FULL = [a_node_object("full", cpu="4")]
ROOM = [*FULL, a_node_object("large", cpu="64")]
CAPACITY = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins:
    multiPoint: {enabled: [{name: CapacityScheduling}], disabled: [{name: DefaultPreemption}]}
"""

CASES: dict[str, tuple[list[Node], list[Pod], Pod, list[str]]] = {
    "a pod that nothing creates again": (
        FULL,
        [a_pod("old", cpu="4", node="full")],
        a_pod("new", cpu="4"),
        ["delete default/old"],
    ),
    "a pod of the same ReplicaSet is no help": (
        FULL,
        [owned(a_pod("web-1", cpu="4", node="full"), "ReplicaSet", "web")],
        owned(a_pod("web-2", cpu="4"), "ReplicaSet", "web"),
        [],
    ),
    "nor one of the same Deployment, in a rollout": (
        FULL,
        [owned(a_pod("web-1", cpu="4", node="full", labels={"pod-template-hash": "5d"}), "ReplicaSet", "web-5d")],
        owned(a_pod("web-2", cpu="4", labels={"pod-template-hash": "6e"}), "ReplicaSet", "web-6e"),
        [],
    ),
    "a pod of the same name in another namespace is another's": (
        FULL,
        [owned(a_pod("web-1", namespace="shop", cpu="4", node="full", priority=-1), "ReplicaSet", "web")],
        owned(a_pod("web-2", cpu="4"), "ReplicaSet", "web"),
        ["delete shop/web-1; ReplicaSet/web creates the pod again, which then waits"],
    ),
    "nor one that would take its place again": (
        FULL,
        [owned(a_pod("db", cpu="4", node="full"), "StatefulSet", "db")],
        a_pod("new", cpu="4"),
        [],
    ),
    "one that goes elsewhere when it is created again": (
        ROOM,
        [owned(a_pod("small", cpu="2", node="full"), "ReplicaSet", "small")],
        a_pod("new", cpu="3", node_selector={"kubernetes.io/hostname": "full"}),
        ["delete default/small; ReplicaSet/small creates the pod again, which then goes to large"],
    ),
    "one of lower priority, which then waits": (
        FULL,
        [owned(a_pod("batch", cpu="4", node="full", priority=-5), "Job", "batch")],
        a_pod("new", cpu="4"),
        ["delete default/batch; Job/batch creates the pod again, which then waits"],
    ),
    "one that nothing creates again, where the others would come back": (
        FULL,
        [
            owned(a_pod("db", cpu="2", node="full"), "StatefulSet", "db"),
            a_pod("old", cpu="2", node="full"),
        ],
        a_pod("new", cpu="2"),
        ["delete default/old"],
    ),
    "a pod of the same group is no help": (
        FULL,
        [a_pod("rank-1", cpu="4", node="full", group="train")],
        a_pod("rank-2", cpu="4", group="train"),
        [],
    ),
    "nor of the same group of Coscheduling": (
        FULL,
        [a_pod("rank-1", cpu="4", node="full", labels={GROUP_LABEL: "train"})],
        a_pod("rank-2", cpu="4", labels={GROUP_LABEL: "train"}),
        [],
    ),
    "a pod that the cluster needs stays": (
        FULL,
        [a_pod("dns", cpu="4", node="full", priority=2_000_000_000)],
        a_pod("new", cpu="4", priority=2_000_000_001),
        [],
    ),
}


def deletions(nodes: list[Node], pods: list[Pod], pod: Pod, **more: Any) -> list[str]:
    with recomputing(nodes, [*pods, pod], **more) as recomputation:
        changes = [change for miss in recomputed(recomputation, pod)["nearest"] for change in miss["changes"]]
    return [in_words(change) for change in changes if change["change"].startswith("delete ")]


def in_words(change: dict[str, Any]) -> str:
    from mooring.explain.recomputed_words import created_again

    return "; ".join([change["change"], *map(created_again, change.get("createdAgain", ()))])


@pytest.mark.parametrize(("nodes", "pods", "pod", "expected"), CASES.values(), ids=CASES.keys())
def test_which_deletions_are_proposed(nodes: list[Node], pods: list[Pod], pod: Pod, expected: list[str]):
    assert deletions(nodes, pods, pod) == expected


def test_a_pod_of_the_same_quota_is_no_help():
    quotas = [ElasticQuota(metadata=ObjectMeta(name="team", namespace="default", uid="q"))]
    pods = [a_pod("old", cpu="4", node="full"), a_pod("theirs", namespace="lab", cpu="100m", node="full")]
    assert deletions(FULL, pods, a_pod("new", cpu="4"), configuration=CAPACITY, objects=quotas) == []
    assert deletions(FULL, pods[:1], a_pod("new", cpu="4"), configuration=CAPACITY) == ["delete default/old"]


@pytest.mark.parametrize(("allowed", "expected"), [(0, []), (1, ["delete default/old"])])
def test_a_pod_that_a_disruption_budget_protects_stays(allowed: int, expected: list[str]):
    budget = PodDisruptionBudget(
        metadata=ObjectMeta(name="old", namespace="default", uid="b"),
        spec=PodDisruptionBudgetSpec(selector=LabelSelector(match_labels={"app": "old"})),
        status=PodDisruptionBudgetStatus(disruptions_allowed=allowed),
    )
    old = a_pod("old", cpu="4", node="full", labels={"app": "old"})
    assert deletions(FULL, [old], a_pod("new", cpu="4"), objects=[budget]) == expected
