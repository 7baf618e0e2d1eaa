"""Binding: once, and only pods that can be bound."""

from __future__ import annotations

from typing import Any

import pytest
from tests.apiserver.builders import PODS, a_binding, a_pod
from tests.apiserver.conftest import Client


async def test_binding_places_the_pod_and_clears_its_nomination(api: Client):
    await api.post(PODS, a_pod(labels={"a": "1"}))
    await api.patch(f"{PODS}/web/status", {"status": {"nominatedNodeName": "node-9"}})
    response = await api.post(
        f"{PODS}/web/binding", a_binding(annotations={"chosen-by": "test"}, labels={"a": "2", "b": "3"})
    )
    assert (response.code, response.body["status"]) == (201, "Success")
    pod = (await api.get(f"{PODS}/web")).body
    assert pod["spec"]["nodeName"] == "node-1"
    assert "nominatedNodeName" not in pod["status"]
    assert pod["metadata"]["annotations"] == {"chosen-by": "test"}
    assert pod["metadata"]["labels"] == {"a": "2", "b": "3"}
    (condition,) = pod["status"]["conditions"]
    assert (condition["type"], condition["status"]) == ("PodScheduled", "True")
    assert condition["lastTransitionTime"] == "2023-11-14T22:13:20Z"


ZONE, REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"


async def test_a_pod_gets_the_zone_and_the_region_of_its_node_as_labels(api: Client):
    labels = {ZONE: "z1", REGION: "r1", "disk": "ssd"}
    await api.post("/api/v1/nodes", {"kind": "Node", "metadata": {"name": "node-1", "labels": labels}})
    await api.post(PODS, a_pod(labels={"a": "1", ZONE: "elsewhere"}))
    await api.post(f"{PODS}/web/binding", a_binding(labels={"b": "2", REGION: "elsewhere"}))
    await api.post(PODS, a_pod("placed", nodeName="node-1"))
    bound, placed = [(await api.get(f"{PODS}/{name}")).body["metadata"].get("labels") for name in ("web", "placed")]
    assert bound == {"a": "1", "b": "2", ZONE: "z1", REGION: "r1"}
    assert placed == {ZONE: "z1", REGION: "r1"}


async def test_the_collection_of_bindings_binds_too(api: Client):
    await api.post(PODS, a_pod())
    assert (await api.post("/api/v1/namespaces/default/bindings", a_binding())).code == 201
    assert (await api.get(f"{PODS}/web")).body["spec"]["nodeName"] == "node-1"


async def test_a_pod_is_bound_once(api: Client):
    await api.post(PODS, a_pod())
    await api.post(f"{PODS}/web/binding", a_binding())
    response = await api.post(f"{PODS}/web/binding", a_binding(node="node-2"))
    assert (response.code, response.body["reason"]) == (409, "Conflict")
    assert response.message == (
        'Operation cannot be fulfilled on pods/binding "web": pod web is already assigned to node "node-1"'
    )


async def test_a_gated_pod_is_not_bound(api: Client):
    await api.post(PODS, a_pod(schedulingGates=[{"name": "wait"}]))
    response = await api.post(f"{PODS}/web/binding", a_binding())
    assert (response.code, "pod web has non-empty .spec.schedulingGates" in response.message) == (409, True)


async def test_a_pod_being_deleted_is_not_bound(api: Client):
    pod = a_pod()
    pod["metadata"]["finalizers"] = ["example.com/wait"]
    await api.post(PODS, pod)
    await api.delete(f"{PODS}/web")
    response = await api.post(f"{PODS}/web/binding", a_binding())
    assert (response.code, "is being deleted, cannot be assigned to a host" in response.message) == (409, True)


REFUSED: dict[str, tuple[dict[str, Any], int]] = {
    "another pod of the same name": (a_binding(uid="other"), 409),
    "an older state of the pod": (a_binding(resourceVersion="1"), 409),
    "another name than the path's": (a_binding("other"), 400),
    "no node": ({"target": {"kind": "Node"}}, 400),
    "something that is no node": ({"target": {"kind": "Pod", "name": "x"}}, 400),
    "invalid": ({"target": "node-1"}, 400),
}


@pytest.mark.parametrize(("binding", "code"), REFUSED.values(), ids=REFUSED.keys())
async def test_a_binding_is_refused_that_means(api: Client, binding: dict[str, Any], code: int):
    await api.post(PODS, a_pod())
    assert (await api.post(f"{PODS}/web/binding", binding)).code == code
    assert "nodeName" not in (await api.get(f"{PODS}/web")).body["spec"]


async def test_an_unknown_pod_cannot_be_bound(api: Client):
    assert (await api.post(f"{PODS}/web/binding", a_binding())).code == 404


async def test_a_dry_run_binds_nothing(api: Client):
    await api.post(PODS, a_pod())
    assert (await api.post(f"{PODS}/web/binding?dryRun=All", a_binding())).code == 201
    assert "nodeName" not in (await api.get(f"{PODS}/web")).body["spec"]
