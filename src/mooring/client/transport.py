"""Carries requests to one API server over HTTP/1.1 and returns bytes, or raises why there was no response.

It bounds how many requests are in flight and how many start per second, waits when the server requires it (429, or a
failure with Retry-After, or because it has just started), renews credentials that the server refused, and sends no
write that its fence holds back.
`api` decodes the bytes; `connection_pool` and `http1` transfer them.
"""

from __future__ import annotations

import asyncio
import re
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Protocol

import msgspec
from multidict import CIMultiDict

from mooring.base.clock import Clock, ends_within
from mooring.base.errors import ApiError, Unreachable
from mooring.base.log import Log
from mooring.base.nesting import Decoder
from mooring.base.redaction import scrubbed
from mooring.client.connection import Connection
from mooring.client.connection_pool import ConnectionPool, Endpoint
from mooring.client.credentials import Credentials
from mooring.client.fence import READS, Fenced, WriteFence
from mooring.client.http1 import Disconnected, HttpConnection, Response
from mooring.client.outages import Outage, StartingServer
from mooring.client.rights import Forbidden

REQUEST_SECONDS = 60.0
TRIES_WHEN_BUSY = 10
LONGEST_WAIT_SECONDS = 60.0
LONG_WAIT_SECONDS = 1.0
"""A request that our own limit holds back so long is worth a line in the log."""
LINES_APART_SECONDS = 60.0
EVENTS = "/apis/events.k8s.io/"
LEAST_PAUSE = 0.2
"""The part of a pause that is kept although other requests succeed."""

LARGEST_REFUSAL_BYTES = 1024 * 1024
"""So much is read of why a watch was refused."""
_SECONDS = re.compile(r"\s*[0-9]{1,9}\s*")

FORBIDDEN = 403
STARTING_PAUSE = 0.5
"""Before the next try at a server that has just started."""

IDEMPOTENT = READS | {"PUT", "DELETE"}

_log = Log("client")


class RequestObserver(Protocol):
    """Counts requests, on the event loop that makes them; must return at once."""

    def responded(self, method: str, host: str, code: str, seconds: float, sent: int, /) -> None:
        """The head of a response has arrived; the code is `<error>` where none did."""
        ...

    def received(self, method: str, host: str, size: int, /) -> None: ...
    def held_back(self, method: str, host: str, seconds: float, /) -> None:
        """By our own limit."""
        ...


class _Details(msgspec.Struct, rename="camel"):
    retry_after_seconds: int = 0


class _Status(msgspec.Struct, rename="camel"):
    """The body of every refusal."""

    code: int = 0
    reason: str = ""
    message: str = ""
    details: _Details | None = None


_status_decoder = Decoder(_Status)


def error_of(body: bytes | msgspec.Raw, code: int = 0, retry_after: str | None = None) -> ApiError:
    """A refusal as the server explains it, or its status code without an explanation."""
    try:
        status = _status_decoder.decode(body)
    except msgspec.DecodeError:
        status = _Status(message=bytes(body[:1000]).decode("utf-8", "replace").strip())
    seconds = status.details.retry_after_seconds if status.details else 0
    if retry_after is not None and _SECONDS.fullmatch(retry_after):
        seconds = int(retry_after)
    wait = float(seconds) if seconds or retry_after is not None else None
    code = code or status.code
    kind = Forbidden if code == FORBIDDEN else ApiError
    return kind(code, status.reason, status.message or f"the server responded {code}", retry_after=wait)


