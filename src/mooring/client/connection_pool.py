"""Opens connections to one API server, straight or through a proxy, and keeps them for the next request."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import functools
import itertools
import socket
import ssl
import threading
from collections import deque
from typing import Any, NamedTuple

import aiohappyeyeballs
from yarl import URL

from mooring.client.fence import Fenced, WriteFence
from mooring.client.http1 import BadResponse, Disconnected, HttpConnection, Response

CONNECT_SECONDS = 5.0
IDLE_SECONDS = 15.0
"""How long a connection waits for the next request: less than servers and load balancers keep theirs."""
CLOSE_SECONDS = 0.2
"""How long closing waits for handshakes in progress."""
ADDRESS_SECONDS = 30.0
"""How long the addresses of a name are used before it is resolved again."""
NEXT_ADDRESS_SECONDS = 0.25
"""After so long without a connection the name's next address is tried beside it."""
MOST_CONNECTING = 4
SEND_BUFFER_BYTES = 256 * 1024
LARGEST_PROXY_HEAD_BYTES = 16 * 1024
CLOSED = "the connection was closed by us"
_KEEP_ALIVE = (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3))


class Endpoint(NamedTuple):
    """A server or a proxy. `host` is a name or an address, without brackets."""

    host: str
    port: int
    is_tls: bool
    authorization: str | None
    """What its URL carries as user and password, as a header's value."""
    path: str

    @classmethod
    def of(cls, url: str) -> Endpoint:
        """Raises ValueError where the URL names no server."""
        parsed = URL(url)
        if parsed.scheme not in ("http", "https") or not parsed.raw_host or parsed.port is None:
            raise ValueError(f"{parsed.scheme or 'no'} scheme, {parsed.raw_host or 'no'} host")
        authorization = None
        if parsed.user is not None:
            pair = f"{parsed.user}:{parsed.password or ''}".encode()
            authorization = "Basic " + base64.b64encode(pair).decode("ascii")
        return cls(parsed.raw_host, parsed.port, parsed.scheme == "https", authorization, parsed.raw_path.rstrip("/"))

    @property
    def authority(self) -> str:
        """Host and port as a request line has them."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def host_header(self) -> str:
        return self.authority.removesuffix(":443" if self.is_tls else ":80")


class _Waiter(NamedTuple):
    """A caller that waits for a connection."""

    context: ssl.SSLContext | None
    seconds: float
    is_new: bool
    is_urgent: bool
    connection: asyncio.Future[HttpConnection]


class ConnectionPool:
    """The open connections to one server. A connection is either idle in here or one caller's."""

    def __init__(self, server: Endpoint, proxy: Endpoint | None, server_name: str | None) -> None:
        self.loop = asyncio.get_running_loop()
        self._server, self._proxy = server, proxy
        self._server_name = server_name or server.host
        self._idle: deque[tuple[float, ssl.SSLContext | None, HttpConnection]] = deque()
        self._taken: set[HttpConnection] = set()
        self._connecting: set[asyncio.Task[HttpConnection]] = set()
        self._waiters: list[_Waiter] = []
        """Those that are urgent first."""
        self._is_closed = False
        self._closing_idle: asyncio.TimerHandle | None = None
        self._addresses: list[Any] = []
        self._addresses_until = float("-inf")
        self._resolving: asyncio.Future[list[Any]] | None = None

    async def exchange(
        self,
        request: bytes,
        context: ssl.SSLContext | None,
        *,
        seconds: float,
        connect_seconds: float = CONNECT_SECONDS,
        fence: WriteFence | None = None,
        is_decision: bool = True,
        is_idempotent: bool = False,
        is_new: bool = False,
    ) -> Response:
        """Send the request and read its whole response. Raises OSError, or Fenced where `fence` holds the write back.

        An idempotent request is sent once more where the server closed an idle connection just as it was sent.
        `is_new`: on a connection of its own.
        """
        until = self.loop.time() + seconds
        connection = None if is_new else self.take_idle(context)
        may_repeat = connection is not None and is_idempotent
        while True:
            if connection is None:
                connection = await self.connect(context, until, connect_seconds, is_new=is_new)
            try:
                if fence is None:
                    response = await connection.send(request, until=until)
                else:
                    with fence.sending(connection.time_out, is_decision=is_decision, loop=self.loop):
                        response = await connection.send(request, until=until, fence=fence)
            except Fenced:
                self.give_back(connection, context)
                raise
            except BaseException as error:
                self.discard(connection)
                if not may_repeat or connection.has_received or not isinstance(error, Disconnected):
                    raise
                connection, may_repeat = None, False
                continue
            self.give_back(connection, context)
            return response

    async def stream(
        self, request: bytes, context: ssl.SSLContext | None, *, seconds: float, is_urgent: bool = False
    ) -> tuple[HttpConnection, Response]:
        """Send an idempotent request and read the head of its response. The connection becomes the caller's, who reads
        its chunks and discards it; it is cut after so many seconds. Where it is not urgent, those that are get their
        connections first."""
        until = self.loop.time() + seconds
        connection = self.take_idle(context)
        if connection is not None:
            try:
                return connection, await self._stream_on(connection, request, until)
            except Disconnected:
                if connection.has_received:
                    raise
        connection = await self.connect(context, until, is_urgent=is_urgent)
        return connection, await self._stream_on(connection, request, until)

    async def _stream_on(self, connection: HttpConnection, request: bytes, until: float) -> Response:
        try:
            return await connection.send(request, streams=True, until=until)
        except BaseException:
            self.discard(connection)
            raise

    def take_idle(self, context: ssl.SSLContext | None) -> HttpConnection | None:
        """The connection that was used last, if one is idle. Those of other certificates are closed."""
        while self._idle:
            _, made_with, connection = self._idle.pop()
            if made_with is context and connection.is_idle:
                self._taken.add(connection)
                return connection
            connection.abort()
        return None

    def give_back(self, connection: HttpConnection, context: ssl.SSLContext | None) -> None:
        """After its exchange. A connection that cannot take another request is closed."""
        self._taken.discard(connection)
        self._hand_over(connection, context, is_new=False)

    def discard(self, connection: HttpConnection) -> None:
        self._taken.discard(connection)
        connection.abort()

    async def close(self) -> None:
        """Every connection, at once; what is in flight ends without a response."""
        self._is_closed = True
        if self._closing_idle is not None:
            self._closing_idle.cancel()
            self._closing_idle = None
        for _, _, connection in self._idle:
            connection.abort()
        self._idle.clear()
        for connection in tuple(self._taken):
            connection.abort()
        for waiter in self._waiters:
            if not waiter.connection.done():
                waiter.connection.set_exception(Disconnected(CLOSED))
        self._waiters.clear()
        if self._connecting:
            await asyncio.wait(self._connecting, timeout=CLOSE_SECONDS)
            for connecting in tuple(self._connecting):
                connecting.cancel()
        await asyncio.sleep(0)  # asyncio closes the sockets in its next pass

    def _close_idle(self) -> None:
        self._closing_idle = None
        while self._idle and self._idle[0][0] <= self.loop.time():
            self._idle.popleft()[2].abort()
        if self._idle:
            self._closing_idle = self.loop.call_at(self._idle[0][0], self._close_idle)

    async def connect(
        self,
        context: ssl.SSLContext | None,
        until: float,
        seconds: float = CONNECT_SECONDS,
        *,
        is_new: bool = False,
        is_urgent: bool = True,
    ) -> HttpConnection:
        """A connection, new or given back meanwhile; `is_new`: a new one only. `context` is None for plain HTTP. Raises
        OSError."""
        if self._is_closed:
            raise Disconnected(CLOSED)
        waiter = _Waiter(context, seconds, is_new, is_urgent, self.loop.create_future())
        # After all connections were lost, a binding must not wait behind the watches of kinds that seldom change.
        urgent = sum(each.is_urgent for each in self._waiters) if is_urgent else len(self._waiters)
        self._waiters.insert(urgent, waiter)
        self._start_connecting()
        try:
            async with asyncio.timeout_at(min(until, self.loop.time() + seconds)):
                return await waiter.connection
        except BaseException:
            waiter.connection.cancel()
            if not waiter.connection.cancelled() and waiter.connection.exception() is None:
                self.give_back(waiter.connection.result(), context)
            raise
        finally:
            if waiter in self._waiters:
                self._waiters.remove(waiter)

    def _start_connecting(self) -> None:
        """As many connections as are waited for, a few at a time: handshakes cost more CPU time than most requests, and
        the first connections may have served all requests before the last ones would be made."""
        for waiter in itertools.islice(self._waiters, len(self._connecting), MOST_CONNECTING):
            # A task of its own: asyncio loses a socket whose handshake is cancelled. Where the caller gives up, the
            # connection serves another.
            connecting = self.loop.create_task(self._connect(waiter.context, waiter.seconds))
            self._connecting.add(connecting)
            connecting.add_done_callback(functools.partial(self._connected, waiter.context))

    def _connected(self, context: ssl.SSLContext | None, connecting: asyncio.Task[HttpConnection]) -> None:
        self._connecting.discard(connecting)
        if connecting.cancelled():
            return
        error = connecting.exception()
        if error is None and not connecting.result().is_idle:  # closed right after the handshake
            error = Disconnected("the connection was cut")
        if error is None:
            self._hand_over(connecting.result(), context, is_new=True)
        elif (waiter := self._next_waiter(context, is_new=True)) is not None:
            waiter.connection.set_exception(error)
        self._start_connecting()

    def _hand_over(self, connection: HttpConnection, context: ssl.SSLContext | None, *, is_new: bool) -> None:
        """To who waits for one, or else to the idle ones."""
        if self._is_closed or not connection.is_idle:
            connection.abort()
        elif (waiter := self._next_waiter(context, is_new=is_new)) is not None:
            self._taken.add(connection)
            waiter.connection.set_result(connection)
        else:
            self._idle.append((self.loop.time() + IDLE_SECONDS, context, connection))
            if self._closing_idle is None:
                self._closing_idle = self.loop.call_later(IDLE_SECONDS, self._close_idle)

    def _next_waiter(self, context: ssl.SSLContext | None, *, is_new: bool) -> _Waiter | None:
        for waiter in self._waiters:
            if waiter.context is context and (is_new or not waiter.is_new) and not waiter.connection.done():
                self._waiters.remove(waiter)
                return waiter
        return None

    async def _connect(self, context: ssl.SSLContext | None, seconds: float) -> HttpConnection:
        loop = asyncio.get_running_loop()
        first = self._proxy or self._server
        async with asyncio.timeout(seconds):
            addresses = await self._resolve(first.host, first.port)
            sock = await aiohappyeyeballs.start_connection(
                addresses, happy_eyeballs_delay=NEXT_ADDRESS_SECONDS, interleave=1, loop=loop
            )
        _set_options(sock)
        connection = HttpConnection(loop)
        if self._proxy is None:
            transport = await _opened(sock, connection, context, self._server_name, seconds)
        else:
            trust = (context or ssl.create_default_context()) if self._proxy.is_tls else None
            if context is None:
                transport = await _opened(sock, connection, trust, self._proxy.host, seconds)
            else:
                tunnel = _Tunnel()
                transport = await _opened(sock, tunnel, trust, self._proxy.host, seconds)
                transport = await self._through(tunnel, transport, connection, context, seconds)
        connection.attach(transport)
        return connection

    async def _through(
        self,
        tunnel: _Tunnel,
        transport: asyncio.Transport,
        connection: HttpConnection,
        context: ssl.SSLContext,
        seconds: float,
    ) -> asyncio.Transport:
        assert self._proxy is not None
        try:
            async with asyncio.timeout(seconds):
                await tunnel.open(transport, self._server, self._proxy)
                loop = asyncio.get_running_loop()
                secured = await loop.start_tls(transport, connection, context, server_hostname=self._server_name)
        except BaseException:
            transport.abort()
            raise
        if secured is None:
            raise ConnectionResetError
        return secured

    async def _resolve(self, host: str, port: int) -> list[Any]:
        """The addresses of the name; one lookup at a time serves all connections."""
        loop = asyncio.get_running_loop()
        if loop.time() < self._addresses_until:
            return self._addresses
        if self._resolving is None:
            self._resolving = _look_up(loop, host, port)
            self._resolving.add_done_callback(self._resolved)
        return await asyncio.shield(self._resolving)

    def _resolved(self, lookup: asyncio.Future[list[Any]]) -> None:
        self._resolving = None
        if not lookup.cancelled() and lookup.exception() is None:
            self._addresses = lookup.result()
            self._addresses_until = lookup.get_loop().time() + ADDRESS_SECONDS


