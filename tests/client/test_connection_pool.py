"""Connections to one server: which are used again, which are closed, and how proxies and names are used."""

from __future__ import annotations

import asyncio
import base64
import socket
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from tests.client.conftest import until

from mooring.client import connection_pool
from mooring.client.connection_pool import ConnectionPool, Endpoint
from mooring.client.http1 import BadResponse, Disconnected

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
GET = b"GET / HTTP/1.1\r\nHost: here\r\n\r\n"


class Peer:
    """Sends the nth response, or cuts the connection where that is None. Remembers each request and its connection."""

    def __init__(self, response: Callable[[int], bytes | None], *, cuts_after: int = 0) -> None:
        self.requests: list[bytes] = []
        self.connections: list[int] = []
        self.opened = 0
        self.closed = 0
        self._response = response
        self._cuts_after = cuts_after

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.opened += 1
        number = self.opened
        try:
            while True:
                self.requests.append(await reader.readuntil(b"\r\n\r\n"))
                self.connections.append(number)
                response = self._response(len(self.requests))
                if response is None:
                    return
                writer.write(response)
                if len(self.requests) == self._cuts_after:
                    return
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            self.closed += 1
            writer.close()


@asynccontextmanager
async def serving(peer: Any, context: ssl.SSLContext | None = None) -> AsyncIterator[int]:
    server = await asyncio.start_server(peer, "127.0.0.1", 0, ssl=context)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


@asynccontextmanager
async def pool_to(port: int, *, host: str = "127.0.0.1", **proxied: Any) -> AsyncIterator[ConnectionPool]:
    pool = ConnectionPool(Endpoint.of(f"http://{host}:{port}"), proxied.get("proxy"), None)
    try:
        yield pool
    finally:
        await pool.close()


async def exchange(pool: ConnectionPool, **options: Any) -> bytes:
    return (await pool.exchange(GET, options.pop("context", None), seconds=30, **options)).body


async def test_requests_one_after_another_share_a_connection():
    peer = Peer(lambda _: OK)
    async with serving(peer) as port, pool_to(port) as pool:
        assert [await exchange(pool) for _ in range(3)] == [b"ok"] * 3
    assert peer.connections == [1, 1, 1]


async def test_requests_at_the_same_time_have_a_connection_each():
    peer = Peer(lambda _: OK)
    async with serving(peer) as port, pool_to(port) as pool:
        await asyncio.gather(*(exchange(pool) for _ in range(3)))
        assert peer.opened == 3


async def test_a_request_that_wants_a_connection_of_its_own_gets_a_new_one():
    peer = Peer(lambda _: OK)
    async with serving(peer) as port, pool_to(port) as pool:
        await exchange(pool)
        await exchange(pool, is_new=True)
    assert peer.connections == [1, 2]


@pytest.mark.parametrize(
    ("is_idempotent", "expected"), [(True, [1, 1, 2]), (False, [1, 1])], ids=["idempotent", "not idempotent"]
)
async def test_a_request_on_an_idle_connection_that_was_just_cut_is_repeated_where_it_is(is_idempotent, expected):
    peer = Peer(lambda request: None if request == 2 else OK)
    async with serving(peer) as port, pool_to(port) as pool:
        await exchange(pool)
        if is_idempotent:
            assert await exchange(pool, is_idempotent=True) == b"ok"
        else:
            with pytest.raises(Disconnected):
                await exchange(pool)
    assert peer.connections == expected


async def test_a_request_whose_response_has_begun_is_not_repeated():
    peer = Peer(lambda request: OK if request == 1 else OK[:20], cuts_after=2)
    async with serving(peer) as port, pool_to(port) as pool:
        await exchange(pool)
        with pytest.raises(Disconnected):
            await exchange(pool, is_idempotent=True)
    assert peer.connections == [1, 1]


async def test_an_idle_connection_that_the_server_closed_is_not_used():
    peer = Peer(lambda _: OK)
    async with serving(peer) as port, pool_to(port) as pool:
        taken = pool.take_idle(None)
        assert taken is None
        await exchange(pool)
        connection = pool.take_idle(None)
        assert connection is not None
        connection.abort()
        pool.give_back(connection, None)
        assert pool.take_idle(None) is None


