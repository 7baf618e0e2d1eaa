"""Whether nodes can go: where their pods would run, and what objects."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from msgspec.structs import force_setattr

from mooring.base.clock import timestamp
from mooring.base.errors import OperatorMistake
from mooring.framework.gates import read_gates
from mooring.objects import OwnerReference, Pod
from mooring.objects.core import PodCondition, PodStatus
from mooring.objects.meta import ObjectMeta
from mooring.objects.policy import PodDisruptionBudget, PodDisruptionBudgetSpec, PodDisruptionBudgetStatus
from mooring.objects.selectors import LabelSelector
from mooring.simulator import Cluster, drain_check
from mooring.simulator.planning.budgets import SEVERAL
from mooring.simulator.planning.drain import DAEMON, LOCAL_STORAGE, NO_CONTROLLER, STATIC
from mooring.testing import a_node_object, a_pod, a_pod_group
from mooring.testing.builders import a_constraint


def owned(name: str, node: str, *, kind: str = "ReplicaSet", cpu: str = "1", ready: bool = True, **more: Any) -> Pod:
    """A running pod of a controller."""
    pod = a_pod(name, uid=name, node=node, cpu=cpu, labels={"app": "web"}, **more)
    if kind:
        force_setattr(
            pod.metadata, "owner_references", (OwnerReference(kind=kind, name="web", uid="w", controller=True),)
        )
    force_setattr(
        pod, "status", PodStatus(phase="Running", conditions=(PodCondition(type="Ready", status=str(ready)),))
    )
    return pod


def with_scratch(pod: Pod) -> Pod:
    force_setattr(pod.spec, "_volumes", ({"name": "scratch", "emptyDir": {}},))
    return pod


def a_cluster(*pods: Pod, nodes: Sequence[str] = ("a", "b"), **more: Any) -> Cluster:
    return Cluster([a_node_object(name, cpu="2") for name in nodes], pods, **more)


def a_budget(name: str, allowed: int) -> PodDisruptionBudget:
    return PodDisruptionBudget(
        metadata=ObjectMeta(name=name, namespace="default", uid=name),
        spec=PodDisruptionBudgetSpec(selector=LabelSelector(match_labels={"app": "web"})),
        status=PodDisruptionBudgetStatus(disruptions_allowed=allowed),
    )


POD_CASES: dict[str, tuple[Pod, dict[str, bool], tuple[str, str | None, str]]] = {
    "a pod of a controller moves": (owned("p", "a"), {}, ("moves", "b", "")),
    "a pod of a DaemonSet stays": (owned("p", "a", kind="DaemonSet"), {}, ("stays", None, "")),
    "a mirror pod stays": (
        owned("p", "a", kind="", annotations={"kubernetes.io/config.mirror": "x"}),
        {},
        ("stays", None, ""),
    ),
    "so does a pod of a node": (owned("p", "a", kind="Node"), {}, ("stays", None, "")),
    "a pod without a controller is in the way": (owned("p", "a", kind=""), {}, ("deleted", None, NO_CONTROLLER)),
    "unless that is forced": (owned("p", "a", kind=""), {"force": True}, ("deleted", None, "")),
    "a pod with local storage is in the way": (with_scratch(owned("p", "a")), {}, ("moves", "b", LOCAL_STORAGE)),
    "unless its data may go": (
        with_scratch(owned("p", "a")),
        {"delete_emptydir_data": True},
        ("moves", "b", ""),
    ),
    "local storage is reported before a missing controller": (
        with_scratch(owned("p", "a", kind="")),
        {},
        ("deleted", None, LOCAL_STORAGE),
    ),
    "a pod that is too large for the rest is pending": (
        owned("p", "a", cpu="1", node_selector={"kubernetes.io/hostname": "a"}),
        {},
        ("pending", None, ""),
    ),
}


@pytest.mark.parametrize(("pod", "flags", "expected"), POD_CASES.values(), ids=POD_CASES.keys())
def test_a_pod(pod: Pod, flags: dict[str, bool], expected: tuple[str, str | None, str]):
    result = drain_check(a_cluster(pod), ["a"], **flags)  # type: ignore[arg-type]
    [drained] = result.pods
    assert (drained.fate, drained.target, drained.objection) == expected
    assert result.is_possible == (not drained.objection and drained.fate != "pending")


def test_why_pods_stay_is_stated():
    result = drain_check(a_cluster(owned("d", "a", kind="DaemonSet"), owned("s", "a", kind="Node")), ["a"])
    assert [pod.message for pod in result.pods] == [DAEMON, STATIC]


def test_a_pending_pod_has_the_words_of_the_scheduler():
    result = drain_check(a_cluster(owned("p", "a", cpu="2"), owned("q", "b", cpu="2")), ["a"])
    [pod] = result.pending
    assert pod.message.startswith("0/2 nodes are available: 1 Insufficient cpu, 1 node(s) were unschedulable.")


def test_pods_of_several_nodes_compete_and_one_node_alone_could_go():
    pods = [owned("p", "a", cpu="2"), owned("q", "b", cpu="2")]
    result = drain_check(a_cluster(*pods, nodes=("a", "b", "c")), ["a", "b"])
    assert [(pod.pod, pod.target) for pod in result.pods] == [("default/p", "c"), ("default/q", None)]
    assert result.alone == {"a": 0, "b": 0}


def test_a_cordoned_node_is_a_domain_of_spread_until_it_is_gone():
    spread = [a_constraint("kubernetes.io/hostname", labels={"app": "web"})]
    pods = [owned("p", "a", spread=spread), owned("q", "b", spread=spread), owned("r", "b", spread=spread)]
    cluster = a_cluster(*pods, nodes=("a", "b", "c"))
    result = drain_check(cluster, ["b"])
    placed = {pod.pod: (pod.target, pod.target_once_gone) for pod in result.pods}
    assert placed == {"default/q": ("c", None), "default/r": (None, "a")}


def test_preemption_for_moved_pods_is_in_the_way():
    pods = [owned("p", "a", cpu="2", priority=10), owned("q", "b", cpu="2", priority=0)]
    result = drain_check(a_cluster(*pods), ["a"])
    assert (result.evicted, result.is_possible) == (["default/q"], False)


BUDGETS = {
    "enough are allowed": ([a_budget("web", 2)], [("default/web", 2, 0, False)], True),
    "one must wait": ([a_budget("web", 1)], [("default/web", 2, 1, False)], True),
    "none is allowed": ([a_budget("web", 0)], [("default/web", 2, 2, True)], False),
    "two budgets for a pod": ([a_budget("web", 2), a_budget("all", 2)], [], False),
}


@pytest.mark.parametrize(("budgets", "checked", "is_possible"), BUDGETS.values(), ids=BUDGETS.keys())
def test_budgets(budgets: list[PodDisruptionBudget], checked: list[tuple[object, ...]], is_possible: bool):
    cluster = a_cluster(owned("p", "a"), owned("q", "a"), objects=budgets)
    result = drain_check(cluster, ["a"])
    found = [(each.budget, len(each.pods), each.must_wait, each.objects) for each in result.budgets]
    assert (found, result.is_possible) == (checked, is_possible)
    assert {pod.objection for pod in result.pods} == ({SEVERAL} if len(budgets) > 1 else {""})


def a_budget_document(**fields: Any) -> dict[Any, Any]:
    metadata = {"name": "web", "namespace": "default", "uid": "web", "generation": 1}
    selector = {"matchLabels": {"app": "web"}}
    spec = {"selector": selector, **fields.pop("spec", {})}
    document = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": metadata, "spec": spec, **fields}
    return {("policy/v1", "PodDisruptionBudget"): [document]}


COUNTED = {"observedGeneration": 1, "disruptionsAllowed": 0, "desiredHealthy": 1, "currentHealthy": 1}
DOCUMENTS: dict[str, tuple[dict[Any, Any], bool, int | None]] = {
    "no controller has counted: pods on nodes are healthy": (a_budget_document(spec={"minAvailable": 1}), True, 1),
    "also by a share": (a_budget_document(spec={"maxUnavailable": "50%"}), True, 1),
    "which may allow none": (a_budget_document(spec={"minAvailable": "100%"}), True, 0),
    "a counted one": (a_budget_document(status=COUNTED), True, 0),
    "a pod that is not ready may go where enough others are": (a_budget_document(status=COUNTED), False, None),
    "or by the policy": (
        a_budget_document(status={**COUNTED, "currentHealthy": 0}, spec={"unhealthyPodEvictionPolicy": "AlwaysAllow"}),
        False,
        None,
    ),
    "else it counts": (a_budget_document(status={**COUNTED, "currentHealthy": 0}), False, 0),
}


@pytest.mark.parametrize(("documents", "ready", "allowed"), DOCUMENTS.values(), ids=DOCUMENTS.keys())
def test_budgets_of_documents(documents: dict[Any, Any], ready: bool, allowed: int | None):
    cluster = a_cluster(owned("p", "a", ready=ready), owned("q", "b"), documents=documents)
    budgets = drain_check(cluster, ["a"]).budgets
    assert [budget.disruptions_allowed for budget in budgets] == ([] if allowed is None else [allowed])


def test_a_pod_that_is_being_deleted_is_not_created_again():
    pod = owned("p", "a")
    force_setattr(pod, "metadata", msgspec.structs.replace(pod.metadata, deletion_timestamp="2026-01-01T00:00:00Z"))
    [drained] = drain_check(a_cluster(pod, objects=[a_budget("web", 0)]), ["a"]).pods
    assert (drained.fate, drained.objection) == ("deleted", "")


def test_unknown_nodes_are_named_all_at_once():
    with pytest.raises(OperatorMistake, match=r"(?s)2 problems.*aa.*Did you mean \"a\".*zz"):
        drain_check(a_cluster(), ["aa", "zz"])


def test_a_gang_that_runs_is_not_taken_for_one_that_a_crash_left():
    """Its drained pod fits nowhere, and is created again without a time of creation: the others stay."""
    gang = [owned(f"gang-{at}", "ab"[at // 2], group="gang", created=2e9 - 90) for at in range(4)]
    for pod in gang:
        force_setattr(pod.status, "start_time", timestamp(2e9))
    cluster = a_cluster(*gang, objects=[a_pod_group("gang", min_count=4)])
    gates = read_gates(["GenericWorkload=true", "GangScheduling=true"]).gates
    result = drain_check(cluster, ["b"], gates=gates)
    assert [pod.fate for pod in result.pods] == ["pending", "pending"]
    assert result.evicted == []
