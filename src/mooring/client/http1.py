"""One HTTP/1.1 connection: writes a request in one piece, reads its response with llhttp (`httptools`).

A request is in the kernel when `send` returns, and `send` passes the fence right before: nothing of the event loop lies
between the check and the bytes that leave. One request at a time: the pool gives a connection to one caller only.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import NamedTuple

import httptools

from mooring.client.fence import WriteFence

LARGEST_HEAD_BYTES = 256 * 1024
"""Of all heads together where interim responses come first; and of what surrounds the chunks of a body."""
LARGEST_BODY_BYTES = 512 * 1024 * 1024
"""Of a body that is not streamed: far more than a page of the largest objects that a cluster stores."""
PIECE_BYTES = 64
"""What a piece of a body occupies besides its bytes: chunks may be as short as one byte."""
UNREAD_BYTES = 1024 * 1024
"""So much of a stream may lie unread before the connection stops reading."""


WITHOUT_BODY = frozenset({204, 304})


class Disconnected(ConnectionError):
    """The server closed the connection before its response was whole."""


class BadResponse(ConnectionError):
    """What arrived is no response to our request."""


class Response(NamedTuple):
    """Status, headers and body; of a stream without the body. `received_at` is when its head was complete, by the event
    loop's time."""

    status: int
    headers: dict[bytes, bytes]
    body: bytes
    received_at: float

    def header(self, name: str) -> str | None:
        wanted = name.lower().encode()
        for key, value in self.headers.items():
            if key.lower() == wanted:
                return value.decode("latin-1")
        return None


