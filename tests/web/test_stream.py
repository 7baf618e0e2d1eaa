"""Changes of a live cluster reach the page: by list and watch, and by server-sent events."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from tests.web.pages import Page, served

from mooring.client import ApiClient, Connection
from mooring.config import default_configuration
from mooring.framework import FeatureGates
from mooring.objects import Pod
from mooring.plugins.catalogue import catalogue
from mooring.scheduler.introspection.explain_client import QueryResult
from mooring.web import stream
from mooring.web.access import Rights
from mooring.web.mirror import live_mirror

NODE = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "node-1"},
    "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "10"}},
}


def a_document(name: str, cpu: str = "1") -> dict[str, Any]:
    container = {"name": "main", "image": "app", "resources": {"requests": {"cpu": cpu}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"containers": [container]},
    }


@pytest.fixture
async def live(server) -> AsyncIterator[Page]:
    """The page of an embedded cluster."""
    server.load([NODE, a_document("waiting", cpu="64")])
    registry = catalogue()
    configuration = default_configuration(registry)
    connection = Connection(server=server.url, source="the test", ca_data=server.ca_pem.encode(), token=server.token)
    async with live_mirror(connection, configuration, registry, FeatureGates()) as mirror, served(mirror) as page:
        yield page


@pytest.fixture
async def client(server) -> AsyncIterator[ApiClient]:
    connection = Connection(server=server.url, source="the test", ca_data=server.ca_pem.encode(), token=server.token)
    async with ApiClient(connection) as client:
        yield client


async def events(page: Page) -> AsyncIterator[tuple[str, Any]]:
    async with page.raw("api/v1/stream", headers=page.headers) as response:
        assert response.status == 200
        kind = ""
        async for line in response.content:
            field, _, value = line.decode().rstrip("\n").partition(": ")
            if field == "event":
                kind = value
            elif field == "data":
                yield kind, json.loads(value)


async def test_a_live_cluster_is_listed(live):
    cluster = await live.get("cluster")
    assert (cluster["source"], cluster["counts"]) == ("live", {"nodes": 1, "pods": 1, "pending": 1, "bound": 0})
    [group] = (await live.get("queue"))["groups"]
    assert group["reason"] == "the only node has too little cpu"


async def test_the_queue_of_a_scheduler_here_adds_attempts(live, monkeypatch):
    pod = live.api.mirror.pods.get("default", "waiting")
    queued = {"attempts": 3, "place": "unschedulable", "nextAttempt": "2026-01-01T00:00:00Z"}
    calls = []

    def query(server, request):
        calls.append(request)
        return QueryResult([{"queuedPods": {pod.uid: queued}}, {"error": "another version"}, {"queuedPods": 7}], [])

    monkeypatch.setattr("mooring.web.api.query", query)
    for _ in range(2):
        [found] = (await live.get("queue"))["groups"][0]["pods"]
        assert (found["attempts"], found["nextAttempt"]) == (3, "2026-01-01T00:00:00Z")
    assert calls == [{"queue": True}]


async def test_decisions_and_changed_nodes_are_sent_as_they_happen(live, client, monkeypatch):
    monkeypatch.setattr(stream, "TICK_SECONDS", 0.01)
    wanted = {"arrived", "bound", "nodes", "queue"}
    seen: dict[str, Any] = {}
    async with asyncio.timeout(20):
        async for kind, data in events(live):
            if kind == "cluster" and not seen:
                seen["cluster"] = data
                created = await client.create(Pod.KIND, a_document("web"), "default")
                await client.bind("default", "web", created["metadata"]["uid"], "node-1")
            seen[data["kind"] if kind == "decision" else kind] = data
            if kind == "nodes" and "0" not in data["rows"]:
                del seen["nodes"]
            if wanted <= seen.keys():
                break
    assert (seen["bound"]["pod"], seen["bound"]["node"]) == ("default/web", "node-1")
    row = seen["nodes"]["rows"]["0"]
    assert (row["name"], row["pods"], row["requested"]["cpu"]) == ("node-1", 1, 1000)


async def test_streams_are_bounded_in_number(live, monkeypatch):
    monkeypatch.setattr(stream, "MOST_STREAMS", 1)
    async with asyncio.timeout(20):
        async for _ in events(live):
            await live.get("stream", 503)
            break


async def test_a_slow_client_loses_events_and_is_sent_resync(monkeypatch):
    monkeypatch.setattr(stream, "MOST_BUFFERED", 2)
    client = stream._Client(Rights("the test"))
    for number in range(5):
        client.put(f"event {number}".encode())
    assert client.take() == stream.RESYNC
    assert not client.buffer
    client.put(b"after")
    assert client.take() == b"after"


async def _first(stream: AsyncIterator[tuple[str, Any]], count: int) -> AsyncIterator[tuple[str, Any]]:
    for _ in range(count):
        yield await anext(stream)


async def test_a_page_that_opens_later_gets_the_decisions_before_it(live, client):
    async with asyncio.timeout(20):
        async for kind, _ in events(live):
            if kind == "cluster":
                await client.create(Pod.KIND, a_document("early"), "default")
            elif kind == "decision":
                break
        [found] = [data async for kind, data in _first(events(live), 2) if kind == "decisions"]
    assert [(each["kind"], each["pod"]) for each in found] == [("arrived", "default/early")]
    hidden = Rights("ada", all_namespaces=False, namespaces=frozenset({"shop"}))
    assert live.api.streams._recent(hidden) == []
