"""One HTTP/1.1 connection: how responses end, what is refused, when it can be used again, and when bytes leave."""

from __future__ import annotations

import array
import asyncio
import fcntl
import socket
import ssl
import termios
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import pytest
import uvloop
from hypothesis import given
from hypothesis import strategies as st

from mooring.client import http1
from mooring.client.connection_pool import ConnectionPool, Endpoint
from mooring.client.http1 import BadResponse, Disconnected, HttpConnection, Response

REQUEST = b"GET / HTTP/1.1\r\nHost: here\r\n\r\n"
LARGE_REQUEST = b"PUT / HTTP/1.1\r\nHost: here\r\nContent-Length: 100000\r\n\r\n" + b"x" * 100_000
FAR = 1e9


class FakeTransport(asyncio.Transport):
    """Remembers what is written, and whether reading is paused."""

    def __init__(self) -> None:
        super().__init__()
        self.written = b""
        self.is_aborted = False
        self.is_paused = False

    def write(self, data: Any) -> None:
        self.written += bytes(data)

    def abort(self) -> None:
        self.is_aborted = True

    def is_closing(self) -> bool:
        return self.is_aborted

    def pause_reading(self) -> None:
        self.is_paused = True

    def resume_reading(self) -> None:
        self.is_paused = False


def a_connection() -> tuple[HttpConnection, FakeTransport]:
    connection, transport = HttpConnection(asyncio.get_running_loop()), FakeTransport()
    connection.attach(transport)
    return connection, transport


def shown(response: Response) -> tuple[int, bytes]:
    return response.status, response.body


