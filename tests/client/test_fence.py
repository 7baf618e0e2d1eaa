"""Writes of a replica whose lease has expired: none is sent, none is lost; reads and renewals go on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from tests.client.conftest import FakeServer, InstantClock, until

from mooring.base.errors import Unreachable
from mooring.client import ApiClient
from mooring.client.fence import WriteFence
from mooring.objects import Kind

PODS = Kind("", "v1", "Pod", "pods")
LEASE_SECONDS = 15.0

Write = Callable[[ApiClient], Awaitable[Any]]
WRITES: dict[str, Write] = {
    "a binding": lambda client: client.bind("default", "web", "u1", "here"),
    "an eviction": lambda client: client.delete(PODS, "web", "default", uid="u1"),
    "a deletion without a body": lambda client: client.delete(PODS, "web", "default"),
    "a status": lambda client: client.patch(PODS, "web", "default", {"status": {}}, subresource="status"),
    "an event": lambda client: client.create(Kind("", "v1", "Event", "events"), {"metadata": {}}, "default"),
    "a claim": lambda client: client.update(PODS, {"metadata": {"namespace": "default", "name": "web"}}),
}


class Time:
    """What the fence goes by; a suspended machine moves it, and nothing else."""

    def __init__(self) -> None:
        self.seconds = 100.0

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture
def time() -> Time:
    return Time()


@pytest.fixture
def fence(time: Time) -> WriteFence:
    fence = WriteFence(time)
    fence.extend(time() + LEASE_SECONDS)
    return fence


@pytest.fixture
async def client(server: FakeServer, clock: InstantClock, fence: WriteFence) -> AsyncIterator[ApiClient]:
    async with ApiClient(server.connection(), clock=clock, fence=fence) as client:
        yield client


async def steps(count: int = 200) -> None:
    """Let the others do all that they can do."""
    for _ in range(count):
        await asyncio.sleep(0)


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES.keys())
async def test_a_write_waits_from_the_moment_the_lease_has_expired_until_it_is_renewed(
    client, server, fence, time, write
):
    server.lists += [{}] * 3
    await write(client)
    time.seconds += LEASE_SECONDS + 0.001
    held = asyncio.create_task(write(client))
    await client.get(PODS, "web", "default")  # reads go on, on the same connections
    await steps()
    assert [method for method, *_ in server.requests][1:] == ["GET"]

    fence.extend(time() + LEASE_SECONDS)
    await held
    assert server.requests[2] == server.requests[0]


async def test_the_lease_counts_to_its_last_moment(client, server, time):
    server.lists.append({})
    time.seconds += LEASE_SECONDS
    await client.bind("default", "web", "u1", "here")
    assert len(server.requests) == 1


async def test_before_the_first_lease_nothing_is_held_back(server, clock):
    server.lists.append({})
    async with ApiClient(server.connection(), clock=clock, fence=WriteFence()) as standby:
        await standby.bind("default", "web", "u1", "here")
    assert len(server.requests) == 1


async def test_a_write_that_waits_for_its_turn_is_checked_when_its_turn_comes(server, clock, fence, time):
    slow, may_respond = asyncio.Event(), asyncio.Event()

    async def respond(request):
        slow.set()
        await may_respond.wait()
        return server.plain({})

    server.respond = respond
    async with ApiClient(server.connection(), clock=clock, in_flight=1, fence=fence) as client:
        first = asyncio.create_task(client.get(PODS, "web", "default"))
        await slow.wait()
        queued = asyncio.create_task(client.bind("default", "web", "u1", "here"))
        await steps()
        time.seconds += LEASE_SECONDS + 1
        may_respond.set()
        await first
        await client.get(PODS, "web", "default")  # it holds up nothing else
        assert [method for method, *_ in server.requests] == ["GET", "GET"]
        queued.cancel()


async def test_a_write_that_is_paced_is_checked_after_the_wait(server, fence, time):
    class Pausing(InstantClock):
        async def sleep(self, seconds: float) -> None:
            time.seconds += LEASE_SECONDS + 1  # the machine is suspended while we wait
            await super().sleep(seconds)

    server.lists.append({})
    async with ApiClient(server.connection(), clock=Pausing(), qps=1, burst=1, fence=fence) as client:
        await client.bind("default", "first", "u1", "here")
        second = asyncio.create_task(client.bind("default", "second", "u2", "here"))
        await steps()
        assert len(server.requests) == 1
        second.cancel()


async def test_a_retry_after_the_servers_delay_is_checked_again(client, server, fence, time):
    async def respond(request):
        time.seconds += LEASE_SECONDS + 1
        return server.plain((429, {"code": 429, "message": "busy"}, {"Retry-After": "1"}))

    server.respond = respond
    retried = asyncio.create_task(client.bind("default", "web", "u1", "here"))
    await until(lambda: bool(server.requests))
    await steps()
    assert len(server.requests) == 1
    server.respond = None
    server.lists.append({})
    fence.extend(time() + LEASE_SECONDS)
    await retried
    assert len(server.requests) == 2


@pytest.mark.parametrize("passes", range(3))
async def test_the_last_check_is_where_bytes_are_written(server, clock, passes):
    """However many checks pass before the pause, no byte is sent after it."""
    checks = 0

    def now() -> float:
        nonlocal checks
        checks += 1
        return 0.0 if checks <= passes else 100.0

    fence = WriteFence(now)
    fence.extend(LEASE_SECONDS)
    server.lists.append({})
    async with ApiClient(server.connection(), clock=clock, fence=fence) as client:
        held = asyncio.create_task(client.bind("default", "web", "u1", "here"))
        await until(lambda: checks > passes or held.done())
        await steps()
        assert len(server.requests) == (1 if passes else 0)  # one check, and the kernel has the bytes
        held.cancel()


async def test_a_fence_that_was_closed_stays_closed(client, server, fence, time):
    fence.close()
    fence.extend(time() + LEASE_SECONDS)
    held = asyncio.create_task(client.bind("default", "web", "u1", "here"))
    await steps()
    assert server.requests == []
    held.cancel()


async def test_a_client_beside_another_is_held_back_with_it(client, server, time):
    time.seconds += LEASE_SECONDS + 1
    async with client.beside("mooring events") as other:
        held = asyncio.create_task(other.bind("default", "web", "u1", "here"))
        await steps()
        assert server.requests == []
        held.cancel()


async def test_writes_in_flight_are_cut_off_when_the_lease_could_not_be_renewed(client, server, fence, time):
    """A server that stalls must not find them when it goes on. What became of them is unknown, so they are retried."""
    gone = asyncio.Event()

    async def respond(request):
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:  # the connection was closed
            gone.set()
            raise

    server.respond = respond
    writing = asyncio.create_task(client.bind("default", "web", "u1", "here"))
    reading = asyncio.create_task(client.get(PODS, "web", "default"))
    await until(lambda: len(server.requests) == 2)
    fence.suspend()
    with pytest.raises(Unreachable):
        await writing
    await gone.wait()
    assert not reading.done()
    reading.cancel()

    server.respond = None
    server.lists.append({})
    retried = asyncio.create_task(client.bind("default", "web", "u1", "here"))
    await steps()
    assert len(server.requests) == 2
    fence.extend(time() + LEASE_SECONDS)
    await retried


async def test_a_write_that_was_not_sent_is_not_counted_as_a_request(server, clock, fence, time):
    codes: list[str] = []

    class Observer:
        def responded(self, method: str, host: str, code: str, seconds: float, sent: int, /) -> None:
            codes.append(code)

        def received(self, method: str, host: str, size: int, /) -> None: ...
        def held_back(self, method: str, host: str, seconds: float, /) -> None: ...

    server.lists.append({})
    time.seconds += LEASE_SECONDS + 1
    async with ApiClient(server.connection(), clock=clock, fence=fence, observer=Observer()) as client:
        held = asyncio.create_task(client.bind("default", "web", "u1", "here"))
        await steps()
        fence.extend(time() + LEASE_SECONDS)
        await held
    assert codes == ["200"]