async def test_connections_are_closed_when_they_were_idle_too_long(monkeypatch):
    monkeypatch.setattr(connection_pool, "IDLE_SECONDS", 0.01)
    peer = Peer(lambda _: OK)
    async with serving(peer) as port, pool_to(port) as pool:
        await asyncio.gather(exchange(pool), exchange(pool))
        await until(lambda: peer.closed == 2)
        assert pool.take_idle(None) is None


async def test_connections_of_certificates_that_were_replaced_are_closed(authority, tmp_path):
    peer = Peer(lambda _: OK)
    before, after = (ssl.create_default_context(cadata=authority.ca.decode()) for _ in range(2))
    async with serving(peer, authority.server_context(tmp_path)) as port:
        pool = ConnectionPool(Endpoint.of(f"https://127.0.0.1:{port}"), None, None)
        for context in (before, before, after):
            await exchange(pool, context=context)
        await pool.close()
    assert peer.connections == [1, 1, 2]


async def test_a_connection_whose_request_was_cancelled_meanwhile_serves_the_next(authority, tmp_path):
    peer = Peer(lambda _: OK)
    context = ssl.create_default_context(cadata=authority.ca.decode())
    async with serving(peer, authority.server_context(tmp_path)) as port:
        pool = ConnectionPool(Endpoint.of(f"https://127.0.0.1:{port}"), None, None)
        cancelled = asyncio.create_task(exchange(pool, context=context))
        await until(lambda: bool(pool._connecting))
        cancelled.cancel()
        with pytest.raises(asyncio.CancelledError):
            await cancelled
        await until(lambda: bool(pool._idle))
        assert await exchange(pool, context=context) == b"ok"
        await pool.close()
    assert peer.connections == [1]


class Handshakes:
    """Connections are made when the test allows it, in the order in which they were begun."""

    def __init__(self, pool: ConnectionPool, monkeypatch: pytest.MonkeyPatch) -> None:
        self._pool, self._connect = pool, pool._connect
        self.begun: list[asyncio.Event] = []
        self.error: Exception | None = None
        monkeypatch.setattr(pool, "_connect", self)

    async def __call__(self, context: Any, seconds: float) -> Any:
        allowed = asyncio.Event()
        self.begun.append(allowed)
        await allowed.wait()
        if self.error is not None:
            raise self.error
        return await self._connect(context, seconds)

    def allow(self, number: int) -> None:
        self.begun[number].set()


async def test_few_connections_are_made_at_a_time_and_those_that_are_given_back_serve_who_waits(monkeypatch):
    peer = Peer(lambda _: OK)
    async with serving(peer) as port, pool_to(port) as pool:
        handshakes = Handshakes(pool, monkeypatch)
        requests = [asyncio.create_task(exchange(pool)) for _ in range(20)]
        await until(lambda: len(handshakes.begun) == connection_pool.MOST_CONNECTING)
        await asyncio.sleep(0)
        assert len(handshakes.begun) == connection_pool.MOST_CONNECTING
        handshakes.allow(0)
        assert await asyncio.gather(*requests) == [b"ok"] * 20
    assert peer.opened == 1


async def test_a_connection_that_fails_fails_one_request_and_the_next_is_tried(monkeypatch):
    monkeypatch.setattr(connection_pool, "MOST_CONNECTING", 1)
    peer = Peer(lambda _: OK)
    async with serving(peer) as port, pool_to(port) as pool:
        handshakes = Handshakes(pool, monkeypatch)
        handshakes.error = ConnectionRefusedError()
        first, second = (asyncio.create_task(exchange(pool)) for _ in range(2))
        await until(lambda: len(handshakes.begun) == 1)
        handshakes.allow(0)
        with pytest.raises(ConnectionRefusedError):
            await first
        handshakes.error = None
        await until(lambda: len(handshakes.begun) == 2)
        handshakes.allow(1)
        assert await second == b"ok"


