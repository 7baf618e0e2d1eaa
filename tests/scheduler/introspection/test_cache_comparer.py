"""What an operator sees who compares the scheduler's cache with the API server."""

from __future__ import annotations

import asyncio

import pytest
from tests.scheduler.conftest import a_live_scheduler

from mooring.apiserver import EmbeddedApiServer
from mooring.base.clock import ManualClock
from mooring.scheduler.introspection.cache_comparer import CacheComparer
from mooring.testing import a_node_object


async def test_what_agrees_is_logged_as_such_and_everything_is_dumped(
    server: EmbeddedApiServer, capsys: pytest.CaptureFixture[str]
):
    async with a_live_scheduler(server) as live:
        await live.node("one")
        await live.pod("web")
        await live.pod("too-big", cpu="64")
        await live.bound("web")
        await live.refused("too-big")
        assert await live.scheduler.inspect() == []
    logged = capsys.readouterr().err
    assert '"Compared the cache with the API server" differences=0' in logged
    assert '"Dump of cached NodeInfo" node="one" pods="default/web"' in logged
    assert "unschedulable=1" in logged
    assert 'refusedBy="NodeResourcesFit"' in logged


async def test_a_difference_that_lasts_is_named(server: EmbeddedApiServer, capsys: pytest.CaptureFixture[str]):
    async with a_live_scheduler(server) as live:
        await live.node("one")
        await live.pod("web")
        await live.bound("web")
        clock = ManualClock()
        inspection = CacheComparer(live.client, live.scheduler.state, live.scheduler.queue, clock)
        live.scheduler.state.set_node(a_node_object("ghost"))
        looking = asyncio.ensure_future(inspection.run())
        while not looking.done():
            await asyncio.sleep(0)
            clock.advance(0.1)
        assert looking.result() == ["Node ghost is in the cache and does not exist."]
    assert '"Cache mismatch" what="Node ghost is in the cache and does not exist' in capsys.readouterr().err


async def test_a_server_that_does_not_respond_is_logged(server: EmbeddedApiServer, capsys: pytest.CaptureFixture[str]):
    async with a_live_scheduler(server) as live:
        await live.node("one")
        await live.pod("web")
        await live.bound("web")
        await live.client.close()
        assert await live.scheduler.inspect() == []
    assert "Failed to compare the cache with the API server" in capsys.readouterr().err
