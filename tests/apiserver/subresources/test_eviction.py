"""Evictions: what a disruption budget allows, what it is charged, and why it rejects them."""

from __future__ import annotations

from typing import Any

import pytest
from tests.apiserver.builders import PODS
from tests.apiserver.conftest import Client, Response, a_running_pod

BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"


def a_budget(allowed: int = 0, spec: dict[str, Any] | None = None, **status: Any) -> dict[str, Any]:
    counts = {"observedGeneration": 1, "currentHealthy": 1, "desiredHealthy": 1, "expectedPods": 1}
    return {
        "metadata": {"name": "budget", "namespace": "default"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}, **(spec or {})},
        "status": {**counts, "disruptionsAllowed": allowed, **status},
    }


async def counted(api: Client, budget: dict[str, Any]) -> None:
    assert (await api.post(BUDGETS, budget)).code == 201
    assert (await api.put(f"{BUDGETS}/budget/status", budget)).code == 200


async def evict(api: Client, **body: Any) -> Response:
    return await api.post(f"{PODS}/web/eviction", {"metadata": {"name": "web"}, **body})


async def budget_status(api: Client) -> dict[str, Any]:
    status: dict[str, Any] = (await api.get(f"{BUDGETS}/budget")).body["status"]
    return status


def condition(status: str, reason: str, message: str = "") -> dict[str, Any]:
    return {
        "type": "DisruptionAllowed",
        "status": status,
        "reason": reason,
        "message": message,
        "lastTransitionTime": "2020-01-01T00:00:00Z",
    }


async def test_a_spent_budget_fails_at_once_and_one_not_yet_counted_is_to_be_retried(api: Client):
    await api.post(BUDGETS, a_budget())
    await a_running_pod(api)
    not_counted = await evict(api)
    await api.put(f"{BUDGETS}/budget/status", a_budget())
    spent = await evict(api)
    assert [response.headers.get("Retry-After") for response in (not_counted, spent)] == ["10", None]
    assert [response.body["details"]["causes"][0]["message"] for response in (not_counted, spent)] == [
        "The disruption budget budget is still being processed by the server.",
        "The disruption budget budget needs 1 healthy pods and has 1 currently",
    ]


@pytest.mark.parametrize(("allowed", "code"), [(1, 201), (0, 429)])
async def test_an_eviction_needs_the_budget(api: Client, allowed: int, code: int):
    await counted(api, a_budget(allowed))
    await a_running_pod(api)
    response = await evict(api)
    assert response.code == code
    pod = (await api.get(f"{PODS}/web")).body
    assert ("deletionTimestamp" in pod["metadata"]) == (code == 201)
    assert (await budget_status(api))["disruptionsAllowed"] == 0


@pytest.mark.parametrize(("allowed", "reason"), [(1, "InsufficientPods"), (2, "SufficientPods")])
async def test_an_admitted_eviction_is_recorded_in_the_budget_and_the_pod(api: Client, allowed: int, reason: str):
    await counted(api, a_budget(allowed, conditions=[condition("True", "SufficientPods")]))
    await a_running_pod(api)
    assert (await evict(api)).code == 201
    status = await budget_status(api)
    assert (status["disruptionsAllowed"], list(status["disruptedPods"])) == (allowed - 1, ["web"])
    (present,) = status["conditions"]
    assert present["reason"] == reason
    assert (present["lastTransitionTime"] == "2020-01-01T00:00:00Z") == (present["status"] == "True")
    pod = (await api.get(f"{PODS}/web")).body
    target = [each for each in pod["status"]["conditions"] if each["type"] == "DisruptionTarget"]
    assert [(each["status"], each["reason"]) for each in target] == [("True", "EvictionByEvictionAPI")]


async def test_a_dry_run_charges_nothing(api: Client):
    await counted(api, a_budget(1))
    await a_running_pod(api)
    before = (await api.get(f"{PODS}/web")).body
    assert (await evict(api, deleteOptions={"dryRun": ["All"]})).code == 201
    status = await budget_status(api)
    assert (status["disruptionsAllowed"], status.get("disruptedPods")) == (1, None)
    assert (await api.get(f"{PODS}/web")).body == before


