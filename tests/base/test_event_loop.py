"""A descriptor is closed once: to close it again closes another's."""

from __future__ import annotations

import asyncio
import os
import select
import socket
import ssl
import struct
from collections.abc import Callable

import pytest

from mooring.base.event_loop import EventLoop

AT_ONCE = struct.pack("ii", 1, 0)


def reset(server: socket.socket) -> None:
    server.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, AT_ONCE)
    server.close()


def respond_in_the_clear(server: socket.socket) -> None:
    server.sendall(b"SSH-2.0-here\r\n")


FAILURES: dict[str, tuple[Callable[[socket.socket], None], type[OSError]]] = {
    "the server resets the connection before the handshake": (reset, ConnectionResetError),
    "the server closes the connection before the handshake": (socket.socket.close, ConnectionResetError),
    "the server responds without TLS": (respond_in_the_clear, ssl.SSLError),
}


@pytest.fixture
def connected():
    """Our end of a connection and the server's."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        ours = socket.create_connection(listening.getsockname())
        theirs, _ = listening.accept()
    with ours, theirs:
        yield ours, theirs


async def handshake(sock: socket.socket) -> None:
    await asyncio.get_running_loop().create_connection(
        asyncio.Protocol, sock=sock, ssl=ssl.create_default_context(), server_hostname="server"
    )


def assert_closed_once(sock: socket.socket, descriptor: int) -> None:
    assert sock.fileno() == -1, "closed by the socket as well"
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(descriptor)


@pytest.mark.parametrize(("fail", "error"), FAILURES.values(), ids=FAILURES.keys())
def test_a_descriptor_is_closed_once_where_the_handshake_fails(connected, fail, error):
    ours, theirs = connected
    descriptor = ours.fileno()
    fail(theirs)
    arrived = select.poll()
    arrived.register(ours, select.POLLIN)
    arrived.poll()
    with asyncio.Runner(loop_factory=EventLoop) as runner, pytest.raises(error):
        runner.run(handshake(ours))
    assert_closed_once(ours, descriptor)


def test_a_descriptor_is_closed_once_where_the_handshake_is_cancelled(connected):
    ours, theirs = connected
    descriptor = ours.fileno()

    async def cancelled() -> None:
        loop = asyncio.get_running_loop()
        theirs.setblocking(False)
        shaking = asyncio.create_task(handshake(ours))
        assert await loop.sock_recv(theirs, 1)
        shaking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await shaking

    with asyncio.Runner(loop_factory=EventLoop) as runner:
        runner.run(cancelled())
    assert_closed_once(ours, descriptor)
