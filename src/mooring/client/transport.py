"""Carries requests to one API server over HTTP/1.1 and brings back bytes, or says why there was no answer.

It bounds how many requests are in flight and how many start per second, waits when the server asks to (429, or a
failure with Retry-After), renews credentials that the server refused, and sends no write that its fence holds back.
What the bytes mean is `api`'s affair.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from typing import Any, NamedTuple, Protocol

import aiohttp
import msgspec
from aiohttp.abc import AbstractResolver, ResolveResult
from multidict import CIMultiDict, CIMultiDictProxy
from yarl import URL

from mooring.base.clock import Clock, ends_within
from mooring.base.errors import ApiError, Unreachable
from mooring.base.log import Log
from mooring.base.nesting import Decoder
from mooring.base.redaction import scrubbed
from mooring.client.connection import Connection
from mooring.client.credentials import Credentials
from mooring.client.fence import READS, Fenced, WriteFence, fenced_request
from mooring.client.rights import Forbidden

CONNECT_SECONDS = 5.0
REQUEST_SECONDS = 60.0
TRIES_WHEN_BUSY = 10
LONGEST_WAIT_SECONDS = 60.0
LONG_WAIT_SECONDS = 1.0
"""A request that our own limit holds back so long is worth a line in the log."""
LINES_APART_SECONDS = 60.0
EVENTS = "/apis/events.k8s.io/"
LEAST_PAUSE = 0.2
"""The part of a pause that is kept although the server answers others."""

_log = Log("client")


class RequestObserver(Protocol):
    """Who counts requests. Told on the loop that makes them; must return at once."""

    def answered(self, method: str, host: str, code: str, seconds: float, sent: int, /) -> None:
        """An answer began to come; the code is `<error>` where none did."""
        ...

    def received(self, method: str, host: str, size: int, /) -> None: ...
    def held_back(self, method: str, host: str, seconds: float, /) -> None:
        """By our own limit."""
        ...


class Answer(NamedTuple):
    """What came back of a request that was granted."""

    body: bytes
    headers: CIMultiDictProxy[str]


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
    """A refusal as the server explains it, or as much as can be said without an explanation."""
    try:
        status = _status_decoder.decode(body)
    except msgspec.DecodeError:
        status = _Status(message=bytes(body[:1000]).decode("utf-8", "replace").strip())
    seconds = status.details.retry_after_seconds if status.details else 0
    if retry_after is not None and retry_after.strip().isdigit():
        seconds = int(retry_after)
    asked = float(seconds) if seconds or retry_after is not None else None
    code = code or status.code
    kind = Forbidden if code == 403 else ApiError
    return kind(code, status.reason, status.message or f"the server answered {code}", retry_after=asked)


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
    ) -> None:
        self.connection = connection
        self.fence = fence
        self._clock = clock
        self._user_agent = user_agent
        self._credentials = Credentials(connection, clock)
        self._in_flight = asyncio.Semaphore(in_flight)
        self._pace = _Pace(qps, burst, clock) if qps is not None and qps > 0 else None
        self._session: aiohttp.ClientSession | None = None
        self._is_closed = False
        self._limits = _limits(REQUEST_SECONDS)
        self._base = connection.server.rstrip("/")
        self._host = connection.host
        self.observer: RequestObserver | None = None
        self._contact = asyncio.Event()

    async def close(self) -> None:
        self._is_closed = True
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def pause(self, seconds: float) -> None:
        """Wait so long before the next try after `Unreachable`; less long where the server answers others meanwhile.

        So all go on as soon as one of them finds the server back, and none of them needs to try often.
        """
        # A part of it in any case: some requests may be answered while others are cut, again and again.
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
        """Send, and return the body of a 2xx answer. Raises ApiError or Unreachable."""
        return (await self.answer(method, path, body, content_type, seconds=seconds)).body

    async def answer(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        content_type: str = "application/json",
        *,
        seconds: float = REQUEST_SECONDS,
    ) -> Answer:
        """The same, with the answer's headers."""
        content = {"Content-Type": content_type} if body is not None else None
        limits = self._limits if seconds == REQUEST_SECONDS else _limits(seconds)
        renewed = False
        for attempt in range(1, TRIES_WHEN_BUSY + 1):
            if self._pace is not None:
                waited = await self._pace.wait(method, path)
                if self.observer is not None:
                    self.observer.held_back(method, self._host, waited)
            response, answer, headers = await self._exchange(method, path, body, content, limits)
            if self.observer is not None:
                self.observer.received(method, self._host, len(answer))
            if response.status < 300:
                return Answer(answer, response.headers)
            refusal = error_of(answer, response.status, response.headers.get("Retry-After"))
            if response.status == 401 and not renewed:
                renewed = True
                if await self._credentials.renew(headers):
                    continue
            is_asked_to_wait = response.status == 429 or (response.status >= 500 and "Retry-After" in response.headers)
            if not is_asked_to_wait or attempt == TRIES_WHEN_BUSY:
                raise refusal
            pause = min(refusal.retry_after or 1.0, LONGEST_WAIT_SECONDS)
            _log.v(2).info("The API server asks us to wait", code=response.status, seconds=pause, path=_bare(path))
            await self._clock.sleep(pause)
        raise AssertionError("the last attempt returns or raises")

    async def _exchange(
        self,
        method: str,
        path: str,
        body: bytes | None,
        content: Mapping[str, str] | None,
        limits: aiohttp.ClientTimeout,
    ) -> tuple[aiohttp.ClientResponse, bytes, CIMultiDict[str]]:
        """Send and read the whole answer. A write that may not leave now waits, and holds up no other request."""
        fence = self.fence if method not in READS else None
        while True:
            try:
                async with self._in_flight, _fenced(fence, path):
                    response, headers = await self._send(method, path, body, content, limits)
                    async with response:
                        return response, await response.read(), headers
            except (aiohttp.ClientError, OSError, TimeoutError) as error:
                raise self._unreachable(error) from error
            except Fenced:
                assert fence is not None
                await fence.opened()

    @asynccontextmanager
    async def stream(self, path: str, *, seconds: float) -> AsyncIterator[AsyncIterator[bytes]]:
        """The answer's chunks as they come. Whatever breaks on the way is raised as Unreachable."""
        limits = _limits(seconds)
        response, headers = await self._send("GET", path, None, None, limits)
        if response.status == 401 and await self._credentials.renew(headers):
            response.release()
            response, headers = await self._send("GET", path, None, None, limits)
        try:
            if response.status >= 300:
                try:
                    body = await response.read()
                except (aiohttp.ClientError, OSError, TimeoutError) as error:
                    raise self._unreachable(error) from error
                raise error_of(body, response.status, response.headers.get("Retry-After"))
            _notice_dead_peers(response)
            yield self._chunks(response)
        finally:
            _hang_up(response)

    async def _chunks(self, response: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
        try:
            async for chunk in response.content.iter_any():
                yield chunk
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise self._unreachable(error) from error

    async def _send(
        self,
        method: str,
        path: str,
        body: bytes | None,
        content: Mapping[str, str] | None,
        limits: aiohttp.ClientTimeout,
    ) -> tuple[aiohttp.ClientResponse, CIMultiDict[str]]:
        headers = await self._credentials.headers()
        sent = headers
        if content is not None:
            sent = headers.copy()
            sent.update(content)
        session = self._session or self._open()
        began, code = self._clock.monotonic(), "<error>"
        try:
            response = await session.request(
                method,
                URL(self._base + path, encoded=True),
                data=body,
                headers=sent,
                ssl=self._credentials.ssl_context() or True,
                server_hostname=self.connection.tls_server_name,
                proxy=self.connection.proxy_url,
                timeout=limits,
                allow_redirects=False,
            )
            code = str(response.status)
            self._contact.set()
        except (aiohttp.ClientError, OSError, TimeoutError, ValueError) as error:  # ValueError: an address that is none
            raise self._unreachable(error) from error
        except Fenced:
            code = ""
            raise
        finally:
            if self.observer is not None and code:
                size = len(body) if body is not None else 0
                self.observer.answered(method, self._host, code, self._clock.monotonic() - began, size)
        return response, headers

    def _open(self) -> aiohttp.ClientSession:
        if self._is_closed:
            raise Unreachable(f"the connection to the API server {self.connection.host} was closed by us")
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, resolver=_Resolver(), ttl_dns_cache=30),
            request_class=fenced_request(self.fence) if self.fence is not None else aiohttp.ClientRequest,
            headers={"Accept": "application/json", "Accept-Encoding": "identity", "User-Agent": self._user_agent},
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            trust_env=False,
        )
        return self._session

    def _unreachable(self, error: BaseException) -> Unreachable:
        self._contact.clear()
        where = self.connection
        via = f" through the proxy {where.proxy}" if where.proxy else ""
        return Unreachable(f"cannot reach the API server {where.host}{via} (from {where.source}): {self._why(error)}")

    def _why(self, error: BaseException) -> str:
        where = self.connection
        return scrubbed(_why(error), where.server, *([where.proxy_url] if where.proxy_url else []))