class HttpConnection(asyncio.Protocol):
    """A connection that is open, over TCP or TLS."""

    __slots__ = (
        "_body",
        "_body_bytes",
        "_error",
        "_has_head",
        "_head",
        "_head_bytes",
        "_headers",
        "_is_complete",
        "_is_expected",
        "_is_paused",
        "_is_reusable",
        "_loop",
        "_parser",
        "_pieces",
        "_received_at",
        "_response",
        "_status",
        "_streams",
        "_timer",
        "_transport",
        "_unread",
        "_until",
        "_wake",
        "has_received",
        "on_header",
    )

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._transport: asyncio.Transport | None = None
        self._headers: dict[bytes, bytes] = {}
        self.on_header = self._headers.__setitem__
        """Called by the parser for each header: some eight in a response, so this is no Python function."""
        self._parser = httptools.HttpResponseParser(self)
        self._response: asyncio.Future[Response] | None = None
        self._wake: asyncio.Future[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._until = 0.0
        self._error: Exception | None = None
        self._is_reusable = True
        self._is_expected = False
        self._is_paused = False
        self._reset(streams=False)

    def _reset(self, *, streams: bool) -> None:
        self.has_received = False
        """Whether a byte has arrived since the last request."""
        self._streams = streams
        self._status = 0
        self._headers.clear()
        self._head: dict[bytes, bytes] = {}
        self._head_bytes = 0
        self._has_head = False
        self._received_at = 0.0
        self._body: list[bytes] = []
        self._body_bytes = 0
        self._pieces = 0
        self._unread = 0
        self._is_complete = False

    def attach(self, transport: asyncio.Transport) -> None:
        """Use this transport: the connection was made, and perhaps secured, by another protocol."""
        self._transport = transport

    @property
    def is_idle(self) -> bool:
        """Whether it can take the next request."""
        return (
            self._is_reusable
            and not self._is_expected
            and not self._is_paused
            and self._transport is not None
            and not self._transport.is_closing()
        )

    def send(
        self, request: bytes, *, until: float, streams: bool = False, fence: WriteFence | None = None
    ) -> asyncio.Future[Response]:
        """Write the request. The future becomes the whole response, or its head where the body `streams`; all of it has
        to arrive until then, by the event loop's time. Raises Disconnected, or Fenced where `fence` holds it back:
        nothing of it has been sent then."""
        if self._transport is None or self._transport.is_closing():
            raise Disconnected("the connection was cut")
        self._reset(streams=streams)
        if fence is None:
            self._transport.write(request)
        else:
            fence.write(self._transport.write, request)
        self._is_expected = True
        self._response = response = self._loop.create_future()
        self._until = until
        if self._timer is None or until < self._timer.when():
            self._start_timer()
        return response

    async def chunks(self) -> AsyncIterator[bytes]:
        """The body of a streamed response as it arrives. Raises OSError where it breaks off."""
        while True:
            if self._body:
                chunk = self._body[0] if len(self._body) == 1 else b"".join(self._body)
                self._body.clear()
                self._unread = 0
                if self._is_paused and self._transport is not None:
                    self._is_paused = False
                    self._transport.resume_reading()
                yield chunk
            elif self._error is not None:
                raise self._error
            elif self._is_complete:
                return
            else:
                self._wake = self._loop.create_future()
                await self._wake

    def abort(self) -> None:
        """Close at once. Sending TLS close_notify would outlive its caller, and perhaps the event loop."""
        self._is_reusable = False
        self._stop_timer()
        if self._transport is not None:
            self._transport.abort()

    def fail(self, error: Exception) -> None:
        """End the exchange with this error, and close the connection."""
        self.abort()
        if self._is_complete or self._error is not None:
            return
        self._error = error
        self._is_expected = False
        if self._response is not None and not self._response.done():
            self._response.set_exception(error)
        self._wake_reader()

    def time_out(self) -> None:
        self.fail(TimeoutError())

    def _start_timer(self) -> None:
        """One timer for many requests: it is started again when it ends before the time of the request in flight."""
        self._stop_timer()
        self._timer = self._loop.call_at(self._until, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        if not self._is_expected:
            return
        if self._loop.time() < self._until:
            self._start_timer()
        else:
            self.time_out()

    # -- what asyncio calls

    def data_received(self, data: bytes) -> None:
        if not self._is_expected:  # bytes without a request
            self.abort()
            return
        self.has_received = True
        pieces = self._pieces
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            self.fail(BadResponse(f"its response is not HTTP/1.1 ({error})"))
            return
        if not self._has_head or self._pieces == pieces:
            self._head_bytes += len(data)
            if self._head_bytes > LARGEST_HEAD_BYTES:
                self.fail(BadResponse("the head of its response is too large"))
        elif self._body_bytes > LARGEST_BODY_BYTES:
            self.fail(BadResponse("its response is too large"))

    def connection_lost(self, error: Exception | None) -> None:
        self._transport = None
        if error is None and self._is_expected and self._has_head and self._ends_with_connection():
            self._is_reusable = False
            self.on_message_complete()
        self.fail(Disconnected("the connection was cut"))

    # -- what the parser calls

    def on_message_begin(self) -> None:
        if self._is_complete:  # a second response to one request
            self._is_reusable = False

    def on_headers_complete(self) -> None:
        self._status = status = self._parser.get_status_code()
        if status < 200:
            return
        self._has_head = True
        self._head = self._headers.copy()  # what follows the body is ignored
        self._received_at = self._loop.time()
        if self._streams and self._response is not None and not self._response.done():
            self._response.set_result(Response(status, self._head, b"", self._received_at))

    def on_body(self, data: bytes) -> None:
        self._body.append(data)
        self._pieces += 1
        self._head_bytes = 0
        if not self._streams:
            self._body_bytes += len(data) + PIECE_BYTES
        else:
            self._unread += len(data)
            if self._unread > UNREAD_BYTES and not self._is_paused and self._transport is not None:
                self._is_paused = True
                self._transport.pause_reading()
            self._wake_reader()

    def on_message_complete(self) -> None:
        if not self._has_head:  # 1xx: the response is still to come
            self._headers.clear()
            return
        if self._is_complete:
            return
        self._is_complete = True
        self._is_expected = False
        if not self._parser.should_keep_alive():
            self._is_reusable = False
        if self._streams:
            self._wake_reader()
        elif self._response is not None and not self._response.done():
            body = self._body[0] if len(self._body) == 1 else b"".join(self._body)
            self._body = []
            self._response.set_result(Response(self._status, self._head, body, self._received_at))

    def _ends_with_connection(self) -> bool:
        """Whether the body has no other end."""
        names = {name.lower() for name in self._head}
        return not names & {b"content-length", b"transfer-encoding"} and self._status not in WITHOUT_BODY

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _wake_reader(self) -> None:
        if self._wake is not None and not self._wake.done():
            self._wake.set_result(None)
