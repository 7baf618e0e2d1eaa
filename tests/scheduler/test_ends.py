"""A scheduler can be ended at every moment of its life, and leaves nothing running."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from aiohttp import web
from tests.scheduler.churn import until
from tests.scheduler.conftest import HEAD, PATIENCE_SECONDS, a_configuration, a_profile

from mooring.base.errors import Fault, Unreachable
from mooring.client import ApiClient, Connection
from mooring.config import load_configuration
from mooring.framework import Cycle, NodeView, Plugin, Pod
from mooring.plugins.catalogue import catalogue
from mooring.scheduler import Scheduler, build_scheduler


class NeverStarts(Plugin):
    """Starts for ever."""

    trace: list[str] = []

    def score(self, pod: Pod, node: NodeView, cycle: Cycle) -> int:
        return 1

    async def start(self) -> None:
        self.trace.append("start")
        await asyncio.Event().wait()

    async def stop(self) -> None:
        self.trace.append("stop")


class Halting:
    """An API server that responds up to a point, and hangs there."""

    def __init__(self, *, silent: str, version: int = 200) -> None:
        self.silent = silent
        self.version = version
        """The status of its response to a request for its version."""
        self.hung = asyncio.Event()
        self._release = asyncio.Event()

    async def response(self, request: web.BaseRequest) -> web.StreamResponse:
        is_streaming_list = "sendInitialEvents" in request.query  # refused, as older servers do
        if request.path.endswith(self.silent) or ("watch" in request.query and not is_streaming_list):
            self.hung.set()
            await self._release.wait()
        if is_streaming_list:
            return web.json_response({"code": 422, "reason": "Invalid"}, status=422)
        if request.path == "/version":
            return web.json_response({"gitVersion": "v1.36.4", "message": "not now"}, status=self.version)
        return web.json_response({"metadata": {"resourceVersion": "1"}, "items": []})

    async def __aenter__(self) -> str:
        self._runner = web.ServerRunner(web.Server(self.response), shutdown_timeout=0.01)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        return f"http://127.0.0.1:{self._runner.addresses[0][1]}"

    async def __aexit__(self, *_: object) -> None:
        self._release.set()
        await self._runner.cleanup()


def a_scheduler(client: ApiClient, config: str = HEAD, plugins: tuple[type[Plugin], ...] = ()) -> Scheduler:
    registry = catalogue()
    for plugin in plugins:
        registry.add(plugin, "test")
    configuration = load_configuration(config, source="test.yaml", registry=registry).configuration
    return build_scheduler(client, configuration, registry)


async def ended(scheduler: Scheduler, running: asyncio.Task[None]) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        scheduler.stop()
        await running


def left(before: set[asyncio.Task[Any]]) -> list[str]:
    return [repr(task) for task in asyncio.all_tasks() - before if "aiohttp/web" not in repr(task)]


@pytest.mark.parametrize("silent", ["/version", "/nodes", "/pods"])
async def test_a_scheduler_can_be_ended_while_it_waits_for_its_first(silent, monkeypatch):
    monkeypatch.setattr("mooring.scheduler.shutdown.LAST_SECONDS", 10 * PATIENCE_SECONDS)
    halting = Halting(silent=silent)
    async with halting as url, ApiClient(Connection(server=url, source="the test")) as client:
        before = asyncio.all_tasks()
        scheduler = a_scheduler(client)
        running = asyncio.create_task(scheduler.run())
        await asyncio.wait_for(halting.hung.wait(), PATIENCE_SECONDS)
        await ended(scheduler, running)
        assert not scheduler.ready.is_set()
        await until(lambda: not left(before), lambda: f"left running: {left(before)}")


async def test_a_scheduler_can_be_ended_while_a_plugin_starts():
    NeverStarts.trace.clear()
    config = a_configuration(a_profile("default-scheduler", plugins=["NeverStarts"]))
    async with Halting(silent="/none") as url, ApiClient(Connection(server=url, source="the test")) as client:
        before = asyncio.all_tasks()
        scheduler = a_scheduler(client, config, (NeverStarts,))
        running = asyncio.create_task(scheduler.run())
        await until(lambda: NeverStarts.trace == ["start"], lambda: "the plugin was not started")
        await ended(scheduler, running)
        assert NeverStarts.trace == ["start", "stop"]
        await until(lambda: not left(before), lambda: f"left running: {left(before)}")


async def test_a_plugin_that_was_not_started_is_not_stopped():
    NeverStarts.trace.clear()
    config = a_configuration(a_profile("default-scheduler", plugins=["NeverStarts"]))
    halting = Halting(silent="/nodes")
    async with halting as url, ApiClient(Connection(server=url, source="the test")) as client:
        scheduler = a_scheduler(client, config, (NeverStarts,))
        running = asyncio.create_task(scheduler.run())
        await asyncio.wait_for(halting.hung.wait(), PATIENCE_SECONDS)
        await ended(scheduler, running)
    assert NeverStarts.trace == []


async def test_a_server_that_is_not_there_is_reported_at_once(unused_tcp_port):
    connection = Connection(server=f"http://127.0.0.1:{unused_tcp_port}", source="the test")
    async with ApiClient(connection) as client:
        with pytest.raises(Unreachable):
            await a_scheduler(client).run()


@pytest.mark.parametrize("code", [403, 500, 503])
async def test_a_server_that_starts_or_keeps_its_version_to_itself_is_lived_with(code, capsys):
    halting = Halting(silent="/none", version=code)
    async with halting as url, ApiClient(Connection(server=url, source="the test")) as client:
        scheduler = a_scheduler(client)
        running = asyncio.create_task(scheduler.run())
        await asyncio.wait_for(scheduler.ready.wait(), PATIENCE_SECONDS)
        await ended(scheduler, running)
    assert "Failed to read the API server's version" in capsys.readouterr().err


@pytest.mark.parametrize(("code", "logged"), [(401, "does not accept the credentials: not now"), (404, "responds 404")])
async def test_a_server_that_does_not_know_us_is_reported_at_once(code, logged):
    async with (
        Halting(silent="/none", version=code) as url,
        ApiClient(Connection(server=url, source="the test")) as client,
    ):
        with pytest.raises(Fault, match=rf"127.0.0.1:\d+ \(from the test\) {logged}"):
            await a_scheduler(client).run()
