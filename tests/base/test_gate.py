"""A gate before a server that closes nothing by itself: each limit alone; what happens when nothing can be accepted;
and how limits follow from the process's descriptors.
"""

from __future__ import annotations

import asyncio
import errno
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from mooring.base import gate as gate_module
from mooring.base.gate import RESERVED_DESCRIPTORS, ConnectionGate, GateLimits
from mooring.base.tls import make_identity


class Exhausted:
    """A listening socket that never accepts for want of descriptors, around a real one that can be watched."""

    def __init__(self, real: socket.socket, reason: int) -> None:
        self._real = real
        self._reason = reason
        self.tries = 0
        self.often_tried = asyncio.Event()

    def accept(self) -> Any:
        self.tries += 1
        if self.tries == 20:
            self.often_tried.set()
        raise OSError(self._reason, "no more")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)


@pytest.mark.parametrize("reason", [errno.EMFILE, errno.ENFILE, errno.EPERM])
async def test_accepting_pauses_while_it_fails(monkeypatch, capfd, reason):
    monkeypatch.setattr(gate_module, "PAUSE_SECONDS", 0.01)
    context = make_identity(["localhost"], "a test").ssl_context()
    real = socket.create_server(("127.0.0.1", 0))
    listening: Any = Exhausted(real, reason)
    gate = ConnectionGate(listening, context, asyncio.Protocol, log_name="test")
    with socket.create_connection(real.getsockname()):
        await listening.often_tried.wait()
    gate.close()
    gate.close()
    assert len(capfd.readouterr().err.splitlines()) == 1
    assert len(gate) == 0


@pytest.mark.parametrize(("reason", "tries"), [(errno.EMFILE, RESERVED_DESCRIPTORS + 1), (errno.EPERM, 1)])
async def test_nothing_is_tried_during_a_pause(monkeypatch, reason, tries):
    monkeypatch.setattr(gate_module, "PAUSE_SECONDS", 1e6)
    context = make_identity(["localhost"], "a test").ssl_context()
    real = socket.create_server(("127.0.0.1", 0))
    listening: Any = Exhausted(real, reason)
    gate = ConnectionGate(listening, context, asyncio.Protocol, log_name="test")
    with socket.create_connection(real.getsockname()):
        for _ in range(100):
            await asyncio.sleep(0)
    gate.close()
    assert listening.tries == tries


@pytest.mark.parametrize(("descriptors", "most", "of_a_client"), [(1_048_576, 256, 64), (360, 90, 45), (20, 8, 4)])
def test_connections_take_a_share_of_the_descriptors(descriptors, most, of_a_client):
    limits = GateLimits().within(descriptors)
    assert (limits.connections, limits.connections_of_a_client) == (most, of_a_client)


PATIENCE_SECONDS = 30
UNLIMITED = {
    "head_seconds": 1e9,
    "request_seconds": 1e9,
    "idle_seconds": 1e9,
    "linger_seconds": 1e9,
    "head_bytes": 2**30,
    "request_bytes": 2**30,
}
HEAD = b"GET / HTTP/1.1\r\nHost: here\r\n\r\n"
RESPONSE = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"


class Server(asyncio.Protocol):
    """Responds to the first request if it is to, and never to another."""

    does_respond, does_close = True, False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        if self.does_respond:
            self.does_respond = False
            self._transport.write(RESPONSE)
        if self.does_close:
            self._transport.close()


class Mute(Server):
    does_respond = False


class Closing(Server):
    does_close = True


Opened = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Client:
    """Connections to a gate, from addresses of this machine."""

    def __init__(self, gate: ConnectionGate, address: tuple[str, int]) -> None:
        self.gate = gate
        self._address = address
        self._tls = ssl.create_default_context()
        self._tls.check_hostname, self._tls.verify_mode = False, ssl.CERT_NONE
        self.opened: list[Opened] = []

    async def open(self, source: str = "127.0.0.1") -> Opened:
        self.opened.append(
            await asyncio.open_connection(
                *self._address, ssl=self._tls, local_addr=(source, 0), ssl_handshake_timeout=9
            )
        )
        return self.opened[-1]

    def open_blocking(self) -> ssl.SSLSocket:
        connection = socket.create_connection(self._address, timeout=PATIENCE_SECONDS)
        return self._tls.wrap_socket(connection, suppress_ragged_eofs=True)

    async def served(self) -> Opened:
        """A connection on which one request was served."""
        reader, writer = await self.open()
        writer.write(HEAD)
        assert await reader.readexactly(len(RESPONSE)) == RESPONSE
        return reader, writer