def _fenced(fence: WriteFence | None, path: str) -> AbstractAsyncContextManager[None]:
    """Around a write; None: around a read, or where nothing is held back. Events decide about no pod."""
    return nullcontext() if fence is None else fence.sending(is_decision=not path.startswith(EVENTS))


def _limits(seconds: float) -> aiohttp.ClientTimeout:
    return aiohttp.ClientTimeout(total=seconds, connect=CONNECT_SECONDS)


def _why(error: BaseException) -> str:
    """The cause, and what to do about it, as a sentence's end."""
    match error:
        case aiohttp.ClientConnectorCertificateError() | ssl.SSLCertVerificationError():
            cause = getattr(error, "certificate_error", error)
            reason = getattr(cause, "verify_message", "") or str(cause)
            return f"its certificate is not trusted ({reason}); check certificate-authority and the server's name"
        case aiohttp.ClientConnectorSSLError():
            return f"the TLS handshake failed ({error.os_error}); is this an https server?"
        case aiohttp.ClientConnectorDNSError():
            return "its name cannot be resolved; check the server's address"
        case TimeoutError():
            return "it does not answer in time; check the address, and that no firewall is in between"
        case ConnectionRefusedError():
            return "connection refused; is the server running, and is this its port?"
        case aiohttp.ClientConnectorError():
            return _why(error.os_error)
        case aiohttp.ServerDisconnectedError() | ConnectionResetError() | aiohttp.ClientPayloadError():
            return "the connection was cut"
        case OSError() if error.strerror:
            return error.strerror.lower()
        case _:
            return str(error) or type(error).__name__