async def test_requests_and_urgent_watches_get_their_connections_before_other_watches(monkeypatch):
    monkeypatch.setattr(connection_pool, "MOST_CONNECTING", 1)
    order: list[str] = []
    async with serving(Peer(lambda _: OK)) as port, pool_to(port) as pool:
        handshakes = Handshakes(pool, monkeypatch)

        async def connect(name: str, *, is_urgent: bool) -> None:
            await pool.connect(None, asyncio.get_running_loop().time() + 30, is_urgent=is_urgent)
            order.append(name)

        waiting = []
        for name, is_urgent in (("nodes", False), ("claims", False), ("pods", True), ("a binding", True)):
            waiting.append(asyncio.create_task(connect(name, is_urgent=is_urgent)))
            await asyncio.sleep(0)
        for number in range(4):
            await until(lambda: len(handshakes.begun) == number + 1)  # noqa: B023
            handshakes.allow(number)
        await asyncio.gather(*waiting)
    assert order == ["pods", "a binding", "nodes", "claims"]


async def test_a_server_that_closes_each_connection_at_once_is_not_tried_without_end():
    async def close(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.transport.abort()

    async with serving(close) as port, pool_to(port) as pool:
        with pytest.raises(Disconnected):
            await exchange(pool)


async def test_a_connection_that_comes_after_its_request_has_given_up_is_kept(monkeypatch):
    peer = Peer(lambda _: OK)
    async with serving(peer) as port, pool_to(port) as pool:
        handshakes = Handshakes(pool, monkeypatch)
        with pytest.raises(TimeoutError):
            await pool.connect(None, asyncio.get_running_loop().time() + 0.01)
        handshakes.allow(0)
        await until(lambda: bool(pool._idle))
        assert await exchange(pool) == b"ok"
    assert peer.opened == 1


async def test_a_pool_that_was_closed_connects_no_more():
    async with serving(Peer(lambda _: OK)) as port, pool_to(port) as pool:
        await pool.close()
        with pytest.raises(Disconnected):
            await exchange(pool)


async def test_closing_waits_for_a_handshake_and_uses_its_connection_for_nothing(authority, tmp_path):
    peer = Peer(lambda _: OK)
    context = ssl.create_default_context(cadata=authority.ca.decode())
    async with serving(peer, authority.server_context(tmp_path)) as port:
        pool = ConnectionPool(Endpoint.of(f"https://127.0.0.1:{port}"), None, None)
        waiting = asyncio.create_task(exchange(pool, context=context))
        await until(lambda: bool(pool._connecting))
        await pool.close()
        with pytest.raises(Disconnected):
            await waiting
    assert peer.requests == []


async def test_no_socket_is_open_when_close_returns(monkeypatch):
    opened: list[socket.socket] = []
    monkeypatch.setattr(connection_pool, "_set_options", opened.append)
    async with serving(Peer(lambda _: OK)) as port, pool_to(port) as pool:
        await asyncio.gather(exchange(pool), exchange(pool))
        taken = pool.take_idle(None)
        await pool.close()
        assert [sock.fileno() for sock in opened] == [-1, -1]
        assert taken is not None


async def test_a_cancelled_request_closes_its_connection():
    peer = Peer(lambda _: b"")
    async with serving(peer) as port, pool_to(port) as pool:
        waiting = asyncio.create_task(exchange(pool))
        await until(lambda: len(peer.requests) == 1)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        await until(lambda: peer.closed == 1)
        assert pool.take_idle(None) is None


async def test_all_connections_share_one_lookup_of_the_name(monkeypatch):
    looked_up: list[str] = []
    real = socket.getaddrinfo

    def getaddrinfo(host: str, port: int, *args: Any, **kwargs: Any) -> Any:
        if host == "api.example":
            if kwargs.get("flags", 0) & socket.AI_NUMERICHOST:
                raise socket.gaierror(socket.EAI_NONAME, "not an address")
            looked_up.append(host)
            host = "127.0.0.1"
        return real(host, port, *args, **kwargs)

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    peer = Peer(lambda _: OK)
    async with serving(peer) as port, pool_to(port, host="api.example") as pool:
        await asyncio.gather(*(exchange(pool) for _ in range(5)))
        await exchange(pool, is_new=True)
    assert peer.opened == 6
    assert looked_up == ["api.example"]


async def test_a_name_that_cannot_be_resolved_is_looked_up_again(monkeypatch):
    failures = 0

    def getaddrinfo(*_: Any, **__: Any) -> Any:
        nonlocal failures
        failures += 1
        raise socket.gaierror(socket.EAI_AGAIN, "try again")

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    async with pool_to(1, host="api.example") as pool:
        for _ in range(2):
            with pytest.raises(socket.gaierror):
                await exchange(pool)
    assert failures == 4  # as an address, and as a name


class TestProxies:
    async def test_what_is_not_encrypted_is_sent_to_the_proxy(self):
        peer = Peer(lambda _: OK)
        async with serving(peer) as port, pool_to(9, proxy=Endpoint.of(f"http://127.0.0.1:{port}")) as pool:
            assert await exchange(pool) == b"ok"
        assert peer.requests == [GET]

    @pytest.mark.parametrize("is_tls", [False, True], ids=["http proxy", "https proxy"])
    async def test_what_is_encrypted_goes_through_a_tunnel(self, is_tls, authority, tmp_path):
        heads: list[bytes] = []

        async def proxy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            heads.append(await reader.readuntil(b"\r\n\r\n"))
            onward, back = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"HTTP/1.1 200 Connection established\r\nVia: x\r\n\r\n")
            await asyncio.gather(_copy(reader, back), _copy(onward, writer))

        peer = Peer(lambda _: OK)
        trust = ssl.create_default_context(cadata=authority.ca.decode())
        own = authority.server_context(tmp_path)
        async with serving(peer, own) as port, serving(proxy, own if is_tls else None) as proxy_port:
            scheme = "https" if is_tls else "http"
            through = Endpoint.of(f"{scheme}://ada:s3cret@127.0.0.1:{proxy_port}")
            pool = ConnectionPool(Endpoint.of(f"https://127.0.0.1:{port}"), through, None)
            assert await exchange(pool, context=trust) == b"ok"
            await pool.close()
        password = base64.b64encode(b"ada:s3cret").decode()
        lines = heads[0].decode().split("\r\n")
        assert lines[0] == f"CONNECT 127.0.0.1:{port} HTTP/1.1"
        assert f"Proxy-Authorization: Basic {password}" in lines

    @pytest.mark.parametrize(
        ("response", "message"),
        [
            (
                b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n",
                "the proxy refused to connect to .*: 407 Proxy Auth",
            ),
            (b"SSH-2.0-OpenSSH\r\n\r\n", "is not HTTP/1.1"),
            (None, "the proxy closed the connection"),
            (b"x" * 20_000, "too large"),
        ],
        ids=["refusal", "no HTTP", "cut", "endless"],
    )
    async def test_a_proxy_that_does_not_connect_us_is_named(self, response, message):
        peer = Peer(lambda _: response)
        async with serving(peer) as port:
            pool = ConnectionPool(Endpoint.of("https://127.0.0.1:9"), Endpoint.of(f"http://127.0.0.1:{port}"), None)
            with pytest.raises(BadResponse, match=message):
                await exchange(pool, context=ssl.create_default_context())
            await pool.close()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(65536):
            writer.write(data)
    except ConnectionError:
        pass
    finally:
        writer.close()


ENDPOINTS = {
    "https://api.example": ("api.example", 443, True, "", "api.example"),
    "https://api.example:6443/k8s/": ("api.example", 6443, True, "/k8s", "api.example:6443"),
    "http://[::1]:8080": ("::1", 8080, False, "", "[::1]:8080"),
    "http://b\u00fccher.example/": ("xn--bcher-kva.example", 80, False, "", "xn--bcher-kva.example"),
}


@pytest.mark.parametrize(("url", "expected"), ENDPOINTS.items(), ids=ENDPOINTS.keys())
def test_an_address_is_read(url: str, expected: tuple[Any, ...]):
    endpoint = Endpoint.of(url)
    assert (endpoint.host, endpoint.port, endpoint.is_tls, endpoint.path, endpoint.host_header) == expected


@pytest.mark.parametrize("url", ["", "api.example:6443", "ftp://api.example", "https://", "https://api.example:x"])
def test_an_address_that_is_none_is_refused(url: str):
    with pytest.raises(ValueError, match=r"scheme|[Pp]ort|host"):
        Endpoint.of(url)
