"""Validation of pod updates."""

from __future__ import annotations

from typing import Any

import pytest
from tests.apiserver.builders import PODS, a_pod
from tests.apiserver.conftest import Client

from mooring.apiserver.validation.pod_update import check_pod_update

ALLOWED = {
    "labels": {"metadata": {"labels": {"a": "b"}}},
    "an image": {"spec": {"containers": [{"name": "main", "image": "app:2"}]}},
    "a shorter deadline": {"spec": {"activeDeadlineSeconds": 50}},
}
FORBIDDEN = {
    "a node": ({"spec": {"nodeName": "node-1"}}, "pod updates may not change fields other than"),
    "a request": (
        {"spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": "1"}}}]}},
        "pod updates may not change fields other than",
    ),
    "a container more": (
        {"spec": {"containers": [{"name": "more", "image": "app"}]}},
        "pod updates may not add or remove containers",
    ),
    "a longer deadline": (
        {"spec": {"activeDeadlineSeconds": 500}},
        "must be less than or equal to previous value",
    ),
    "a gate": (
        {"spec": {"schedulingGates": [{"name": "late"}]}},
        "only deletion is allowed, but found new scheduling gate 'late'",
    ),
    "a uid": ({"metadata": {"uid": "other"}}, "Precondition failed: UID in precondition: other"),
}


@pytest.mark.parametrize("patch", ALLOWED.values(), ids=ALLOWED.keys())
async def test_may_change(api: Client, patch: dict[str, object]):
    await api.post(PODS, a_pod(activeDeadlineSeconds=100))
    assert (await api.patch(f"{PODS}/web", patch)).code == 200


async def test_tolerations_may_be_added_but_not_taken_away(api: Client):
    pod = (await api.post(PODS, a_pod())).body
    pod["spec"]["tolerations"].append({"key": "x", "operator": "Exists"})
    assert (await api.put(f"{PODS}/web", pod)).code == 200
    pod = (await api.get(f"{PODS}/web")).body
    pod["spec"]["tolerations"] = [*pod["spec"]["tolerations"][1:], {"operator": "Exists", "effect": "NoExecute"}]
    response = await api.put(f"{PODS}/web", pod)
    assert "existing toleration can not be modified except its tolerationSeconds" in response.message


@pytest.mark.parametrize(("patch", "sentence"), FORBIDDEN.values(), ids=FORBIDDEN.keys())
async def test_may_not_change(api: Client, patch: dict[str, object], sentence: str):
    await api.post(PODS, a_pod(activeDeadlineSeconds=100))
    response = await api.patch(f"{PODS}/web", patch)
    assert response.code in (409, 422)
    assert sentence in response.message


async def test_gates_are_removed_one_by_one_and_a_gated_pod_may_narrow_where_it_runs(api: Client):
    await api.post(PODS, a_pod(schedulingGates=[{"name": "a"}, {"name": "b"}]))
    response = await api.patch(f"{PODS}/web", {"spec": {"nodeSelector": {"zone": "1"}}})
    assert response.code == 200
    response = await api.patch(f"{PODS}/web", {"spec": {"schedulingGates": [{"name": "a"}]}}, "merge")
    assert response.body["spec"]["schedulingGates"] == [{"name": "a"}]
    response = await api.patch(f"{PODS}/web", {"spec": {"schedulingGates": []}}, "merge")
    assert "schedulingGates" not in response.body["spec"]
    assert (await api.patch(f"{PODS}/web", {"spec": {"nodeSelector": {"zone": "2"}}})).code == 422


def in_zones(*terms: list[str]) -> dict[str, Any]:
    """Required node affinity: one term for each list, of one requirement for each of its zones."""
    written = [
        {"matchExpressions": [{"key": "zone", "operator": "In", "values": [zone]} for zone in zones]} for zones in terms
    ]
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": written}}}


NARROWING = {
    "any affinity, where there was none": (None, in_zones(["a"], ["b"]), None),
    "a requirement more in a term": (in_zones(["a"]), in_zones(["a", "b"]), None),
    "another requirement": (in_zones(["a"]), in_zones(["b"]), "only additions are allowed (no mutations or deletions)"),
    "a term more": (in_zones(["a"]), in_zones(["a"], ["b"]), "no additions/deletions to non-empty NodeSelectorTerms"),
    "no term": (in_zones(["a"]), None, "no additions/deletions to non-empty NodeSelectorTerms"),
    "a requirement in a term that selected nothing": (
        in_zones([], ["a"]),
        in_zones(["b"], ["a"]),
        "only additions are allowed",
    ),
    "another kind of affinity": (
        in_zones(["a"]),
        in_zones(["a"]) | {"podAffinity": {}},
        "pod updates may not change fields other than",
    ),
}


