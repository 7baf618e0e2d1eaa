"""PodDisruptionBudgets: how many evictions they allow, why, and what happens after evictions without a deletion."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest
from tests.simulated.builders import NOW, a_pod
from tests.simulated.conftest import DEPLOYMENT, POD, Bench, deployment_document, pod_document

from mooring.base.clock import ManualClock, timestamp
from mooring.base.errors import ApiError
from mooring.objects.meta import Kind
from mooring.simulated.controllers.disruption_budgets import (
    DELETION_TIMEOUT_SECONDS,
    UnknownScale,
    budget_status,
    expected_and_desired,
    failed_status,
    overdue,
    seconds_until_overdue,
    still_expected,
)
from mooring.simulated.controllers.workload_records import DaemonSet, ReplicaSet, StatefulSet
from mooring.simulated.records import BudgetRecord, PodRecord

BUDGET = BudgetRecord.KIND


def a_budget(generation: int = 1, status: dict[str, Any] | None = None, **spec: Any) -> BudgetRecord:
    metadata = {"name": "web", "namespace": "default", "uid": "uid-budget", "generation": generation}
    return msgspec.convert({"metadata": metadata, "spec": spec, "status": status or {}}, BudgetRecord)


def pods(*states: str) -> list[PodRecord]:
    return [
        a_pod(f"web-{number}", ready=state != "unready", terminating=state == "terminating")
        for number, state in enumerate(states)
    ]


READY = ("ready",)
COUNTS: dict[str, tuple[dict[str, Any], tuple[str, ...], int, tuple[int, int, int, int]]] = {
    # the spec, the pods, the scale of their controllers: expected, desired, healthy, allowed
    "a number of pods that must stay": ({"minAvailable": 2}, READY * 3, 0, (3, 2, 3, 1)),
    "a number counts pods, not what controllers want": ({"minAvailable": 1}, READY * 2, 9, (2, 1, 2, 1)),
    "no more than must stay": ({"minAvailable": 3}, READY * 3, 0, (3, 3, 3, 0)),
    "fewer than must stay": ({"minAvailable": 5}, READY * 3, 0, (3, 5, 3, 0)),
    "none has to stay": ({"minAvailable": 0}, READY * 2, 0, (2, 0, 2, 2)),
    "a part that must stay, rounded up": ({"minAvailable": "50%"}, READY * 3, 3, (3, 2, 3, 1)),
    "a part of what controllers want, not of the pods": ({"minAvailable": "50%"}, READY * 3, 10, (10, 5, 3, 0)),
    "all must stay": ({"minAvailable": "100%"}, READY * 3, 3, (3, 3, 3, 0)),
    "a number that may go": ({"maxUnavailable": 1}, READY * 3, 3, (3, 2, 3, 1)),
    "one is missing already": ({"maxUnavailable": 1}, READY * 2, 3, (3, 2, 2, 0)),
    "more may go than there are": ({"maxUnavailable": 7}, READY * 3, 3, (3, 0, 3, 3)),
    "a part that may go, rounded up": ({"maxUnavailable": "34%"}, READY * 3, 3, (3, 1, 3, 2)),
    "none may go": ({"maxUnavailable": 0}, READY * 3, 3, (3, 3, 3, 0)),
    "pods that are not ready": ({"minAvailable": 1}, (*READY * 2, "unready"), 0, (3, 1, 2, 1)),
    "pods that are being deleted": ({"minAvailable": 1}, (*READY * 2, "terminating"), 0, (3, 1, 2, 1)),
    "no pods": ({"minAvailable": 0}, (), 0, (0, 0, 0, 0)),
    "pods without controllers, relative": ({"maxUnavailable": 1}, READY * 2, 0, (0, 0, 2, 0)),
    "neither field": ({}, READY * 2, 0, (0, 0, 2, 0)),
}


@pytest.mark.parametrize(("spec", "states", "scale", "counts"), COUNTS.values(), ids=COUNTS.keys())
def test_what_a_budget_allows(spec, states, scale, counts):
    status = budget_status(a_budget(7, **spec), pods(*states), scale, NOW)
    names = ("expectedPods", "desiredHealthy", "currentHealthy", "disruptionsAllowed")
    assert tuple(status[name] for name in names) == counts
    assert status["observedGeneration"] == 7
    allows = counts[-1] > 0
    assert status["conditions"] == [
        {
            "type": "DisruptionAllowed",
            "status": "True" if allows else "False",
            "reason": "SufficientPods" if allows else "InsufficientPods",
            "message": "",
            "lastTransitionTime": timestamp(NOW),
            "observedGeneration": 7,
        }
    ]


@pytest.mark.parametrize("field", ["minAvailable", "maxUnavailable"])
def test_an_amount_that_is_no_percentage_names_its_field(field):
    spec: dict[str, Any] = {field: "many"}
    with pytest.raises(UnknownScale, match=rf"spec\.{field}"):
        expected_and_desired(a_budget(**spec), 3, 3)


def test_an_admitted_eviction_is_expected_to_delete_the_pod_for_two_minutes():
    since = timestamp(NOW)
    evicted = {"disruptedPods": {"web-0": since, "web-1": since, "gone": since}}
    budget = a_budget(minAvailable=1, status=evicted)
    living = pods("ready", "terminating", "ready")

    in_time = NOW + DELETION_TIMEOUT_SECONDS - 1
    assert still_expected(budget, living, in_time) == {"web-0": since}
    assert seconds_until_overdue({"web-0": since}, in_time) == 1.0
    assert overdue(budget, living, in_time) == []
    status = budget_status(budget, living, 0, in_time)
    assert (status["currentHealthy"], status["disruptionsAllowed"]) == (1, 0)
    assert status["disruptedPods"] == {"web-0": since, "web-1": None, "gone": None}

    late = in_time + 1
    assert still_expected(budget, living, late) == {}
    assert [pod.name for pod in overdue(budget, living, late)] == ["web-0"]
    status = budget_status(budget, living, 0, late)
    assert (status["currentHealthy"], status["disruptionsAllowed"], status["disruptedPods"]) == (2, 1, None)


def test_the_condition_keeps_its_time_while_its_status_stays_and_leaves_others_alone():
    other = {"type": "Mine", "status": "True"}
    before = budget_status(a_budget(minAvailable=1, status={"conditions": [other]}), pods("ready"), 0, NOW)
    budget = a_budget(minAvailable=1, status={"conditions": before["conditions"]})
    for after in (failed_status(budget, "why", NOW + 5), budget_status(budget, pods("unready"), 0, NOW + 5)):
        assert after["conditions"][0] == other
        assert after["conditions"][1]["lastTransitionTime"] == timestamp(NOW)
    turned = budget_status(budget, pods("ready", "ready"), 0, NOW + 5)
    assert turned["conditions"][1]["lastTransitionTime"] == timestamp(NOW + 5)


def test_a_budget_that_cannot_be_counted_allows_nothing():
    status = failed_status(a_budget(status={"disruptionsAllowed": 3, "observedGeneration": 1}), "why", NOW)
    assert status["disruptionsAllowed"] == 0
    assert {key: status["conditions"][0][key] for key in ("status", "reason", "message")} == {
        "status": "False",
        "reason": "SyncFailed",
        "message": "why",
    }


# In a cluster.


def counted(bench: Bench) -> dict[str, Any]:
    """The status of the budget once the controller has seen its spec; before that nothing."""
    budget = bench.seen.of("poddisruptionbudgets").get("default/web")
    if budget is None or budget.status.observed_generation < budget.metadata.generation:
        return {}
    status: dict[str, Any] = msgspec.to_builtins(budget.status)
    return status


def allowed(bench: Bench) -> int | None:
    status = counted(bench)
    return status.get("disruptionsAllowed", 0) if status else None


def why(bench: Bench) -> tuple[str, str]:
    budget = bench.seen.of("poddisruptionbudgets").get("default/web")
    conditions = budget.status.conditions if budget is not None else []
    return (conditions[0]["reason"], conditions[0]["message"]) if conditions else ("", "")


async def create_budget(bench: Bench, **spec: Any) -> None:
    spec = {"selector": {"matchLabels": {"app": "web"}}, **spec}
    await bench.client.create(BUDGET, {"metadata": {"name": "web"}, "spec": spec}, "default")


async def evict(bench: Bench, name: str) -> None:
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
    await bench.client.create(POD, body, "default", name=name, subresource="eviction")


WORKLOADS = {
    "a Deployment": (DEPLOYMENT, deployment_document()),
    "a ReplicaSet": (ReplicaSet.KIND, deployment_document()),
    "a StatefulSet": (StatefulSet.KIND, deployment_document(serviceName="web")),
}


@pytest.mark.parametrize(("kind", "workload"), WORKLOADS.values(), ids=WORKLOADS.keys())
async def test_the_replicas_of_the_controller_count(bench, kind, workload):
    await bench.start()
    await create_budget(bench, maxUnavailable="50%")
    await bench.client.create(kind, workload, "default")
    await bench.seen.until(lambda: allowed(bench) == 2)
    assert (counted(bench)["expectedPods"], counted(bench)["desiredHealthy"]) == (3, 1)
    assert why(bench) == ("SufficientPods", "")

    await bench.client.patch(kind, "web", "default", {"spec": {"replicas": 5}})
    await bench.seen.until(lambda: counted(bench).get("expectedPods") == 5 and allowed(bench) == 3)
    await bench.client.patch(BUDGET, "web", "default", {"spec": {"maxUnavailable": 1}})
    await bench.seen.until(lambda: allowed(bench) == 1)


async def test_a_replica_set_whose_rollout_goes_on_counts_once_with_its_deployment(bench):
    await bench.start()
    await create_budget(bench, maxUnavailable=1)
    await bench.client.create(DEPLOYMENT, deployment_document(replicas=4), "default")
    await bench.seen.until(lambda: allowed(bench) == 1)
    await bench.client.patch(
        DEPLOYMENT, "web", "default", {"spec": {"template": {"metadata": {"labels": {"version": "2"}}}}}
    )
    await bench.seen.until(
        lambda: [pod.labels.get("version") for pod in bench.seen.pods] == ["2"] * 4 and allowed(bench) == 1
    )
    assert counted(bench)["expectedPods"] == 4


async def test_evictions_spend_the_budget_and_replacements_restore_it(bench):
    await bench.start()
    await create_budget(bench, minAvailable=2)
    await bench.client.create(DEPLOYMENT, deployment_document(), "default")
    await bench.seen.until(lambda: allowed(bench) == 1)
    first = bench.seen.pods[0].name
    await evict(bench, first)
    await bench.seen.until(
        lambda: first not in {pod.name for pod in bench.seen.pods} and len(bench.seen.pods) == 3 and allowed(bench) == 1
    )
    assert "disruptedPods" not in counted(bench)


async def test_a_budget_is_never_overspent_by_evictions_at_once(bench):
    """Without replacements each eviction that is admitted leaves one pod less, however the controller interleaves."""
    await bench.start()
    await create_budget(bench, minAvailable=4)
    for number in range(6):
        await bench.client.create(POD, pod_document(f"web-{number}", labels={"app": "web"}), "default")
    await bench.seen.until(lambda: allowed(bench) == 2)
    results = await asyncio.gather(*(evict(bench, f"web-{number}") for number in range(6)), return_exceptions=True)
    refused = [each for each in results if each is not None]
    assert [each.code for each in refused if isinstance(each, ApiError)] == [429] * 4
    await bench.seen.until(lambda: counted(bench).get("currentHealthy") == 4 and len(bench.seen.pods) == 4)
    assert why(bench) == ("InsufficientPods", "")


async def test_an_eviction_that_deletes_nothing_is_forgotten_after_two_minutes(bench):
    clock = ManualClock()
    await bench.start(clock=clock)
    await create_budget(bench, minAvailable=1)
    for name in ("a", "b"):
        await bench.client.create(POD, pod_document(name, labels={"app": "web"}), "default")
    await bench.seen.until(lambda: allowed(bench) == 1)
    admitted = {"status": {"disruptionsAllowed": 0, "disruptedPods": {"a": timestamp(clock.now())}}}
    await bench.client.patch(BUDGET, "web", "default", admitted, subresource="status")
    await bench.seen.until(lambda: counted(bench).get("currentHealthy") == 1)
    assert allowed(bench) == 0
    await bench.pass_time(clock, 10, lambda: allowed(bench) == 1)
    assert clock.now() >= 1_700_000_000 + DELETION_TIMEOUT_SECONDS
    await bench.seen.until(
        lambda: ("NotDeleted", "Pod was expected by PDB default/web to be deleted but it wasn't") in bench.seen.events
    )


async def test_pods_that_change_labels_or_the_selector_are_counted_again(bench):
    await bench.start()
    await create_budget(bench, minAvailable=0)
    await bench.seen.until(lambda: counted(bench) and ("NoPods", "No matching pods found") in bench.seen.events)
    for name in ("a", "b"):
        await bench.client.create(POD, pod_document(name, labels={"app": "web", "name": name}), "default")
    await bench.client.create(POD, pod_document("c", labels={"app": "other"}), "default")
    await bench.seen.until(lambda: allowed(bench) == 2)
    await bench.client.patch(POD, "b", "default", {"metadata": {"labels": {"app": "other"}}})
    await bench.seen.until(lambda: allowed(bench) == 1)
    selector = {"matchLabels": None, "matchExpressions": [{"key": "app", "operator": "Exists"}]}
    await bench.client.patch(BUDGET, "web", "default", {"spec": {"selector": selector}}, form="merge")
    await bench.seen.until(lambda: allowed(bench) == 3)
    await bench.client.delete(POD, "c", "default")
    await bench.seen.until(lambda: allowed(bench) == 2)


async def test_pods_without_a_controller_are_reported_where_they_cannot_count(bench):
    await bench.start()
    await bench.client.create(POD, pod_document("lone", labels={"app": "web"}), "default")
    await create_budget(bench, maxUnavailable=1)
    await bench.seen.until(lambda: "UnmanagedPods" in dict(bench.seen.events))
    assert "lone" in dict(bench.seen.events)["UnmanagedPods"]
    await bench.seen.until(lambda: counted(bench).get("currentHealthy") == 1)
    assert allowed(bench) == 0


async def test_a_controller_without_scale_fails_the_sync_and_is_reported(bench):
    await bench.start()
    daemons = deployment_document()
    del daemons["spec"]["replicas"]
    await bench.client.create(DaemonSet.KIND, daemons, "default")
    await create_budget(bench, maxUnavailable=1)
    await bench.seen.until(
        lambda: why(bench) == ("SyncFailed", "daemonsets.apps does not implement the scale subresource")
    )
    await bench.client.patch(
        BUDGET, "web", "default", {"spec": {"maxUnavailable": None, "minAvailable": 1}}, form="merge"
    )
    await bench.seen.until(lambda: allowed(bench) == 1)


async def test_a_controller_that_does_not_exist_fails_the_count(bench):
    await bench.start()
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "gone", "uid": "none", "controller": True}
    pod = pod_document("orphan", labels={"app": "web"}, ownerReferences=[owner], finalizers=["example.com/keep"])
    await bench.client.create(POD, pod, "default")
    await create_budget(bench, minAvailable="50%")
    await bench.seen.until(lambda: why(bench) == ("SyncFailed", 'found no controllers for pod "orphan"'))
    await bench.client.patch(POD, "orphan", "default", {"metadata": {"finalizers": None}}, form="merge")


async def test_a_controller_of_another_kind_counts_by_its_scale(bench):
    await bench.start()
    document: dict[str, Any] = {"metadata": {"name": "web"}, "spec": {"replicas": 4, "selector": {"app": "web"}}}
    document["spec"]["template"] = deployment_document()["spec"]["template"]
    created = await bench.client.create(
        Kind("", "v1", "ReplicationController", "replicationcontrollers"), document, "default"
    )
    owner: dict[str, Any] = {"apiVersion": "v1", "kind": "ReplicationController", "name": "web", "controller": True}
    owner["uid"] = created["metadata"]["uid"]
    for number in range(3):
        pod = pod_document(f"web-{number}", labels={"app": "web"}, ownerReferences=[owner])
        await bench.client.create(POD, pod, "default")
    await create_budget(bench, maxUnavailable=2)
    await bench.seen.until(lambda: allowed(bench) == 1)
    assert counted(bench)["expectedPods"] == 4