@asynccontextmanager
async def a_gate(server: type[Server] = Server, **limits: Any) -> AsyncIterator[Client]:
    context = make_identity(["localhost"], "a test").ssl_context()
    listening = socket.create_server(("127.0.0.1", 0))
    address = listening.getsockname()
    gate = ConnectionGate(listening, context, server, log_name="test", limits=GateLimits(**{**UNLIMITED, **limits}))
    client = Client(gate, address)
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            yield client
    finally:
        gate.close()
        for _, writer in client.opened:
            writer.transport.abort()


async def is_ended(reader: asyncio.StreamReader) -> bool:
    try:
        return not await reader.read()
    except ConnectionError:
        return True


def is_open(reader: asyncio.StreamReader) -> bool:
    return not reader.at_eof() and reader.exception() is None


async def stays_silent(client: Client) -> None:
    assert await is_ended((await client.open())[0])


async def idles(client: Client) -> None:
    assert await is_ended((await client.served())[0])


async def waits_for_a_response(client: Client) -> None:
    reader, writer = await client.open()
    writer.write(HEAD)
    assert await is_ended(reader)


async def stops_in_a_later_request(client: Client) -> None:
    reader, writer = await client.served()
    writer.write(HEAD[:20])
    assert await is_ended(reader)


async def sends_a_large_body(client: Client) -> None:
    reader, writer = await client.open()
    writer.write(HEAD + b"x" * 20_000)
    assert await is_ended(reader)


async def sends_a_large_later_request(client: Client) -> None:
    reader, writer = await client.served()
    writer.write(b"x" * 20_000)
    assert await is_ended(reader)


async def never_closes_its_side(client: Client) -> None:
    # Not asyncio's: its TLS closes the connection when the other side has.
    with await asyncio.to_thread(client.open_blocking) as connection:
        await asyncio.to_thread(connection.sendall, HEAD)
        while await asyncio.to_thread(connection.recv, 65_536):
            pass
        while len(client.gate):  # noqa: ASYNC110  # there is no event for it
            await asyncio.sleep(0.01)


Behaviour = Callable[[Client], Awaitable[None]]

CLOSED: dict[str, tuple[type[Server], dict[str, Any], Behaviour]] = {
    "one that sends no request": (Server, {"head_seconds": 0.05}, stays_silent),
    "an idle one": (Server, {"idle_seconds": 0.05}, idles),
    "one that waits for a response": (Mute, {"request_seconds": 0.05}, waits_for_a_response),
    "one that stops in a later request": (Server, {"request_seconds": 0.05}, stops_in_a_later_request),
    "one that sends a large body": (Mute, {"request_bytes": 10_000}, sends_a_large_body),
    "one that sends a large later request": (Server, {"request_bytes": 10_000}, sends_a_large_later_request),
    "one whose client never closes its side": (Closing, {"linger_seconds": 0.05}, never_closes_its_side),
}


@pytest.mark.parametrize(("server", "limits", "behave"), CLOSED.values(), ids=CLOSED.keys())
async def test_a_connection_is_closed(server, limits, behave):
    async with a_gate(server, **limits) as client:
        await behave(client)


async def test_all_clients_together_hold_a_bounded_number_of_connections():
    async with a_gate(connections=8, connections_of_a_client=4) as client:
        held = {source: [await client.open(source) for _ in range(4)] for source in ("127.0.0.2", "127.0.0.3")}
        assert len(client.gate) == 8
        for count in range(1, 4):
            reader, writer = await client.open("127.0.0.4")
            assert len(client.gate) == 8
            writer.write(HEAD)
            assert await reader.readexactly(len(RESPONSE)) == RESPONSE
            left = [sum(is_open(reader) for reader, _ in each) for each in held.values()]
            assert sum(left) == 8 - count
            assert min(left) >= 2


@pytest.mark.parametrize("sent", [b"", HEAD[:-1], HEAD[:20]], ids=["nothing", "all but a byte", "half a head"])
async def test_the_server_learns_of_a_connection_with_its_first_whole_head(sent):
    made = 0

    class Counting(Server):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            nonlocal made
            made += 1
            super().connection_made(transport)

    async with a_gate(Counting) as client:
        reader, writer = await client.open()
        writer.write(sent)
        await client.served()
        assert made == 1
        writer.write(HEAD[len(sent) :])
        assert await reader.readexactly(len(RESPONSE)) == RESPONSE
        assert made == 2


async def test_memory_is_given_back_after_many_connections(monkeypatch):
    given_back = asyncio.Event()
    monkeypatch.setattr(gate_module, "give_back_pages", given_back.set)
    monkeypatch.setattr(gate_module, "MANY", 8)
    async with a_gate(trim_seconds=0) as client:
        for _ in range(8):
            await client.open()
        assert not given_back.is_set()
        for _, writer in client.opened:
            writer.transport.abort()
        await given_back.wait()
