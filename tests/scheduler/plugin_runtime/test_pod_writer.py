"""The `PodWriter` service: annotations and labels of pods, on the embedded API server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from tests.client.conftest import InstantClock
from tests.scheduler.conftest import a_configuration, a_live_scheduler, a_profile

from mooring.apiserver import EmbeddedApiServer
from mooring.base.errors import ApiError, Fault, Unreachable
from mooring.client import ApiClient, Connection
from mooring.framework import Cycle, NodeView, Plugin, Pod, PodWriter
from mooring.objects import ObjectMeta
from mooring.scheduler.plugin_runtime.pod_writer import ApiPodWriter
from mooring.scheduler.shadow import ReadOnlyClient
from mooring.testing import a_pod


class Diary(Plugin):
    """Writes where the pod is about to run, before it is bound."""

    def __init__(self, writer: PodWriter) -> None:
        self._writer = writer

    async def pre_bind(self, pod: Pod, node: NodeView, cycle: Cycle) -> None:
        written = await self._writer.patch(pod, annotations={"example.com/goes-to": node.name}, labels={"draft": None})
        assert written.annotations["example.com/goes-to"] == node.name


async def test_a_plugin_writes_to_a_pod_before_it_is_bound(server):
    config = a_configuration(a_profile("default-scheduler", plugins=["Diary"]))
    async with a_live_scheduler(server, config, [Diary]) as live:
        await live.node("node-1")
        await live.pod("web", draft="yes", app="web")
        assert await live.bound("web") == ["node-1"]
        assert live.pods["web"].annotations == {"example.com/goes-to": "node-1"}
        assert live.pods["web"].labels == {"app": "web"}


@pytest.fixture
async def client(server: EmbeddedApiServer) -> AsyncIterator[ApiClient]:
    connection = Connection(server=server.url, source="the test", ca_data=server.ca_pem.encode(), token=server.token)
    async with ApiClient(connection) as client:
        yield client


async def created(client: ApiClient, **metadata: Any) -> Pod:
    spec = {"containers": [{"name": "main", "image": "pause"}]}
    await client.create(Pod.KIND, {"metadata": {"name": "web"} | metadata, "spec": spec}, "default")
    return await client.get_as(Pod, "web", "default")


async def test_what_others_wrote_meanwhile_stays(client):
    pod = await created(client, annotations={"a": "1", "b": "1"}, labels={"l": "1"})
    await client.patch(Pod.KIND, "web", "default", {"metadata": {"annotations": {"b": "2", "c": "2"}}})
    written = await ApiPodWriter(client, InstantClock()).patch(
        pod, annotations={"a": None, "d": "3"}, labels={"m": "3"}
    )
    assert (written.annotations, written.labels) == ({"b": "2", "c": "2", "d": "3"}, {"l": "1", "m": "3"})


async def test_a_recreated_pod_is_left_alone(client):
    await created(client)
    gone = Pod(metadata=ObjectMeta(name="web", namespace="default", uid="another"))
    with pytest.raises(ApiError):
        await ApiPodWriter(client, InstantClock()).patch(gone, annotations={"a": "1"})
    assert (await client.get_as(Pod, "web", "default")).annotations == {}


async def test_a_pod_that_is_gone_is_reported_at_once(client):
    clock = InstantClock()
    with pytest.raises(ApiError, match="not found"):
        await ApiPodWriter(client, clock).patch(a_pod("web"), annotations={"a": "1"})


async def test_a_malformed_key_is_refused_before_anything_is_sent():
    async with ApiClient(Connection(server="https://127.0.0.1:1", source="the test")) as nowhere:
        with pytest.raises(Fault, match='label "rack": "r 1": a valid label must be'):
            await ApiPodWriter(nowhere, InstantClock()).patch(a_pod("web"), labels={"rack": "r 1"})


class Busy:
    """An API server that fails so many times."""

    def __init__(self, *failures: Exception) -> None:
        self.failures = list(failures)
        self.requested = 0

    async def patch(self, kind: object, name: str, namespace: str, body: Any, *, subresource: Any) -> dict[str, Any]:
        self.requested += 1
        if self.failures:
            raise self.failures.pop(0)
        return {"metadata": {"name": name, "namespace": namespace, "annotations": body["metadata"]["annotations"]}}


NO_TIME, CONFLICT = ApiError(503, "ServiceUnavailable", "no time"), ApiError(409, "Conflict", "try again")
LOST, INVALID = Unreachable("the connection was cut"), ApiError(422, "Invalid", "no")


@pytest.mark.parametrize("failures", [[NO_TIME], [CONFLICT, CONFLICT], [LOST, NO_TIME, CONFLICT]])
async def test_what_may_pass_is_retried(failures):
    server: Any = Busy(*failures)
    written = await ApiPodWriter(server, InstantClock()).patch(a_pod("web"), annotations={"a": "1"})
    assert (written.annotations, server.requested) == ({"a": "1"}, len(failures) + 1)


@pytest.mark.parametrize(("failures", "requested"), [([NO_TIME] * 9, 4), ([INVALID] * 9, 1)])
async def test_retries_are_bounded(failures, requested):
    server: Any = Busy(*failures)
    with pytest.raises(ApiError, match=str(failures[0])):
        await ApiPodWriter(server, InstantClock()).patch(a_pod("web"), annotations={"a": "1"})
    assert server.requested == requested


async def test_a_shadow_writes_nothing(server, client):
    pod = await created(client)
    connection = Connection(server=server.url, source="the test", ca_data=server.ca_pem.encode(), token=server.token)
    async with ReadOnlyClient(connection) as shadow:
        with pytest.raises(Fault, match="a shadow only reads, but was about to send PATCH"):
            await ApiPodWriter(shadow, InstantClock()).patch(pod, annotations={"a": "1"})
    assert (await client.get_as(Pod, "web", "default")).annotations == {}