class _Tunnel(asyncio.Protocol):
    """Has a proxy connect us to the server. After that the connection is a tunnel to the server."""

    def __init__(self) -> None:
        self._received = b""
        self._head: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

    async def open(self, transport: asyncio.Transport, server: Endpoint, proxy: Endpoint) -> None:
        lines = [f"CONNECT {server.authority} HTTP/1.1", f"Host: {server.authority}"]
        if proxy.authorization is not None:
            lines.append(f"Proxy-Authorization: {proxy.authorization}")
        transport.write("\r\n".join([*lines, "", ""]).encode("ascii"))
        status = (await self._head).split(b"\r\n", 1)[0].split(None, 2)
        if len(status) < 2 or not status[0].startswith(b"HTTP/1."):
            raise BadResponse("the response of the proxy is not HTTP/1.1")
        if status[1] != b"200":
            shown = b" ".join(status[1:]).decode("latin-1")
            raise BadResponse(f"the proxy refused to connect to {server.authority}: {shown}")

    def data_received(self, data: bytes) -> None:
        if self._head.done():
            return
        self._received += data
        head, found, _ = self._received.partition(b"\r\n\r\n")
        if found:
            self._head.set_result(head)
        elif len(self._received) > LARGEST_PROXY_HEAD_BYTES:
            self._head.set_exception(BadResponse("the head of the proxy's response is too large"))

    def connection_lost(self, error: Exception | None) -> None:
        if not self._head.done():
            self._head.set_exception(BadResponse("the proxy closed the connection"))