# What arrives; whether the server then closes the connection; the response; whether the connection can be used again.
RESPONSES: dict[str, tuple[bytes, bool, tuple[int, bytes], bool]] = {
    "a length": (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi", False, (200, b"hi"), True),
    "an empty body": (b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", False, (200, b""), True),
    "chunks": (
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n6\r\n there\r\n0\r\n\r\n",
        False,
        (200, b"hi there"),
        True,
    ),
    "no content": (b"HTTP/1.1 204 No Content\r\n\r\n", False, (204, b""), True),
    "a body until the end": (b"HTTP/1.1 200 OK\r\n\r\nhi", True, (200, b"hi"), False),
    "HTTP/1.0": (b"HTTP/1.0 400 Bad Request\r\n\r\nno TLS here", True, (400, b"no TLS here"), False),
    "the last one": (
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi",
        False,
        (200, b"hi"),
        False,
    ),
    "an interim response before it": (
        b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\nhi",
        False,
        (201, b"hi"),
        True,
    ),
    "a second response behind it": (
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhiHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nho",
        False,
        (200, b"hi"),
        False,
    ),
}


@pytest.mark.parametrize(("data", "closes", "expected", "is_reusable"), RESPONSES.values(), ids=RESPONSES.keys())
@pytest.mark.parametrize("step", [1, 7, 10_000])
async def test_a_response_with(data: bytes, closes: bool, expected: Any, is_reusable: bool, step: int):
    connection, transport = a_connection()
    response = connection.send(REQUEST, until=FAR)
    assert transport.written == REQUEST
    for start in range(0, len(data), step):
        connection.data_received(data[start : start + step])
    if closes:
        assert not response.done()
        connection.connection_lost(None)
    assert shown(await response) == expected
    assert connection.is_idle is is_reusable


@given(st.data())
def test_how_a_response_is_cut_into_packets_changes_nothing(data: st.DataObject):
    whole, closes, expected, _ = data.draw(st.sampled_from(list(RESPONSES.values())))
    cuts = sorted(data.draw(st.sets(st.integers(0, len(whole)))))

    async def received() -> Response:
        connection, _ = a_connection()
        response = connection.send(REQUEST, until=FAR)
        for start, end in zip([0, *cuts], [*cuts, len(whole)], strict=True):
            if start < end and not transport_closed(connection):
                connection.data_received(whole[start:end])
        if closes:
            connection.connection_lost(None)
        return await response

    assert shown(asyncio.run(received())) == expected


def transport_closed(connection: HttpConnection) -> bool:
    """Whether asyncio would deliver no more data."""
    return connection._transport is None or connection._transport.is_closing()


REFUSED: dict[str, tuple[bytes, str]] = {
    "no HTTP": (b"\x15\x03\x01\x00\x02\x02", "is not HTTP/1.1"),
    "another protocol": (
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\n",
        "is not HTTP/1.1",
    ),
    "two lengths": (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nhi", "is not HTTP/1.1"),
    "a head without end": (
        b"HTTP/1.1 200 OK\r\nX: " + b"x" * (http1.LARGEST_HEAD_BYTES + 1),
        "the head of its response is too large",
    ),
}


@pytest.mark.parametrize(("data", "message"), REFUSED.values(), ids=REFUSED.keys())
async def test_what_is_refused_is(data: bytes, message: str):
    connection, transport = a_connection()
    response = connection.send(REQUEST, until=FAR)
    connection.data_received(data)
    with pytest.raises(BadResponse, match=message):
        await response
    assert transport.is_aborted


@pytest.mark.parametrize("arrived", [b"", b"HTTP/1.1 200", b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nh"])
@pytest.mark.parametrize("error", [None, ConnectionResetError()])
async def test_a_response_that_breaks_off_is_no_response(arrived: bytes, error: Exception | None):
    connection, _ = a_connection()
    response = connection.send(REQUEST, until=FAR)
    if arrived:
        connection.data_received(arrived)
    connection.connection_lost(error)
    with pytest.raises(Disconnected):
        await response
    assert connection.has_received is bool(arrived)
    assert not connection.is_idle


async def test_a_body_until_the_end_that_is_reset_is_no_response():
    connection, _ = a_connection()
    response = connection.send(REQUEST, until=FAR)
    connection.data_received(b"HTTP/1.1 200 OK\r\n\r\nhal")
    connection.connection_lost(ConnectionResetError())
    with pytest.raises(Disconnected):
        await response


async def test_bytes_that_nothing_has_requested_close_the_connection():
    connection, transport = a_connection()
    connection.data_received(b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n")
    assert transport.is_aborted
    assert not connection.is_idle


async def test_a_response_that_does_not_arrive_in_time_ends_the_connection():
    connection, transport = a_connection()
    response = connection.send(REQUEST, until=0.0)
    with pytest.raises(TimeoutError):
        await response
    assert transport.is_aborted


async def test_the_time_of_one_response_does_not_end_the_next():
    loop = asyncio.get_running_loop()
    connection, transport = a_connection()
    first = connection.send(REQUEST, until=loop.time() + 0.001)
    connection.data_received(RESPONSES["a length"][0])
    await first
    second = connection.send(REQUEST, until=FAR)
    await asyncio.sleep(0.01)
    connection.data_received(RESPONSES["a length"][0])
    assert (await second).body == b"hi"
    assert not transport.is_aborted


class TestStreams:
    HEAD = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"

    async def test_the_head_is_there_before_the_body(self):
        connection, _ = a_connection()
        response = connection.send(REQUEST, streams=True, until=FAR)
        connection.data_received(self.HEAD)
        assert (await response).header("transfer-encoding") == "chunked"
        assert not connection.is_idle

    async def test_chunks_that_arrived_together_are_read_together(self):
        connection, _ = a_connection()
        connection.send(REQUEST, streams=True, until=FAR)
        connection.data_received(self.HEAD + b"2\r\nhi\r\n3\r\n yo\r\n")
        chunks = connection.chunks()
        assert await anext(chunks) == b"hi yo"
        connection.data_received(b"1\r\n!\r\n0\r\n\r\n")
        assert [chunk async for chunk in chunks] == [b"!"]

    async def test_what_arrived_before_a_cut_is_read_first(self):
        connection, _ = a_connection()
        connection.send(REQUEST, streams=True, until=FAR)
        connection.data_received(self.HEAD + b"2\r\nhi\r\n")
        connection.connection_lost(None)
        chunks = connection.chunks()
        assert await anext(chunks) == b"hi"
        with pytest.raises(Disconnected):
            await anext(chunks)

    async def test_a_reader_that_waits_is_woken_by_a_cut(self):
        connection, _ = a_connection()
        connection.send(REQUEST, streams=True, until=FAR)
        connection.data_received(self.HEAD)
        waiting = asyncio.ensure_future(anext(connection.chunks()))
        await asyncio.sleep(0)
        connection.connection_lost(ConnectionResetError())
        with pytest.raises(Disconnected):
            await waiting

    async def test_the_server_is_not_read_faster_than_the_reader_reads(self):
        connection, transport = a_connection()
        connection.send(REQUEST, streams=True, until=FAR)
        connection.data_received(self.HEAD)
        chunk = b"x" * (http1.UNREAD_BYTES // 2)
        wire = b"%x\r\n" % len(chunk) + chunk + b"\r\n"
        connection.data_received(wire)
        connection.data_received(wire)
        assert not transport.is_paused
        connection.data_received(wire)
        assert transport.is_paused
        assert len(await anext(connection.chunks())) == 3 * len(chunk)
        assert not transport.is_paused


@contextmanager
def silent_server(context: ssl.SSLContext | None) -> Iterator[tuple[int, Callable[[], socket.socket]]]:
    """Shakes hands and reads nothing afterwards; its socket shows how much lies in the kernel."""
    accepted: list[socket.socket] = []
    is_ready = threading.Event()

    def serve() -> None:
        sock, _ = listening.accept()
        accepted.append(sock if context is None else context.wrap_socket(sock, server_side=True))
        is_ready.set()

    def peer() -> socket.socket:
        assert is_ready.wait(30)
        return accepted[0]

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield listening.getsockname()[1], peer
        thread.join(30)
        for sock in accepted:
            sock.close()


def bytes_in_kernel(sock: socket.socket) -> int:
    size = array.array("i", [0])
    fcntl.ioctl(sock.fileno(), termios.FIONREAD, size)
    return size[0]


def bytes_to_send(connection: HttpConnection) -> int:
    """What the kernel has accepted and the peer has not."""
    assert connection._transport is not None
    size = array.array("i", [0])
    fcntl.ioctl(connection._transport.get_extra_info("socket").fileno(), termios.TIOCOUTQ, size)
    return size[0]


@asynccontextmanager
async def connected(port: int, context: ssl.SSLContext | None) -> AsyncIterator[HttpConnection]:
    scheme = "http" if context is None else "https"
    pool = ConnectionPool(Endpoint.of(f"{scheme}://127.0.0.1:{port}"), None, None)
    connection = await pool.connect(context, asyncio.get_running_loop().time() + 30)
    try:
        yield connection
    finally:
        pool.discard(connection)


@pytest.mark.parametrize("new_loop", [asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
@pytest.mark.parametrize("is_tls", [False, True], ids=["plain", "TLS"])
@pytest.mark.parametrize("request_", [REQUEST, LARGE_REQUEST], ids=["small", "large"])
def test_a_request_is_in_the_kernel_when_send_returns(
    new_loop: Callable[[], Any], is_tls: bool, request_: bytes, authority, tmp_path
):
    """So nothing, not even the rest of the event loop's pass, lies between the check of the lease and the kernel."""
    ours = ssl.create_default_context(cadata=authority.ca.decode()) if is_tls else None
    theirs = authority.server_context(tmp_path) if is_tls else None

    async def left() -> int:
        with silent_server(theirs) as (port, peer):
            async with connected(port, ours) as connection:
                sock = await asyncio.to_thread(peer)
                before = bytes_in_kernel(sock)
                response = connection.send(request_, until=FAR)
                # Without giving the event loop a turn.
                arrived = bytes_in_kernel(sock) + bytes_to_send(connection) - before
                connection.time_out()
                with pytest.raises(TimeoutError):
                    await response
                return arrived

    loop = new_loop()
    try:
        assert loop.run_until_complete(left()) >= len(request_)
    finally:
        loop.close()
