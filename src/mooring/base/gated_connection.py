"""One connection of a `ConnectionGate`: cheap until a whole request head has arrived, and measured all its life.

asyncio's own TLS transport allocates 256 KiB for each connection before the client has proven anything, and an HTTP
server's objects come on top. Here a connection is a socket and a few numbers until its first byte, OpenSSL's state
until its first whole head, and only then gets the protocol of the HTTP server. To that protocol it is an ordinary
asyncio transport.

What is measured is bytes and times, not HTTP: bytes received since the server last wrote, and how long the client
lets the server wait. The gate reads them and closes what exceeds its limits.
"""

from __future__ import annotations

import asyncio
import contextlib
import enum
import socket
import ssl
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mooring.base.gate import ConnectionGate

END_OF_HEAD = b"\r\n\r\n"
RECEIVED_AT_ONCE = 8 * 1024
"""Also bounds what OpenSSL's buffers grow to."""
SEALED_AT_ONCE = 16 * 1024
HIGH_WATER = 64 * 1024
TOO_LARGE = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\nContent-Type: text/plain; charset=utf-8\r\n"
    b"Content-Length: 23\r\nConnection: close\r\n\r\nrequest head too large\n"
)


class Phase(enum.IntEnum):
    """What a connection waits for; the lower ones are shed first."""

    CLOSING = 0
    """For the client to close its side."""
    HEAD = 1
    """For its first whole request head."""
    IDLE = 2
    """For another request."""
    SENDING = 3
    """For the client to read what was written."""
    RESPONDING = 4
    """For the server, or for the rest of a request."""


