"""One extender over a connection that ends when it likes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest
from msgspec import Raw

from mooring.client.fence import WriteFence
from mooring.config.model import Extender
from mooring.scheduler.extenders.client import ExtenderClient, ExtenderFault
from mooring.testing import a_pod

POD = Raw(b"{}")


@asynccontextmanager
async def served(
    response: Callable[[int], bytes | None], fence: WriteFence | None = None
) -> AsyncIterator[tuple[ExtenderClient, list[int]]]:
    """A server that sends this on request n, or cuts the connection; and on which connection each request came."""
    came: list[int] = []
    connections = 0

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        number = connections
        try:
            while (head := await reader.readuntil(b"\r\n\r\n")) is not None:
                length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length"))
                await reader.readexactly(int(length.partition(b":")[2]))
                came.append(number)
                body = response(len(came))
                if body is None:
                    break
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        except asyncio.IncompleteReadError:
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    verbs = {"filter_verb": "filter", "bind_verb": "bind"}
    config = Extender(f"http://127.0.0.1:{port}", node_cache_capable=True, **verbs)  # type: ignore[arg-type]
    client = ExtenderClient(config, fence)
    try:
        yield client, came
    finally:
        await client.close()
        server.close()


async def test_requests_share_a_connection():
    async with served(lambda _: b"{}") as (client, came):
        for _ in range(3):
            await client.filter(POD, [], [])
        assert came == [1, 1, 1]


async def test_a_request_is_sent_again_where_a_kept_connection_was_cut():
    async with served(lambda request: None if request == 2 else b"{}") as (client, came):
        await client.filter(POD, [], [])
        await client.filter(POD, [], [])
        assert came == [1, 1, 2]


async def test_a_request_is_repeated_once_and_not_on_a_new_connection():
    async with served(lambda request: b"{}" if request == 1 else None) as (client, came):
        await client.filter(POD, [], [])
        for _ in range(2):
            with pytest.raises(ExtenderFault, match="cannot be called for filter"):
                await client.filter(POD, [], [])
        assert came == [1, 1, 2, 3]


async def test_a_binding_is_requested_once_on_a_connection_of_its_own():
    async with served(lambda request: None if request == 3 else b"{}") as (client, came):
        await client.bind(a_pod(), "a")
        await client.bind(a_pod(), "a")
        with pytest.raises(ExtenderFault, match="cannot be called for bind"):
            await client.bind(a_pod(), "a")
        assert came == [1, 2, 3]


async def test_a_binding_waits_while_the_lease_has_expired_and_other_requests_do_not():
    seconds = 0.0
    fence = WriteFence(lambda: seconds)
    fence.extend(15)
    async with served(lambda _: b"{}", fence) as (client, came):
        seconds = 16
        binding = asyncio.create_task(client.bind(a_pod(), "a"))
        await client.filter(POD, [], [])
        assert not binding.done()
        assert came == [1]
        fence.extend(31)
        await binding
        assert len(came) == 2
