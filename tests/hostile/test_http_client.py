"""Responses of a hostile or broken server or proxy: what the client reads of them is bounded in time and memory.

The API server itself is trusted; a proxy in front of it, an extender, or what responds at a wrong address is not.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from tests.client.conftest import InstantClock
from tests.hostile.bounds import bounded

from mooring.base.errors import ApiError, MooringError
from mooring.client import ApiClient, Connection
from mooring.client.connection_pool import ConnectionPool, Endpoint
from mooring.client.http1 import BadResponse
from mooring.client.list_pages import MOST_EMPTY
from mooring.client.reflector import Reflector
from mooring.client.transport import TRIES_WHEN_BUSY
from mooring.objects import Kind, Pod
from mooring.snapshots import Spool, taking
from mooring.snapshots.kinds import SAVED
from mooring.snapshots.pruning import Pruning

HERE = "tests.hostile.test_http_client"
PODS = Kind("", "v1", "Pod", "pods")
KIB = 1024
ENDLESS_SECONDS = 40
"""For what has no end: it has to be given up for its size, long before."""

GET = b"GET / HTTP/1.1\r\nHost: here\r\n\r\n"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"

Bytes = Callable[[], Iterator[bytes]]


def endless(start: bytes, piece: bytes) -> Bytes:
    return lambda: itertools.chain([start], itertools.repeat(piece * (64 * KIB // len(piece) + 1)))


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


# What the server sends, and why the client gives up.
ENDLESS: dict[str, tuple[Bytes, str]] = {
    "a status line": (endless(b"HTTP/1.1 200 ", b"x"), "head of its response is too large"),
    "a header's name": (endless(b"HTTP/1.1 200 OK\r\n", b"x"), "head of its response is too large"),
    "a header's value": (endless(b"HTTP/1.1 200 OK\r\nX: ", b"x"), "head of its response is too large"),
    "headers": (endless(b"HTTP/1.1 200 OK\r\n", b"X: y\r\n"), "head of its response is too large"),
    "interim responses": (
        endless(b"", b"HTTP/1.1 103 Early Hints\r\nX: y\r\n\r\n"),
        "head of its response is too large",
    ),
    "interim responses without headers": (endless(b"", b"HTTP/1.1 100 Continue\r\n\r\n"), "head of its response is"),
    "headers after the body": (
        endless(CHUNKED + b"2\r\nhi\r\n0\r\n", b"X: y\r\n"),
        "head of its response is too large",
    ),
    "a header after the body": (endless(CHUNKED + b"0\r\nX: ", b"x"), "head of its response is too large"),
    "a chunk's extension": (endless(CHUNKED + b"2;x=", b"x"), "head of its response is too large|is not HTTP/1.1"),
    "a chunk's length": (endless(CHUNKED, b"0"), "is not HTTP/1.1|head of its response is too large"),
    "a body of chunks": (endless(CHUNKED, chunk(b"x" * 8 * KIB)), "its response is too large"),
    "a body of short chunks": (endless(CHUNKED, chunk(b"xy")), "its response is too large"),
    "a body that ends with the connection": (endless(b"HTTP/1.1 200 OK\r\n\r\n", b"x"), "its response is too large"),
    "a body of a length that is never reached": (
        endless(b"HTTP/1.1 200 OK\r\nContent-Length: 999999999999\r\n\r\n", b"x"),
        "its response is too large",
    ),
}


@asynccontextmanager
async def serving(pieces: Bytes, pause_seconds: float = 0.0) -> AsyncIterator[int]:
    """Sends this to each request, as fast as it is read, or slower."""
    writers: list[asyncio.StreamWriter] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            while await reader.readuntil(b"\r\n\r\n"):
                for piece in pieces():
                    writer.write(piece)
                    await writer.drain()
                    await asyncio.sleep(pause_seconds)

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for writer in writers:
            writer.transport.abort()
        await asyncio.sleep(0.01)  # until the event loop has closed the sockets


async def exchanged(pieces: Bytes, seconds: float, pause_seconds: float = 0.0) -> bytes:
    async with serving(pieces, pause_seconds) as port:
        pool = ConnectionPool(Endpoint.of(f"http://127.0.0.1:{port}"), None, None)
        try:
            return (await pool.exchange(GET, None, seconds=seconds)).body
        finally:
            await pool.close()


def why_endless_is_given_up(what: str) -> str:
    """In a child process."""
    from mooring.client import http1

    http1.LARGEST_BODY_BYTES = 64 * KIB * KIB
    try:
        asyncio.run(exchanged(ENDLESS[what][0], ENDLESS_SECONDS))
    except OSError as error:
        return str(error) or type(error).__name__
    return "it was not"


@pytest.mark.parametrize("what", ENDLESS)
def test_without_end(what: str):
    why = bounded(f"{HERE}:why_endless_is_given_up", what, cpu_seconds=20, memory_mib=250)
    assert any(part in why for part in ENDLESS[what][1].split("|")), why


# Each is refused, and nothing of it becomes the response to this or to the next request.
MALFORMED: dict[str, bytes] = {
    "a negative length": b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\nhi",
    "a length with a sign": b"HTTP/1.1 200 OK\r\nContent-Length: +2\r\n\r\nhi",
    "a length beyond 64 bits": b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999999\r\n\r\nhi",
    "two lengths": b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 1\r\n\r\nhi",
    "a length and chunks": b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "a chunk of negative length": CHUNKED + b"-2\r\nhi\r\n0\r\n\r\n",
    "a chunk beyond 64 bits": CHUNKED + b"fffffffffffffffff\r\nhi\r\n0\r\n\r\n",
    "a chunk that is longer than it claims": CHUNKED + b"1\r\nhi\r\n0\r\n\r\n",
    "a header with a NUL": b"HTTP/1.1 200 OK\r\nX: a\x00b\r\nContent-Length: 2\r\n\r\nhi",
    "a header split by a bare CR": b"HTTP/1.1 200 OK\r\nX: a\rY: b\r\nContent-Length: 2\r\n\r\nhi",
    "a space before the colon": b"HTTP/1.1 200 OK\r\nContent-Length : 2\r\n\r\nhi",
    "no header name": b"HTTP/1.1 200 OK\r\n: x\r\nContent-Length: 2\r\n\r\nhi",
    "another protocol": b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n",
    "HTTP/2": b"HTTP/2 200 OK\r\nContent-Length: 2\r\n\r\nhi",
    "SSH": b"SSH-2.0-OpenSSH_9.6\r\n",
    "TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
}


@pytest.mark.parametrize("response", MALFORMED.values(), ids=MALFORMED.keys())
def test_a_malformed_response_is_refused(response: bytes):
    with pytest.raises(BadResponse):
        asyncio.run(exchanged(lambda: iter([response]), ENDLESS_SECONDS))


SLOW: dict[str, Bytes] = {
    "nothing": lambda: iter([]),
    "half a head": lambda: iter([b"HTTP/1.1 200 OK\r\nContent-"]),
    "interim responses only": lambda: iter([b"HTTP/1.1 100 Continue\r\n\r\n"]),
    "half a body": lambda: iter([b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nh"]),
    "half a chunk": lambda: iter([CHUNKED + b"2\r\nh"]),
    "a body without its last chunk": lambda: iter([CHUNKED + b"2\r\nhi\r\n"]),
}


@pytest.mark.parametrize("pieces", SLOW.values(), ids=SLOW.keys())
def test_what_does_not_arrive_is_not_waited_for_without_end(pieces: Bytes):
    with pytest.raises(TimeoutError):
        asyncio.run(exchanged(pieces, 0.2))


def test_bytes_that_arrive_one_by_one_do_not_extend_the_time():
    def slowly() -> Iterator[bytes]:
        for byte in b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n" + b"x" * 1_000_000:
            yield bytes([byte])

    with pytest.raises(TimeoutError):
        asyncio.run(exchanged(slowly, 0.3, pause_seconds=0.001))


def test_a_body_that_is_compressed_although_nothing_accepts_that_is_not_expanded():
    compressed = b"\x1f\x8b\x08" + b"\x00" * 100
    head = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(compressed)
    assert asyncio.run(exchanged(lambda: iter([head + compressed]), ENDLESS_SECONDS)) == compressed


# -- what the layers above make of it


@asynccontextmanager
async def client_of(pieces: Bytes) -> AsyncIterator[ApiClient]:
    async with serving(pieces) as port:
        connection = Connection(server=f"http://127.0.0.1:{port}", source="a test")
        async with ApiClient(connection, clock=InstantClock()) as client:
            yield client


@pytest.mark.parametrize("value", [b"\xb2", b"9" * 5000, b"-1", b"soon", b"1e9", b"\xd9\xa1"])
def test_a_delay_that_is_no_number_is_a_second(value: bytes):
    """Also digits that int() does not read, and more of them than it reads."""
    head = b"HTTP/1.1 503 Busy\r\nRetry-After: " + value + b"\r\nContent-Length: 0\r\n\r\n"

    async def slept() -> list[float]:
        async with client_of(lambda: iter([head])) as client:
            with pytest.raises(ApiError):
                await client.get(PODS, "web", "default")
            assert isinstance(client.clock, InstantClock)
            return client.clock.slept

    assert asyncio.run(slept()) == [1.0] * (TRIES_WHEN_BUSY - 1)


def refusal_without_end() -> str:
    """In a child process: a watch that is refused at length."""

    async def watch() -> str:
        refused = endless(b"HTTP/1.1 403 Forbidden\r\nTransfer-Encoding: chunked\r\n\r\n", chunk(b"x" * 8 * KIB))
        async with client_of(refused) as client:
            try:
                async with client.transport.stream("/api/v1/pods?watch=true", seconds=ENDLESS_SECONDS):
                    return "it was not"
            except ApiError as error:
                return str(error.code)

    return asyncio.run(watch())


def test_a_watch_that_is_refused_without_end():
    assert bounded(f"{HERE}:refusal_without_end", cpu_seconds=20, memory_mib=250) == "403"


def event_without_end() -> str:
    """In a child process: a line of a watch without an end."""

    class Feed:
        def found(self, found: Any) -> None: ...
        def listed(self, present: Any) -> None: ...
        def changed(self, found: Any) -> None: ...
        def deleted(self, found: Any) -> None: ...

    async def watch() -> str:
        started = endless(CHUNKED, chunk(b'{"type":"ADDED","object":' + b" " * 8 * KIB))
        async with client_of(started) as client:
            reflector: Any = Reflector(client, Pod, Feed())
            try:
                async with client.transport.stream("/api/v1/pods?watch=true", seconds=ENDLESS_SECONDS) as chunks:
                    await reflector._follow(chunks)
            except MooringError as error:
                return str(error)
        return "it was not"

    return asyncio.run(watch())


def test_an_event_of_a_watch_without_end():
    why = bounded(f"{HERE}:event_without_end", cpu_seconds=30, memory_mib=500)
    assert "an event of more than" in why


# -- lists


def pages(token: Callable[[int], str], items: str = "") -> Bytes:
    """Each response is a page that leads to another one."""
    numbers = itertools.count()

    def page() -> Iterator[bytes]:
        body = b'{"metadata":{"continue":"%b"},"items":[%b]}' % (token(next(numbers)).encode(), items.encode())
        yield b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body

    return page


async def _reflected(client: ApiClient) -> object:
    feed: Any = type("Feed", (), {"found": lambda *_: None})()
    return await Reflector(client, Pod, feed)._pages(500)


async def _snapshot(client: ApiClient) -> None:
    with Spool() as spool:
        await taking._list(client, spool, Pruning(()), SAVED[0], lambda *_: None)


LISTING: dict[str, Callable[[ApiClient], Any]] = {
    "the client": lambda client: client.list(PODS),
    "an informer": _reflected,
    "a snapshot": _snapshot,
}
ENDLESS_LISTS = {
    "one token for ever": (pages(lambda _: "again", '{"metadata":{"name":"a"}}'), 2),
    "other tokens without objects": (pages(str), MOST_EMPTY),
    "pages without number": (pages(str, '{"metadata":{"name":"a"}}'), 300),
}


@pytest.mark.parametrize("listing", LISTING.values(), ids=LISTING.keys())
@pytest.mark.parametrize(("endless_list", "count"), ENDLESS_LISTS.values(), ids=ENDLESS_LISTS.keys())
def test_a_list_whose_continue_never_ends_is_given_up(monkeypatch, listing, endless_list: Bytes, count: int):
    monkeypatch.setattr("mooring.client.list_pages.MOST_PAGES", 300)

    async def listed() -> str:
        async with client_of(endless_list) as client:
            with pytest.raises(ApiError, match="does not end") as given_up:
                await listing(client)
        return str(given_up.value)

    assert f"after {count:,} pages" in asyncio.run(asyncio.wait_for(listed(), 60))