class GatedConnection(asyncio.Transport):
    """Belongs to the loop of its gate."""

    __slots__ = (
        "_backlog",
        "_backlog_bytes",
        "_context",
        "_gate",
        "_has_handshake",
        "_head",
        "_incoming",
        "_is_closing",
        "_is_lingering",
        "_is_reading",
        "_is_writer_watched",
        "_is_writing_paused",
        "_loop",
        "_outgoing",
        "_protocol",
        "_sealed",
        "_socket",
        "_tls",
        "_water",
        "client",
        "peername",
        "received",
        "since",
    )

    def __init__(self, gate: ConnectionGate, client: str, accepted: socket.socket, peername: Any) -> None:
        super().__init__()
        self._gate = gate
        self._loop = gate.loop
        self._socket: socket.socket | None = accepted
        self._context = gate.context
        self._tls: ssl.SSLObject | None = None
        self._incoming: ssl.MemoryBIO | None = None
        self._outgoing: ssl.MemoryBIO | None = None
        self._has_handshake = False
        self._head: bytes | None = b""
        self._protocol: asyncio.Protocol | None = None
        self._backlog: deque[memoryview] | None = None
        self._backlog_bytes = 0
        self._sealed: bytes | memoryview = b""
        self._water = HIGH_WATER
        self._is_closing = self._is_lingering = False
        self._is_reading = True
        self._is_writer_watched = self._is_writing_paused = False
        self.client = client
        """The key that limits count it under."""
        self.peername = peername
        self.received = 0
        """Bytes since the server last wrote."""
        self.since = self._loop.time()
        """When its phase began."""
        self._loop.add_reader(accepted, self._on_readable)

    # Called by the gate.

    @property
    def phase(self) -> Phase:
        if self._is_lingering:
            return Phase.CLOSING
        if self._head is not None:
            return Phase.HEAD
        if self.get_write_buffer_size():
            return Phase.SENDING
        return Phase.RESPONDING if self.received else Phase.IDLE

    @property
    def is_open(self) -> bool:
        return self._socket is not None

    # Receiving.

    def _on_readable(self) -> None:
        if self._socket is None:
            return
        try:
            count = self._socket.recv_into(self._gate.buffer)
        except (BlockingIOError, InterruptedError):
            return
        except OSError as error:
            self._end(error)
            return
        if count == 0:
            self._on_eof()
            return
        if self._is_lingering:
            return
        if self._context is None:
            if not self._is_closing:
                self._on_data(bytes(self._gate.buffer[:count]))
            return
        if self._incoming is None or self._outgoing is None:
            if not self._gate.may_handshake(self):
                self.abort()
                return
            self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
            self._tls = self._context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        self._incoming.write(self._gate.buffer[:count])
        self._advance()

    def _advance(self) -> None:
        """Handshake, then decrypt what there is."""
        tls = self._tls
        if tls is None:
            return
        try:
            if not self._has_handshake:
                tls.do_handshake()
                self._has_handshake = True
            while self._is_reading and not self._is_closing:
                data = tls.read(SEALED_AT_ONCE)
                if not data:
                    self._on_eof()
                    return
                self._on_data(data)
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLZeroReturnError:
            self._on_eof()
            return
        except (ssl.SSLError, ssl.CertificateError, ValueError) as error:
            if not self._has_handshake:
                self._gate.on_failed_handshake(self, error)
            self._flush()  # the TLS alert with the reason
            self._end(error)
            return
        self._flush()

    def _on_data(self, data: bytes) -> None:
        if self.phase is Phase.IDLE:
            self.since = self._loop.time()
        self.received += len(data)
        limits = self._gate.limits
        if self._head is None:
            if self.received > limits.request_bytes:
                self._gate.on_too_large(self)
                self.abort()
            elif self._protocol is not None:
                self._protocol.data_received(data)
            return
        # The end of the head may lie across two reads.
        begin = max(0, len(self._head) - len(END_OF_HEAD) + 1)
        self._head += data
        end = self._head.find(END_OF_HEAD, begin)
        if end > limits.head_bytes or (end < 0 and len(self._head) > limits.head_bytes):
            self._gate.on_too_large(self)
            self._head = None
            self.write(TOO_LARGE)
            self.close()
        elif end >= 0 or _is_no_http(self._head):
            self._hand_over()

    def _hand_over(self) -> None:
        """The HTTP server takes over, with what was received so far."""
        head, self._head = self._head or b"", None
        self.since = self._loop.time()
        protocol = self._protocol = self._gate.protocol()
        protocol.connection_made(self)
        protocol.data_received(head)

    def _on_eof(self) -> None:
        """The client has closed its side: there is nothing more to read, and a response would not be read."""
        if self._is_lingering or self._protocol is None:
            self._end(None)
            return
        self._stop_reading()
        self._protocol.eof_received()
        self.close()

    # Sending.

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if self._socket is None or self._is_closing or not data:
            return
        if self._backlog is None:
            self._backlog = deque()
        if not self.get_write_buffer_size():
            self.since = self._loop.time()
        self.received = 0
        self._backlog.append(memoryview(bytes(data)))
        self._backlog_bytes += len(data)
        self._flush()
        if self._backlog_bytes > self._water and not self._is_writing_paused and self._protocol is not None:
            self._is_writing_paused = True
            self._protocol.pause_writing()

    def _flush(self) -> None:
        """Send as much as the socket takes; encrypt no more than that."""
        connection = self._socket
        if connection is None or (self._tls is None and self._context is not None):
            return
        was_sending = self.get_write_buffer_size() > 0
        try:
            while self._sealed or self._seal_next():
                sent = connection.send(self._sealed)
                self._sealed = memoryview(self._sealed)[sent:] if sent < len(self._sealed) else b""
        except (BlockingIOError, InterruptedError):
            self._watch_writer()
            return
        except (ssl.SSLError, OSError) as error:
            self._end(error)
            return
        self._unwatch_writer()
        self._backlog = None
        if was_sending and self._head is None:
            self.since = self._loop.time()
        if self._is_writing_paused and self._protocol is not None:
            self._is_writing_paused = False
            self._protocol.resume_writing()
        if self._is_closing and not self._is_lingering and not self._backlog_bytes:
            self._linger()

    def _seal_next(self) -> bool:
        """Encrypt the next piece; False: nothing is left."""
        if self._context is None:
            self._sealed = self._backlog.popleft() if self._backlog else b""
            self._backlog_bytes -= len(self._sealed)
            return bool(self._sealed)
        assert self._tls is not None
        assert self._outgoing is not None
        if self._has_handshake and self._backlog and not self._outgoing.pending:
            piece = self._backlog.popleft()
            if len(piece) > SEALED_AT_ONCE:
                self._backlog.appendleft(piece[SEALED_AT_ONCE:])
                piece = piece[:SEALED_AT_ONCE]
            self._backlog_bytes -= self._tls.write(piece)
        self._sealed = self._outgoing.read()
        return bool(self._sealed)

    def _watch_writer(self) -> None:
        if not self._is_writer_watched and self._socket is not None:
            self._is_writer_watched = True
            self._loop.add_writer(self._socket, self._flush)

    def _unwatch_writer(self) -> None:
        if self._is_writer_watched and self._socket is not None:
            self._is_writer_watched = False
            self._loop.remove_writer(self._socket)

    # Ending.

    def close(self) -> None:
        """Send what was written, then close."""
        if self._is_closing or self._socket is None:
            return
        self._is_closing = True
        if not self.get_write_buffer_size():
            self._linger()

    def abort(self) -> None:
        """Close at once."""
        self._end(None)

    def _linger(self) -> None:
        """Close our side, and let the client read up to there: closing with unread input would reset the connection."""
        if self._socket is None or self._is_lingering:
            return
        self._is_lingering = True
        self.since = self._loop.time()
        if self._tls is not None and self._outgoing is not None:
            with contextlib.suppress(ssl.SSLError, OSError, ValueError):
                self._tls.unwrap()
            with contextlib.suppress(OSError):
                self._socket.send(self._outgoing.read())
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_WR)
        self._give_back(None)
        self._tls = self._incoming = self._outgoing = None
        if not self._is_reading:
            self._is_reading = True
            self._loop.add_reader(self._socket, self._on_readable)

    def _end(self, error: Exception | None) -> None:
        connection, self._socket = self._socket, None
        if connection is None:
            return
        self._is_closing = True
        self._loop.remove_reader(connection)
        if self._is_writer_watched:
            self._loop.remove_writer(connection)
        connection.close()
        self._give_back(error if isinstance(error, OSError) and not isinstance(error, ssl.SSLError) else None)
        self._tls = self._incoming = self._outgoing = None
        self._head, self._backlog, self._sealed, self._backlog_bytes = None, None, b"", 0
        self._gate.on_end(self)

    def _give_back(self, error: Exception | None) -> None:
        protocol, self._protocol = self._protocol, None
        if protocol is not None:
            self._loop.call_soon(protocol.connection_lost, error)

    # What else an asyncio transport can.

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        known: dict[str, Callable[[], Any]] = {
            "peername": lambda: self.peername,
            "socket": lambda: self._socket,
            "ssl_object": lambda: self._tls,
            "sslcontext": lambda: self._context,
            "sockname": lambda: self._socket.getsockname() if self._socket is not None else None,
        }
        found = known[name]() if name in known else None
        return default if found is None else found

    def is_closing(self) -> bool:
        return self._is_closing

    def get_protocol(self) -> asyncio.BaseProtocol:
        assert self._protocol is not None
        return self._protocol

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        assert isinstance(protocol, asyncio.Protocol)
        self._protocol = protocol

    def is_reading(self) -> bool:
        return self._is_reading and not self._is_closing

    def pause_reading(self) -> None:
        if not self._is_closing:
            self._stop_reading()

    def _stop_reading(self) -> None:
        if self._is_reading and self._socket is not None:
            self._is_reading = False
            self._loop.remove_reader(self._socket)

    def resume_reading(self) -> None:
        if self._is_reading or self._is_closing or self._socket is None:
            return
        self._is_reading = True
        self._loop.add_reader(self._socket, self._on_readable)
        self._loop.call_soon(self._advance)  # what OpenSSL has already

    def can_write_eof(self) -> bool:
        return False

    def get_write_buffer_size(self) -> int:
        return self._backlog_bytes + len(self._sealed)

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._water = HIGH_WATER if high is None else high


def _is_no_http(head: bytes) -> bool:
    """Whether the first line is not that of a request: then the HTTP server's refusal need not wait for more."""
    end = head.find(b"\n")
    return end >= 0 and not head.endswith((b"HTTP/1.1\r\n", b"HTTP/1.0\r\n"), 0, end + 1)