@pytest.mark.parametrize(("then", "now", "sentence"), NARROWING.values(), ids=NARROWING.keys())
def test_a_gated_pod_may_only_narrow_its_affinity(then: Any, now: Any, sentence: str | None):
    def with_affinity(affinity: Any) -> dict[str, Any]:
        pod = a_pod(schedulingGates=[{"name": "wait"}], restartPolicy="Always", dnsPolicy="Default")
        pod["spec"]["containers"][0]["imagePullPolicy"] = "Always"
        return pod if affinity is None else a_pod(**{**pod["spec"], "affinity": affinity})

    errors = [str(error) for error in check_pod_update(with_affinity(now), with_affinity(then))]
    assert len(errors) == (sentence is not None)
    assert sentence is None or sentence in errors[0]


async def test_a_frozen_field_is_named_with_its_values(api: Client):
    await api.post(PODS, a_pod())
    response = await api.patch(f"{PODS}/web", {"spec": {"hostname": "db", "restartPolicy": "Never"}})
    assert response.message.endswith('\n  hostname: unset -> "db"\n  restartPolicy: "Always" -> "Never"')


async def test_generation_grows_with_the_spec_alone(api: Client):
    await api.post(PODS, a_pod())
    labelled = await api.patch(f"{PODS}/web", {"metadata": {"labels": {"a": "b"}}})
    status = await api.patch(f"{PODS}/web/status", {"status": {"phase": "Running"}})
    image = await api.patch(f"{PODS}/web", {"spec": {"containers": [{"name": "main", "image": "app:2"}]}})
    generations = [response.body["metadata"]["generation"] for response in (labelled, status, image)]
    assert generations == [1, 1, 2]


async def test_status_and_spec_are_written_apart(api: Client):
    await api.post(PODS, a_pod())
    both = {"spec": {"nodeName": "node-1"}, "status": {"phase": "Running"}}
    through_status = (await api.patch(f"{PODS}/web/status", both)).body
    assert through_status["status"]["phase"] == "Running"
    assert "nodeName" not in through_status["spec"]
    through_pod = (await api.patch(f"{PODS}/web", {"status": {"phase": "Failed"}})).body
    assert through_pod["status"]["phase"] == "Running"


async def test_conditions_merge_by_type(api: Client):
    await api.post(PODS, a_pod())
    for type, status in (("Ready", "False"), ("PodScheduled", "False"), ("Ready", "True")):
        response = await api.patch(f"{PODS}/web/status", {"status": {"conditions": [{"type": type, "status": status}]}})
    conditions = {each["type"]: each["status"] for each in response.body["status"]["conditions"]}
    assert conditions == {"Ready": "True", "PodScheduled": "False"}


async def test_a_stale_revision_conflicts(api: Client):
    pod = (await api.post(PODS, a_pod())).body
    await api.patch(f"{PODS}/web", {"metadata": {"labels": {"a": "b"}}})
    response = await api.put(f"{PODS}/web", pod)
    assert (response.code, response.body["reason"]) == (409, "Conflict")
    assert response.message == (
        'Operation cannot be fulfilled on pods "web": the object has been modified; please apply your changes to the'
        " latest version and try again"
    )


async def test_a_dry_run_returns_the_object_and_stores_nothing(api: Client):
    created = await api.post(f"{PODS}?dryRun=All", a_pod())
    assert (created.code, created.body["status"]["phase"]) == (201, "Pending")
    assert (await api.get(f"{PODS}/web")).code == 404
    assert (await api.post(f"{PODS}?dryRun=Some", a_pod())).code == 422


async def test_unknown_fields_are_warned_of_refused_or_ignored(api: Client):
    pod = a_pod()
    pod["spec"]["colour"] = "red"
    warned = await api.post(PODS, pod)
    assert warned.headers["Warning"] == '299 - "unknown field \\"spec.colour\\""'
    assert "colour" not in warned.body["spec"]
    pod["metadata"]["name"] = "other"
    assert (await api.post(f"{PODS}?fieldValidation=Strict", pod)).code == 400
    assert "Warning" not in (await api.post(f"{PODS}?fieldValidation=Ignore", pod)).headers
    assert (await api.post(f"{PODS}?fieldValidation=Loose", pod)).code == 422