UNREADY: dict[str, tuple[dict[str, Any], int]] = {
    "the healthy ones are enough": (a_budget(currentHealthy=1, desiredHealthy=1), 201),
    "the healthy ones are too few": (a_budget(currentHealthy=0, desiredHealthy=1), 429),
    "none has to be healthy": (a_budget(currentHealthy=0, desiredHealthy=0), 429),
    "the policy always allows it": (
        a_budget(spec={"unhealthyPodEvictionPolicy": "AlwaysAllow"}, currentHealthy=0, desiredHealthy=1),
        201,
    ),
    "the policy requires healthy ones": (
        a_budget(spec={"unhealthyPodEvictionPolicy": "IfHealthyBudget"}, currentHealthy=0, desiredHealthy=1),
        429,
    ),
}


@pytest.mark.parametrize(("budget", "code"), UNREADY.values(), ids=UNREADY.keys())
async def test_a_pod_that_is_not_ready_goes_uncharged_where_it_harms_nothing(api: Client, budget, code: int):
    await counted(api, budget)
    await a_running_pod(api, ready=False)
    assert (await evict(api)).code == code
    assert "disruptedPods" not in await budget_status(api)


REFUSALS = {
    "its pods could not be counted": (
        a_budget(conditions=[condition("False", "SyncFailed", "no scale")]),
        "The disruption budget budget does not allow evicting pods currently because it failed sync: no scale",
    ),
    "too few are healthy": (
        a_budget(currentHealthy=2, desiredHealthy=3, conditions=[condition("False", "InsufficientPods")]),
        "The disruption budget budget needs 3 healthy pods and has 2 currently",
    ),
    "for a reason of its own": (
        a_budget(currentHealthy=3, desiredHealthy=1, conditions=[condition("False", "Frozen", "until Monday")]),
        "The disruption budget budget does not allow evicting pods currently (Frozen): until Monday",
    ),
    "for no reason": (
        a_budget(currentHealthy=3, desiredHealthy=1),
        "The disruption budget budget does not allow evicting pods currently",
    ),
}


@pytest.mark.parametrize(("budget", "why"), REFUSALS.values(), ids=REFUSALS.keys())
async def test_a_refusal_names_the_budget_and_why(api: Client, budget, why: str):
    await counted(api, budget)
    await a_running_pod(api)
    response = await evict(api)
    assert (response.code, response.body["details"]["causes"][0]["message"]) == (429, why)


async def test_too_many_evictions_that_are_not_counted_yet_are_forbidden(api: Client):
    waiting = {f"web-{number}": "2020-01-01T00:00:00Z" for number in range(2001)}
    await counted(api, a_budget(1, disruptedPods=waiting))
    await a_running_pod(api)
    response = await evict(api)
    assert (response.code, "DisruptedPods map too big" in response.message) == (403, True)


async def test_an_eviction_of_another_name_or_state_evicts_nothing(api: Client):
    await a_running_pod(api)
    before = (await api.get(f"{PODS}/web")).body
    other = await evict(api, metadata={"name": "other"})
    assert (other.code, other.message) == (400, "name in URL does not match name in Eviction object")
    for wrong in ({"uid": "another"}, {"resourceVersion": "1"}):
        assert (await evict(api, deleteOptions={"preconditions": wrong})).code == 409
    assert (await api.get(f"{PODS}/web")).body == before
    right = {"resourceVersion": before["metadata"]["resourceVersion"], "uid": before["metadata"]["uid"]}
    assert (await evict(api, deleteOptions={"preconditions": right})).code == 201


WRONG = {
    "a word": ({"minAvailable": "many"}, "spec.minAvailable"),
    "more than all": ({"minAvailable": "101%"}, 'spec.minAvailable: Invalid value: "101%": must not be greater than'),
    "less than none": ({"minAvailable": None, "maxUnavailable": -1}, "spec.maxUnavailable: Invalid value: -1: must be"),
    "an unknown policy": (
        {"unhealthyPodEvictionPolicy": "Never"},
        "spec.unhealthyPodEvictionPolicy: Unsupported value",
    ),
}


@pytest.mark.parametrize(("spec", "message"), WRONG.values(), ids=WRONG.keys())
async def test_a_budget_that_cannot_be_counted_is_refused(api: Client, spec, message: str):
    response = await api.post(BUDGETS, a_budget(spec=spec))
    assert (response.code, message in response.message) == (422, True), response.message