class Transport:
    """One server, many requests. Belongs to the event loop it is first used on."""

    def __init__(
        self,
        connection: Connection,
        *,
        clock: Clock,
        user_agent: str,
        in_flight: int,
        qps: float | None,
        burst: int | None,
        fence: WriteFence | None = None,
        observer: RequestObserver | None = None,
    ) -> None:
        self.connection = connection
        self.fence = fence
        self._clock = clock
        self._user_agent = user_agent
        self._credentials = Credentials(connection, clock)
        self._in_flight = asyncio.Semaphore(in_flight)
        self.requests = 0
        """Those that wait for their response now; watches are not among them."""
        self._pace = _Pace(qps, burst, clock) if qps is not None and qps > 0 else None
        self._pool: ConnectionPool | None = None
        self._target = ""
        """What stands before each path in a request line."""
        self._fixed_lines: tuple[CIMultiDict[str] | None, bytes] = (None, b"")
        self._is_closed = False
        self._host = connection.host
        self.observer = observer
        self._contact = asyncio.Event()
        self._starting = StartingServer(clock)
        self.outage = Outage(clock)

    async def close(self) -> None:
        self._is_closed = True
        if self._pool is not None:
            await self._pool.close()
            self._pool = None

    async def pause(self, seconds: float) -> None:
        """Wait so long before the next try after `Unreachable`; less long where another request succeeds meanwhile.

        So all resume as soon as one request succeeds, and none needs to retry often.
        """
        # A part of it in any case: some requests may succeed while others are cut, again and again.
        least = seconds * LEAST_PAUSE
        await self._clock.sleep(least)
        contact = asyncio.ensure_future(self._contact.wait())
        try:
            await ends_within(self._clock, seconds - least, contact)
        finally:
            contact.cancel()

    async def request(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        content_type: str = "application/json",
        *,
        seconds: float = REQUEST_SECONDS,
    ) -> bytes:
        """Send, and return the body of a 2xx response. Raises ApiError or Unreachable."""
        return (await self.response(method, path, body, content_type, seconds=seconds)).body

    async def response(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        content_type: str = "application/json",
        *,
        seconds: float = REQUEST_SECONDS,
    ) -> Response:
        """The same, with the response's headers."""
        renewed = False
        for attempt in range(1, TRIES_WHEN_BUSY + 1):
            if self._pace is not None:
                waited = self._pace.take(method, path)
                if waited:
                    await self._clock.sleep(waited)
                if self.observer is not None:
                    self.observer.held_back(method, self._host, waited)
            headers = self._credentials.valid_headers()
            if headers is None:
                headers = await self._credentials.headers()
            response = await self._exchange(method, path, headers, body, content_type, seconds)
            if self.observer is not None:
                self.observer.received(method, self._host, len(response.body))
            if response.status < 300:
                return response
            retry_after = response.header("Retry-After")
            refusal = error_of(response.body, response.status, retry_after)
            if response.status == 401 and not renewed:
                renewed = True
                if await self._credentials.renew(headers):
                    continue
            must_wait = response.status == 429 or (response.status >= 500 and retry_after is not None)
            if not must_wait or attempt == TRIES_WHEN_BUSY:
                raise refusal
            pause = min(refusal.retry_after or 1.0, LONGEST_WAIT_SECONDS)
            _log.v(2).info(
                "API server requested a delay (Retry-After)", code=response.status, seconds=pause, path=_bare(path)
            )
            await self._clock.sleep(pause)
        raise AssertionError("the last attempt returns or raises")

    async def _exchange(
        self,
        method: str,
        path: str,
        headers: CIMultiDict[str],
        body: bytes | None,
        content_type: str,
        seconds: float,
    ) -> Response:
        """Send and read the whole response. A write that may not leave now waits, and holds up no other request."""
        fence = self.fence if method not in READS else None
        while True:
            await self._in_flight.acquire()
            is_starting = False
            self.requests += 1
            code = ""
            began = ended = 0.0
            try:
                pool = self._pool or self._open()
                began = ended = pool.loop.time()
                code = "<error>"
                response = await pool.exchange(
                    self._request(method, path, headers, body, content_type),
                    self._credentials.ssl_context(),
                    seconds=seconds,
                    fence=fence,
                    is_decision=not path.startswith(EVENTS),  # events decide about no pod
                    is_idempotent=method in IDEMPOTENT,
                )
                ended = response.received_at
                self._contact.set()
                self._starting.responded()
                if response.status == FORBIDDEN:
                    is_starting = self._starting.refused(error_of(response.body, FORBIDDEN))
                if not is_starting:
                    code = str(response.status)
                    return response
            except (OSError, ValueError) as error:  # ValueError: an address that is none
                ended = asyncio.get_running_loop().time()
                raise self._unreachable(error) from error
            except Fenced:
                code = ""
            finally:
                self.requests -= 1
                self._in_flight.release()
                if self.observer is not None and code:
                    size = len(body) if body is not None else 0
                    self.observer.responded(method, self._host, code, ended - began, size)
            if is_starting:
                await self._clock.sleep(STARTING_PAUSE)
            else:
                assert fence is not None
                await fence.opened()

    @asynccontextmanager
    async def stream(
        self, path: str, *, seconds: float, is_urgent: bool = False
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """The chunks of the response as they arrive. Whatever breaks on the way is raised as Unreachable."""
        is_renewed = False
        while True:
            headers, context = await self._credentials.headers(), self._credentials.ssl_context()
            connection, refusal = await self._open_stream(path, headers, context, seconds, is_urgent)
            try:
                if refusal is None:
                    yield self._chunks(connection)
                    return
            finally:
                self._end_stream(connection, context)
            if self._starting.refused(refusal):
                await self._clock.sleep(STARTING_PAUSE)
            elif refusal.code == 401 and not is_renewed and await self._credentials.renew(headers):
                is_renewed = True
            else:
                raise refusal

    def _end_stream(self, connection: HttpConnection, context: ssl.SSLContext | None) -> None:
        """Where the response is whole, as that to a refused watch, the connection serves the next request."""
        if self._pool is not None:
            self._pool.give_back(connection, context)
        else:
            connection.abort()

    async def _open_stream(
        self, path: str, headers: CIMultiDict[str], context: ssl.SSLContext | None, seconds: float, is_urgent: bool
    ) -> tuple[HttpConnection, ApiError | None]:
        """The connection, and the server's refusal if it is one."""
        pool = self._pool or self._open()
        began, code = pool.loop.time(), "<error>"
        ended = 0.0
        try:
            request = self._request("GET", path, headers, None, "")
            connection, response = await pool.stream(request, context, seconds=seconds, is_urgent=is_urgent)
            ended = pool.loop.time()
            self._contact.set()
            self._starting.responded()
            refusal = None
            if response.status >= 300:
                try:
                    refusal = await self._refusal(connection, response)
                except BaseException:
                    self._end_stream(connection, context)
                    raise
            if refusal is None or not self._starting.refused(refusal):
                code = str(response.status)
            return connection, refusal
        except (OSError, ValueError) as error:
            raise self._unreachable(error) from error
        finally:
            if self.observer is not None:
                self.observer.responded("GET", self._host, code, (ended or pool.loop.time()) - began, 0)

    async def _refusal(self, connection: HttpConnection, response: Response) -> ApiError:
        body = b""
        async for chunk in self._chunks(connection):
            body += chunk
            if len(body) > LARGEST_REFUSAL_BYTES:
                break
        return error_of(body, response.status, response.header("Retry-After"))

    async def _chunks(self, connection: HttpConnection) -> AsyncIterator[bytes]:
        try:
            async for chunk in connection.chunks():
                yield chunk
        except OSError as error:
            raise self._unreachable(error) from error

    def _request(
        self, method: str, path: str, headers: CIMultiDict[str], body: bytes | None, content_type: str
    ) -> bytes:
        if not path.isascii() or not path.isprintable() or " " in path:
            raise ValueError(f"{path!r} cannot be the path of a request")
        known, lines = self._fixed_lines
        if known is not headers:
            lines = self._lines(headers)
            self._fixed_lines = headers, lines
        if body is None:
            return b"".join((f"{method} {self._target}{path} HTTP/1.1\r\n".encode("ascii"), lines, b"\r\n"))
        start = f"{method} {self._target}{path} HTTP/1.1\r\nContent-Type: {content_type}\r\n"
        return b"".join((f"{start}Content-Length: {len(body)}\r\n".encode("ascii"), lines, b"\r\n", body))

    def _lines(self, credentials: CIMultiDict[str]) -> bytes:
        """The headers that all requests share."""
        server = Endpoint.of(self.connection.server)
        headers = [("Host", server.host_header), ("Accept", "application/json"), ("Accept-Encoding", "identity")]
        headers += [("User-Agent", self._user_agent), *credentials.items()]
        if self.connection.proxy_url is not None and not server.is_tls:
            proxy = Endpoint.of(self.connection.proxy_url)
            headers += [("Proxy-Authorization", proxy.authorization)] if proxy.authorization is not None else []
        for name, value in headers:
            if not value.isprintable():
                raise ValueError(f"the header {name} has characters that no request can carry")
        return b"".join(f"{name}: {value}\r\n".encode() for name, value in headers)

    def _open(self) -> ConnectionPool:
        if self._is_closed:
            raise Unreachable(f"the connection to the API server {self.connection.host} was closed by this client")
        try:
            server = Endpoint.of(self.connection.server)
            proxy = Endpoint.of(self.connection.proxy_url) if self.connection.proxy_url is not None else None
        except ValueError as error:
            raise self._unreachable(error) from error
        # A proxy gets the whole address of what is not encrypted, and sees nothing of what is.
        self._target = f"http://{server.authority}{server.path}" if proxy and not server.is_tls else server.path
        self._pool = ConnectionPool(server, proxy, self.connection.tls_server_name)
        return self._pool

    def _unreachable(self, error: BaseException) -> Unreachable:
        self._contact.clear()
        self._starting.connection_lost()
        where = self.connection
        via = f" through the proxy {where.proxy}" if where.proxy else ""
        return Unreachable(f"cannot reach the API server {where.host}{via} (from {where.source}): {self._why(error)}")

    def _why(self, error: BaseException) -> str:
        where = self.connection
        return scrubbed(_why(error), where.server, *([where.proxy_url] if where.proxy_url else []))


def _why(error: BaseException) -> str:
    """The cause, and what to do about it, as a sentence's end."""
    match error:
        case ssl.SSLCertVerificationError():
            reason = error.verify_message or str(error)
            return f"its certificate is not trusted ({reason}); check certificate-authority and the server's name"
        case ssl.SSLError():
            return f"the TLS handshake failed ({error}); is this an https server?"
        case socket.gaierror():
            return "its name cannot be resolved; check the server's address"
        case TimeoutError():
            return "it does not respond in time; check the address, and that no firewall is in between"
        case ConnectionRefusedError():
            return "connection refused; is the server running, and is this its port?"
        case Disconnected() | ConnectionResetError() | ConnectionAbortedError() | BrokenPipeError():
            return "the connection was cut"
        case OSError() if error.strerror:
            return error.strerror.lower()
        case _:
            return str(error) or type(error).__name__


class _Pace:
    """At most `qps` requests a second, after a burst. Client-side throttling is logged."""

    def __init__(self, qps: float, burst: int | None, clock: Clock) -> None:
        self._qps, self._burst, self._clock = qps, float(max(burst or 1, 1)), clock
        self._left, self._at = self._burst, clock.monotonic()
        self._logged_at = float("-inf")

    def take(self, method: str, path: str) -> float:
        """A place among the requests; returns how long to wait for it."""
        now, seconds = self._clock.monotonic(), 0.0
        self._left = min(self._burst, self._left + (now - self._at) * self._qps) - 1
        self._at = now
        if self._left < 0:  # taken in advance, so that waiting requests keep their order
            seconds = -self._left / self._qps
            if seconds >= LONG_WAIT_SECONDS and now >= self._logged_at + LINES_APART_SECONDS:
                self._logged_at = now
                _log.warning(
                    "Client-side throttling; raise qps and burst of clientConnection, or leave them out",
                    seconds=round(seconds, 1),
                    qps=self._qps,
                    burst=int(self._burst),
                    request=f"{method} {_bare(path)}",
                )
        return seconds


def _bare(path: str) -> str:
    """Without the query: a log is no place for it."""
    return path.partition("?")[0]
