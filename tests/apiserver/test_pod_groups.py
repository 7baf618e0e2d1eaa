"""PodGroups, Workloads and pods of groups on the embedded server, as on kube-apiserver (gang scheduling, 2, 9.1).

Responses of kube-apiserver v1.36.4 are recorded; tests/real_apiserver/test_pod_groups.py checks the record.
"""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import pytest
from tests.apiserver.conftest import connected
from tests.apiserver.pod_group_requests import (
    CONDITION,
    GATE_SETS,
    GROUPS,
    JOBS,
    PODS,
    RECORDED,
    SCENARIOS,
    WORKLOADS,
    gang,
    group,
    job,
    pod,
    reference,
    response,
    steps_of,
    template,
    templates,
    workload,
)

from mooring.apiserver import EmbeddedApiServer
from mooring.base.clock import ManualClock


@cache
def recorded() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(RECORDED.read_text(encoding="utf-8"))
    return found


@pytest.fixture(params=GATE_SETS)
async def gated(request, clock: ManualClock):
    server = EmbeddedApiServer(clock=clock, features=GATE_SETS[request.param])
    await server.start()
    async with connected(server) as client:
        yield request.param, client
    await server.stop()


async def test_every_response_is_that_of_kube_apiserver(gated):
    gates, api = gated
    found: dict[str, list[Any]] = {}
    for scenario in SCENARIOS:
        found[scenario] = []
        for step in steps_of(scenario):
            result = await api.call(step.method, step.path, step.body, Content_Type=step.content)
            found[scenario].append(response(result.code, result.body))
    different = {name: found[name] for name in SCENARIOS if found[name] != recorded()[gates][name]}
    assert different == {name: recorded()[gates][name] for name in different}


OFF = {
    "a pod": pod({"schedulingGroup": {"podGroupName": "training"}}),
    "a Job": job(schedulingGroup={"podGroupName": "training"}),
}


@pytest.mark.parametrize("step", OFF.values(), ids=OFF.keys())
async def test_without_the_gate_the_group_of_a_pod_is_dropped(api, step):
    """Gang scheduling, 2.1."""
    created = await api.call(step.method, step.path, {**step.body, "metadata": {"name": "a"}})
    assert created.code == 201
    assert "schedulingGroup" not in json.dumps(created.body)


async def test_without_the_gate_the_kinds_are_not_served(api):
    """Gang scheduling, section 1."""
    for path in (GROUPS, WORKLOADS, "/apis/scheduling.k8s.io/v1alpha2"):
        assert (await api.get(path)).code == 404
    [group_] = [each for each in (await api.get("/apis")).body["groups"] if each["name"] == "scheduling.k8s.io"]
    assert [version["version"] for version in group_["versions"]] == ["v1"]


async def test_with_the_gate_the_kinds_are_discovered_and_described(gated):
    """Gang scheduling, section 2."""
    _, api = gated
    listed = (await api.get("/apis/scheduling.k8s.io/v1alpha2")).body["resources"]
    assert [each["name"] for each in listed] == ["podgroups", "podgroups/status", "workloads"]
    groups = {each["name"]: each for each in (await api.get("/apis")).body["groups"]}
    assert groups["scheduling.k8s.io"]["preferredVersion"]["version"] == "v1"
    described = (await api.get("/openapi/v3/apis/scheduling.k8s.io/v1alpha2")).body["components"]["schemas"]
    assert "io.k8s.api.scheduling.v1alpha2.PodGroup" in described


CONDITIONS = {
    "no condition": ([], "Pending"),
    "scheduled": ([CONDITION], "Scheduled"),
    "not scheduled": ([{**CONDITION, "status": "False", "reason": "Unschedulable"}], "Unschedulable"),
    "disrupted": ([CONDITION, {**CONDITION, "type": "DisruptionTarget", "reason": "Preempted"}], "Preempted"),
}


@pytest.mark.parametrize(("conditions", "shown"), CONDITIONS.values(), ids=CONDITIONS.keys())
async def test_the_table_shows_policy_workload_and_status(gated, conditions, shown):
    _, api = gated
    await api.post(GROUPS, {**group(gang()).body, "metadata": {"name": "a"}})
    await api.patch(f"{GROUPS}/a/status", {"status": {"conditions": conditions}}, "merge")
    table = (await api.get(GROUPS, Accept="application/json;as=Table;v=v1;g=meta.k8s.io")).body
    assert [column["name"] for column in table["columnDefinitions"]] == ["Name", "Policy", "Workload", "Status", "Age"]
    assert table["rows"][0]["cells"][:4] == ["a", "Gang", "<none>", shown]


async def test_a_workload_that_is_being_deleted_is_no_template(gated):
    """Gang scheduling, 9.1."""
    _, api = gated
    metadata = {"name": "w", "finalizers": ["example.com/mine"]}
    await api.post(WORKLOADS, {**workload(templates(template())).body, "metadata": metadata})
    await api.delete(f"{WORKLOADS}/w")
    refused = await api.post(GROUPS, {**group(reference("w", "t")).body, "metadata": {"name": "a"}})
    assert refused.code == 403
    assert refused.message.endswith('PodGroup rejected: Workload "w" is being deleted')


async def test_a_pod_may_name_a_group_that_does_not_exist_and_never_another_one(gated):
    """Gang scheduling, 2.1."""
    _, api = gated
    await api.post(PODS, {**pod({"schedulingGroup": {"podGroupName": "x"}}).body, "metadata": {"name": "a"}})
    refused = await api.patch(f"{PODS}/a", {"spec": {"schedulingGroup": {"podGroupName": "y"}}}, "merge")
    assert refused.code == 422
    assert "pod updates may not change fields other than" in refused.message


async def test_a_job_that_owns_a_gang_keeps_its_parallelism(gated):
    """Gang scheduling, 9.1: JobValidation."""
    _, api = gated
    created = await api.post(JOBS, {**job().body, "metadata": {"name": "j"}})
    uid = created.body["metadata"]["uid"]
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": uid, "controller": True}
    await api.post(GROUPS, {**group(gang()).body, "metadata": {"name": "a", "ownerReferences": [owner]}})
    refused = await api.patch(f"{JOBS}/j", {"spec": {"parallelism": 1}}, "merge")
    assert refused.code == 403
    assert 'cannot change parallelism for a Job referencing gang-scheduled PodGroup "a"' in refused.message


def test_a_file_with_a_group_is_refused_without_the_gate_and_the_gate_is_named():
    [problem] = EmbeddedApiServer().load([{**group(gang()).body, "metadata": {"name": "a"}}])
    assert "--feature-gates=GenericWorkload=true" in problem.message
    assert EmbeddedApiServer(features=GATE_SETS["generic"]).load([group(gang(), name="a").body]) == []
