"""Load-aware plugins in a live scheduler: a source that lies or hangs has events, and pods are bound meanwhile."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import web
from tests.scheduler.conftest import (
    EVENTS,
    LOOK_AGAIN_SECONDS,
    PATIENCE_SECONDS,
    Live,
    a_configuration,
    a_live_scheduler,
    a_profile,
)

from mooring.apiserver import EmbeddedApiServer
from mooring.objects import Node
from mooring.plugins.community.trimaran import load_collector, load_sources


@pytest.fixture(autouse=True)
def looks_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(load_collector, "REFRESH_SECONDS", 0.05)


class LoadWatcher:
    """Responds as the test sets it."""

    def __init__(self) -> None:
        self.loads: dict[str, float] = {}
        self.hangs = False
        self.over = asyncio.Event()
        self.address = ""

    async def response(self, request: web.BaseRequest) -> web.StreamResponse:
        if self.hangs:
            await self.over.wait()
        nodes = {
            name: {"metrics": [{"type": "CPU", "operator": "AVG", "value": load}]} for name, load in self.loads.items()
        }
        return web.json_response({"window": {"end": int(time.time())}, "data": {"NodeMetricsMap": nodes}})

    @property
    def configuration(self) -> str:
        args = json.dumps([{"name": "TargetLoadPacking", "args": {"watcherAddress": self.address}}])
        return a_configuration(a_profile("default-scheduler", plugins=["TargetLoadPacking"], args=args))


@pytest.fixture
async def watcher() -> AsyncIterator[LoadWatcher]:
    stand_in = LoadWatcher()
    server = web.ServerRunner(web.Server(stand_in.response), shutdown_timeout=0)
    await server.setup()
    await web.TCPSite(server, "127.0.0.1", 0).start()
    stand_in.address = f"http://127.0.0.1:{server.addresses[0][1]}"
    yield stand_in
    stand_in.over.set()
    await server.cleanup()


async def event(live: Live, namespace: str, reason: str) -> dict[str, Any]:
    """Wait for the event; there is one of it."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            found = [each for each in await live.client.list(EVENTS, namespace) if each["reason"] == reason]
            if found:
                assert len(found) == 1
                return found[0]
            await asyncio.sleep(LOOK_AGAIN_SECONDS)


async def test_a_node_that_the_source_lies_about_has_a_warning_and_pods_are_bound(
    server: EmbeddedApiServer, watcher: LoadWatcher
):
    watcher.loads = {"one": 20.0, "two": -5.0}
    async with a_live_scheduler(server, watcher.configuration) as live:
        await live.node("one")
        await live.node("two")
        written = await event(live, "default", "ImpossibleNodeLoad")
        await live.pod("web")
        assert await live.bound("web") == ["one"]
        uid = (await live.client.get(Node.KIND, "two"))["metadata"]["uid"]
        regarding = written["regarding"]
        assert (regarding["kind"], regarding["name"], regarding["uid"]) == ("Node", "two", uid)
        assert (written["type"], written["reportingController"]) == ("Warning", "mooring")
        assert written["note"] == (
            f"TargetLoadPacking: {watcher.address}/watcher reports a load of this node that is impossible;"
            " that does not count"
        )


async def test_a_source_that_hangs_has_a_warning_on_the_lease_until_it_recovers_and_pods_are_bound(
    server: EmbeddedApiServer, watcher: LoadWatcher, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(load_sources, "TIMEOUT_SECONDS", 0.5)
    watcher.loads, watcher.hangs = {"one": 20.0}, True
    async with a_live_scheduler(server, watcher.configuration) as live:
        await live.node("one")
        await live.pod("web")
        assert await live.bound("web") == ["one"]
        written = await event(live, "kube-system", "LoadSourceFailed")
        assert (written["regarding"]["kind"], written["regarding"]["name"]) == ("Lease", "kube-scheduler")
        assert (written["type"], "did not respond within" in written["note"]) == ("Warning", True)
        monkeypatch.setattr(load_sources, "TIMEOUT_SECONDS", PATIENCE_SECONDS)
        watcher.hangs = False
        watcher.over.set()
        assert (await event(live, "kube-system", "LoadSourceRecovered"))["type"] == "Normal"


async def test_a_standby_writes_nothing_until_it_leads(server: EmbeddedApiServer, watcher: LoadWatcher):
    watcher.loads = {"one": -1.0, "two": 20.0}
    leads = asyncio.Event()

    async def may_schedule() -> None:
        await leads.wait()

    async with a_live_scheduler(server, watcher.configuration, may_schedule=may_schedule) as live:
        await live.node("one")
        await live.node("two")
        (published,) = [
            each for instance in live.core.assembly.current.instances.values() for each in instance.published
        ]
        # The lie is about a node that the scheduler knows, and was reported more than once.
        await live.until(lambda: None not in (live.core.state.node("one"), live.core.state.node("two")))
        seen = published.version
        await live.until(
            lambda: (
                published.version > seen + 2
                and (latest := published.latest) is not None
                and latest.node_problems
                and not latest.unknown_node
            )
        )
        await live.scheduler.reporter.flush(PATIENCE_SECONDS)
        assert [*await live.client.list(EVENTS, "default"), *await live.client.list(EVENTS, "kube-system")] == []
        leads.set()
        assert (await event(live, "default", "ImpossibleNodeLoad"))["regarding"]["name"] == "one"
