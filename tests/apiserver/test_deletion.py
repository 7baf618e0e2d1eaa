"""Deleting: grace, finalizers, dependents, namespaces."""

from __future__ import annotations

from typing import Any

import pytest
from tests.apiserver.builders import PODS, a_config_map, a_deployment, a_pod
from tests.apiserver.conftest import Client, a_running_pod, eventually

MAPS = "/api/v1/namespaces/default/configmaps"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"


async def until_gone(api: Client, resource: str, name: str) -> None:
    await eventually(api.server, lambda: api.server.store.get(resource, name) is None)


async def test_a_pod_that_never_ran_goes_at_once(api: Client):
    await api.post(PODS, a_pod())
    assert (await api.delete(f"{PODS}/web")).body["kind"] == "Pod"
    assert (await api.get(f"{PODS}/web")).code == 404


async def test_a_pod_on_a_node_waits_for_its_kubelet(api: Client):
    await a_running_pod(api, terminationGracePeriodSeconds=20)
    metadata = (await api.delete(f"{PODS}/web")).body["metadata"]
    assert metadata["deletionTimestamp"] == "2023-11-14T22:13:40Z"
    assert metadata["deletionGracePeriodSeconds"] == 20
    assert (await api.delete(f"{PODS}/web", {"gracePeriodSeconds": 0})).code == 200
    assert (await api.get(f"{PODS}/web")).code == 404


async def test_a_second_deletion_may_only_shorten_the_grace(api: Client):
    await a_running_pod(api)
    for requested, expected in ((30, 30), (60, 30), (5, 5)):
        response = await api.delete(f"{PODS}/web?gracePeriodSeconds={requested}")
        assert response.body["metadata"]["deletionGracePeriodSeconds"] == expected


async def test_a_pod_that_has_ended_goes_at_once(api: Client):
    await a_running_pod(api)
    await api.patch(f"{PODS}/web/status", {"status": {"phase": "Succeeded"}})
    await api.delete(f"{PODS}/web")
    assert (await api.get(f"{PODS}/web")).code == 404


async def test_a_finalizer_keeps_the_object_until_it_is_taken_away(api: Client):
    document = a_config_map("m")
    document["metadata"]["finalizers"] = ["example.com/wait"]
    await api.post(MAPS, document)
    assert (await api.delete(f"{MAPS}/m")).body["metadata"]["deletionTimestamp"]
    added = await api.patch(f"{MAPS}/m", {"metadata": {"finalizers": ["example.com/more"]}})
    assert "no new finalizers can be added if the object is being deleted" in added.message
    assert (await api.patch(f"{MAPS}/m", {"metadata": {"finalizers": None}}, "merge")).code == 200
    assert (await api.get(f"{MAPS}/m")).code == 404


async def test_a_deletion_returns_the_deleted_object(api: Client):
    uid = (await api.post(DEPLOYMENTS, a_deployment())).body["metadata"]["uid"]
    response = (await api.delete(f"{DEPLOYMENTS}/web")).body
    assert (response["kind"], response["status"]) == ("Status", "Success")
    assert response["details"] == {"name": "web", "kind": "deployments", "group": "apps", "uid": uid}


async def test_preconditions_hold(api: Client):
    await api.post(MAPS, a_config_map("m"))
    for wrong in ({"uid": "other"}, {"resourceVersion": "1"}):
        response = await api.delete(f"{MAPS}/m", {"preconditions": wrong})
        assert (response.code, "Precondition failed" in response.message) == (409, True)


def owned(name: str, owner: dict[str, Any]) -> dict[str, Any]:
    document = a_config_map(name)
    reference = {field: owner[field] for field in ("apiVersion", "kind")}
    reference |= {field: owner["metadata"][field] for field in ("name", "uid")}
    document["metadata"]["ownerReferences"] = [{**reference, "controller": True}]
    return document


@pytest.mark.parametrize("policy", ["Background", "Foreground"])
async def test_dependents_go_with_their_owner(api: Client, policy: str):
    owner = (await api.post(MAPS, a_config_map("owner"))).body
    child = (await api.post(MAPS, owned("child", owner))).body
    await api.post(MAPS, owned("grandchild", child))
    await api.delete(f"{MAPS}/owner", {"propagationPolicy": policy})
    for name in ("grandchild", "child", "owner"):
        await until_gone(api, "configmaps", name)


async def test_orphans_stay(api: Client):
    owner = (await api.post(MAPS, a_config_map("owner"))).body
    await api.post(MAPS, owned("child", owner))
    await api.delete(f"{MAPS}/owner?propagationPolicy=Orphan")
    await until_gone(api, "configmaps", "owner")
    assert "ownerReferences" not in (await api.get(f"{MAPS}/child")).body["metadata"]


async def test_a_namespace_goes_with_what_is_in_it(api: Client):
    await api.post("/api/v1/namespaces", {"metadata": {"name": "shop"}})
    document = a_config_map("m")
    document["metadata"]["namespace"] = "shop"
    document["metadata"]["finalizers"] = ["example.com/wait"]
    await api.post("/api/v1/namespaces/shop/configmaps", document)
    terminating = (await api.delete("/api/v1/namespaces/shop")).body
    assert terminating["status"]["phase"] == "Terminating"

    document["metadata"]["name"] = "late"
    refused = await api.post("/api/v1/namespaces/shop/configmaps", document)
    assert refused.code == 403
    assert "unable to create new content in namespace shop because it is being terminated" in refused.message

    await api.patch("/api/v1/namespaces/shop/configmaps/m", {"metadata": {"finalizers": None}}, "merge")
    await until_gone(api, "namespaces", "shop")


async def test_the_namespaces_every_cluster_has_stay(api: Client):
    response = await api.delete("/api/v1/namespaces/default")
    assert (response.code, response.message) == (
        403,
        'namespaces "default" is forbidden: this namespace may not be deleted',
    )


async def test_an_unknown_namespace_takes_nothing(api: Client):
    response = await api.post("/api/v1/namespaces/nope/pods", a_pod() | {"metadata": {"name": "web"}})
    assert (response.code, response.message) == (404, 'namespaces "nope" not found')


async def test_every_namespace_has_a_default_account(api: Client):
    await api.post("/api/v1/namespaces", {"metadata": {"name": "shop"}})
    store = api.server.store
    await eventually(api.server, lambda: store.get("serviceaccounts", "default", "shop") is not None)