async def _opened(
    sock: socket.socket, protocol: asyncio.Protocol, trust: ssl.SSLContext | None, name: str, seconds: float
) -> asyncio.Transport:
    loop = asyncio.get_running_loop()
    if trust is None:
        transport, _ = await loop.create_connection(lambda: protocol, sock=sock)
    else:
        transport, _ = await loop.create_connection(
            lambda: protocol, sock=sock, ssl=trust, server_hostname=name, ssl_handshake_timeout=seconds
        )
    return transport


def _set_options(sock: socket.socket) -> None:
    """Requests leave without delay, and whole; and TCP keep-alive finds that the server of a silent watch is gone."""
    with contextlib.suppress(OSError):
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        # What does not fit would be sent later by the event loop, past the fence.
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_BYTES)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for option, value in _KEEP_ALIVE:
            if hasattr(socket, option):
                sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)


def _look_up(loop: asyncio.AbstractEventLoop, host: str, port: int) -> asyncio.Future[list[Any]]:
    """The addresses of a name, from a thread that nothing waits for.

    asyncio's own lookup runs on a pool that the loop joins at its end, so a name server that does not respond would
    hold the program long after the request gave up.
    """
    found: asyncio.Future[list[Any]] = loop.create_future()
    try:  # an address needs no lookup
        found.set_result(
            socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST | socket.AI_NUMERICSERV)
        )
    except OSError:
        pass
    else:
        return found

    def settle(addresses: list[Any], error: OSError | None) -> None:
        if found.done():
            return
        if error is not None:
            found.set_exception(error)
        else:
            found.set_result(addresses)

    def look_up() -> None:
        addresses, failure = [], None
        try:
            addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_ADDRCONFIG)
        except OSError as error:
            failure = error
        with contextlib.suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(settle, addresses, failure)

    threading.Thread(target=look_up, name=f"resolve {host}", daemon=True).start()
    return found
