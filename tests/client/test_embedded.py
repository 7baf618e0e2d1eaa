"""The client against the embedded API server, over HTTPS: both implement the same protocol."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from tests.client.conftest import PATIENCE_SECONDS
from tests.client.test_reflector import reflecting

from mooring.apiserver import EmbeddedApiServer
from mooring.base.errors import ApiError
from mooring.client import ApiClient, Connection, EventRecorder, Reflector, load_kubeconfig
from mooring.objects import CustomResource, Kind, Node, Pod
from mooring.objects.core import ObjectReference

EVENTS = Kind("events.k8s.io", "v1", "Event", "events")
CRDS = Kind("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", namespaced=False)


class Quota(CustomResource, group="example.com", version="v1", plural="quotas", scope="Cluster"):
    spec: dict[str, int] = {}


def a_pod(name: str) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "i"}]}}


DEFINITION = {
    "metadata": {"name": "quotas.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Cluster",
        "names": {"plural": "quotas", "kind": "Quota", "singular": "quota", "listKind": "QuotaList"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                },
            }
        ],
    },
}


@pytest.fixture
async def embedded() -> AsyncIterator[EmbeddedApiServer]:
    server = EmbeddedApiServer()
    await server.start()
    yield server
    await server.stop()


@pytest.fixture
async def client(embedded, tmp_path, clock) -> AsyncIterator[ApiClient]:
    embedded.write_kubeconfig(tmp_path / "config")
    async with ApiClient(load_kubeconfig([tmp_path / "config"]), clock=clock) as client:
        yield client


async def test_the_first_contact(client):
    assert "gitVersion" in await client.server_version()


async def test_a_wrong_token_is_refused(embedded):
    connection = Connection(server=embedded.url, source="a test", ca_data=embedded.ca_pem.encode(), token="wrong")
    async with ApiClient(connection) as client:
        with pytest.raises(ApiError) as refusal:
            await client.list(Pod.KIND)
    assert refusal.value.code == 401


async def test_a_pod_is_created_bound_and_deleted(client):
    await client.create(Node.KIND, {"metadata": {"name": "n1"}})
    created = await client.create(Pod.KIND, a_pod("web"), "default")
    uid = created["metadata"]["uid"]
    with pytest.raises(ApiError) as refusal:
        await client.bind("default", "web", "another-uid", "n1")
    assert refusal.value.code == 409
    await client.bind("default", "web", uid, "n1")
    assert (await client.get_as(Pod, "web", "default")).spec.node_name == "n1"
    with pytest.raises(ApiError):
        await client.bind("default", "web", uid, "n1")
    await client.delete(Pod.KIND, "web", "default", grace_seconds=0, uid=uid)
    with pytest.raises(ApiError) as refusal:
        await client.get(Pod.KIND, "web", "default")
    assert (refusal.value.code, refusal.value.reason) == (404, "NotFound")


async def test_a_status_is_patched_and_an_object_replaced(client):
    await client.create(Pod.KIND, a_pod("web"), "default")
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/0"}
    patched = await client.patch(
        Pod.KIND, "web", "default", {"status": {"conditions": [condition]}}, subresource="status"
    )
    assert condition.items() <= patched["status"]["conditions"][0].items()
    patched["metadata"]["labels"] = {"a": "b"}
    assert (await client.update(Pod.KIND, patched))["metadata"]["labels"] == {"a": "b"}
    with pytest.raises(ApiError) as refusal:
        await client.update(Pod.KIND, patched)  # its resourceVersion is old by now
    assert (refusal.value.code, refusal.value.reason) == (409, "Conflict")


async def test_the_feed_receives_every_change(client, feed):
    await client.create(Pod.KIND, a_pod("early"), "default")
    async with reflecting(Reflector(client, Pod, feed)):
        await feed.receives(("listed", ["early"]))
        await client.create(Pod.KIND, a_pod("late"), "default")
        await feed.receives(("changed", "late"))
        await client.patch(Pod.KIND, "late", "default", {"metadata": {"labels": {"a": "b"}}})
        await feed.receives(("changed", "late"))
        await client.delete(Pod.KIND, "early", "default", grace_seconds=0)
        await feed.receives(("deleted", "early"))


async def test_a_pod_that_leaves_the_selector_leaves_the_feed(client, feed):
    async with reflecting(Reflector(client, Pod, feed, field_selector="status.phase!=Succeeded,status.phase!=Failed")):
        await feed.receives(("listed", []))
        await client.create(Pod.KIND, a_pod("job"), "default")
        await feed.receives(("changed", "job"))
        await client.patch(Pod.KIND, "job", "default", {"status": {"phase": "Succeeded"}}, subresource="status")
        await feed.receives(("deleted", "job"))


async def test_more_objects_than_a_page_holds_are_all_listed(client, embedded, feed):
    for number in range(1_201):
        embedded.store.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": f"n{number}"}})
    async with reflecting(Reflector(client, Node, feed)):
        event, names = await feed.next()
    assert event == "listed"
    assert set(names) == {f"n{number}" for number in range(1_201)}
    assert len(await client.list(Node.KIND)) == 1_201


async def test_a_list_is_streamed_and_no_page_is_requested(client, feed, monkeypatch):
    monkeypatch.setattr(ApiClient, "list_page", None)
    await client.create(Pod.KIND, a_pod("web"), "default")
    async with reflecting(Reflector(client, Pod, feed)):
        await feed.receives(("listed", ["web"]))
        await client.create(Pod.KIND, a_pod("later"), "default")
        await feed.receives(("changed", "later"))


async def test_a_custom_kind_comes_and_goes_with_its_definition(client, feed):
    reflector = Reflector(client, Quota, feed)
    async with reflecting(reflector):
        async with asyncio.timeout(PATIENCE_SECONDS):
            while reflector.problem is None:  # noqa: ASYNC110 (a plain attribute changes)
                await asyncio.sleep(0)
        assert "quotas.example.com (v1)" in reflector.problem
        await client.create(CRDS, DEFINITION)
        await feed.receives(("listed", []))
        assert reflector.problem is None
        await client.create(Quota.KIND, {"metadata": {"name": "team"}, "spec": {"pods": 3}})
        await feed.receives(("changed", "team"))
        await client.delete(CRDS, "quotas.example.com")
        received = await feed.next()
        if received == ("deleted", "team"):
            received = await feed.next()
        assert received == ("listed", [])
        assert "quotas.example.com (v1)" in str(reflector.problem)


async def test_repeated_events_are_one_object_with_a_count(client, clock):
    pod = ObjectReference(kind="Pod", api_version="v1", namespace="default", name="web", uid="u", resource_version="1")
    recorder = EventRecorder(client, controller="default-scheduler", clock=clock)
    for _ in range(3):
        recorder.record(pod, type="Warning", reason="FailedScheduling", action="Scheduling", note="0/3 nodes")
    await recorder.flush(PATIENCE_SECONDS)
    (event,) = await client.list(EVENTS, "default")
    assert event["series"]["count"] == 3
    assert event["regarding"]["resourceVersion"] == "1"
    assert recorder.dropped == 0


async def test_a_restarted_server_is_followed_again(client, embedded, feed):
    await client.create(Pod.KIND, a_pod("web"), "default")
    async with reflecting(Reflector(client, Pod, feed)):
        await feed.receives(("listed", ["web"]))
        await embedded.stop()
        await embedded.start()
        await client.create(Pod.KIND, a_pod("after"), "default")
        while (received := await feed.next()) not in (("changed", "after"), ("listed", ["web", "after"])):
            assert received[0] == "listed"
