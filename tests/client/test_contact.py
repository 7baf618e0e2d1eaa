"""Pauses while the server is out of reach: they end when it responds to any request, and never become a busy loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from tests.client.conftest import FakeServer

from mooring.base.clock import ManualClock
from mooring.base.errors import Unreachable
from mooring.client import ApiClient
from mooring.client.transport import LEAST_PAUSE
from mooring.objects import Kind

NODES = Kind("", "v1", "Node", "nodes")
SECONDS = 10.0


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
async def client(server: FakeServer, clock: ManualClock) -> AsyncIterator[ApiClient]:
    async with ApiClient(server.connection(), clock=clock) as client:
        yield client


async def respond_once(client: ApiClient, server: FakeServer) -> None:
    server.respond = None
    server.lists.append({})
    await client.get(NODES, "n1")


async def cut_off(client: ApiClient, server: FakeServer) -> None:
    async def cut(request):
        request.transport.abort()
        return server.plain({})

    server.respond = cut
    with pytest.raises(Unreachable):
        await client.get(NODES, "n1")


async def steps() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


async def test_a_pause_ends_when_the_server_responds_to_another_request(client, server, clock):
    await cut_off(client, server)
    pauses = [asyncio.create_task(client.transport.pause(SECONDS)) for _ in range(3)]
    await steps()
    clock.advance(SECONDS * LEAST_PAUSE)
    await steps()
    assert not any(pause.done() for pause in pauses)
    await respond_once(client, server)
    await steps()
    assert all(pause.done() for pause in pauses)


async def test_a_pause_has_its_full_length_while_the_server_stays_away(client, server, clock):
    await respond_once(client, server)  # before it went away
    await cut_off(client, server)
    pause = asyncio.create_task(client.transport.pause(SECONDS))
    await steps()
    clock.advance(SECONDS * LEAST_PAUSE)
    await steps()
    clock.advance(SECONDS * (1 - LEAST_PAUSE) - 0.001)
    await steps()
    assert not pause.done()
    clock.advance(0.001)
    await steps()
    assert pause.done()


async def test_a_part_of_a_pause_is_kept_though_the_server_responds_to_others(client, server, clock):
    await respond_once(client, server)
    pause = asyncio.create_task(client.transport.pause(SECONDS))
    await steps()
    assert not pause.done()
    clock.advance(SECONDS * LEAST_PAUSE)
    await steps()
    assert pause.done()