def _hang_up(response: aiohttp.ClientResponse) -> None:
    """At once: a farewell by TLS to a stream that goes on would outlive the client, and perhaps its event loop."""
    connection = response.connection
    if connection is not None and connection.transport is not None:
        connection.transport.abort()
    response.close()


def _notice_dead_peers(response: aiohttp.ClientResponse) -> None:
    """A watch may be silent for minutes; only TCP keep-alive tells a quiet server from a vanished one."""
    transport = response.connection.transport if response.connection is not None else None
    sock = transport.get_extra_info("socket") if transport is not None else None
    if sock is None:
        return
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3)):
        if hasattr(socket, option):
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)


class _Pace:
    """At most `qps` requests a second, after a burst. Says so when that holds us back."""

    def __init__(self, qps: float, burst: int | None, clock: Clock) -> None:
        self._qps, self._burst, self._clock = qps, float(max(burst or 1, 1)), clock
        self._left, self._at = self._burst, clock.monotonic()
        self._said_at = float("-inf")

    async def wait(self, method: str, path: str) -> float:
        """Until the request may go; answers how long that took."""
        now, seconds = self._clock.monotonic(), 0.0
        self._left = min(self._burst, self._left + (now - self._at) * self._qps) - 1
        self._at = now
        if self._left < 0:  # taken in advance, so that those who wait keep their order
            seconds = -self._left / self._qps
            if seconds >= LONG_WAIT_SECONDS and now >= self._said_at + LINES_APART_SECONDS:
                self._said_at = now
                _log.warning(
                    "Our own limit holds requests back; raise qps and burst of clientConnection, or leave them out",
                    seconds=round(seconds, 1),
                    qps=self._qps,
                    burst=int(self._burst),
                    request=f"{method} {_bare(path)}",
                )
            await self._clock.sleep(seconds)
        return seconds


def _bare(path: str) -> str:
    """Without the query: a log is no place for it."""
    return path.partition("?")[0]


class _Resolver(AbstractResolver):
    """Names to addresses, on a thread that nothing waits for.

    asyncio's own lookup runs on a pool that the loop joins at its end, so a name server that does not answer would
    hold the program long after the request gave up.
    """

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        loop = asyncio.get_running_loop()
        found: asyncio.Future[list[Any]] = loop.create_future()

        def settle(addresses: list[Any] | None, error: OSError | None) -> None:
            if found.done():
                return
            if error is not None:
                found.set_exception(error)
            else:
                found.set_result(addresses or [])

        def look_up() -> None:
            addresses, failure = None, None
            try:
                addresses = socket.getaddrinfo(
                    host, port, type=socket.SOCK_STREAM, family=family, flags=socket.AI_ADDRCONFIG
                )
            except OSError as error:
                failure = error
            if not loop.is_closed():
                loop.call_soon_threadsafe(settle, addresses, failure)

        threading.Thread(target=look_up, name=f"resolve {host}", daemon=True).start()
        return [
            ResolveResult(
                hostname=host,
                host=address[0],
                port=address[1],
                family=kind,
                proto=protocol,
                flags=socket.AI_NUMERICHOST | socket.AI_NUMERICSERV,
            )
            for kind, _, protocol, _, address in await found
        ]

    async def close(self) -> None:
        """Nothing is kept."""
