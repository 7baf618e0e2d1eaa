"""A listening port for untrusted clients: what its connections may cost in time, memory, descriptors and log lines.

The gate accepts connections, terminates TLS, and hands those that have sent a whole request head to an HTTP server. It
bounds

- the time for a whole head, counted from accept through the handshake; for a request and its response; for idling;
- the connections of one client and of all together. A new connection is always accepted: at a limit, the gate sheds
  the one that is worth least of the client that has most. A probe that completes in milliseconds gets in, whatever
  number of half requests are held open, also from its own address;
- the bytes of a head and of a request;
- TLS handshakes a second of one client;
- what happens when descriptors run out: a few are reserved for connections; after those, idle connections are shed;
  then accepting pauses.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import resource
import socket
import ssl
from collections.abc import Callable
from dataclasses import dataclass, replace

from mooring.base.gated_connection import RECEIVED_AT_ONCE, GatedConnection, Phase
from mooring.base.limited_log import LimitedLog
from mooring.base.log import Log
from mooring.base.memory import give_back_pages
from mooring.base.rates import Rates, client_key

OUT_OF_RESOURCES = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
RESERVED_DESCRIPTORS = 8
ACCEPTED_AT_ONCE = 32
PAUSE_SECONDS = 1.0
SWEEP_SECONDS = 0.5
MANY = 64
"""After a burst of so many connections, free memory is returned to the system."""
SHARE_OF_DESCRIPTORS = 4
"""Connections take at most one of so many descriptors that the process may open."""


@dataclass(frozen=True)
class GateLimits:
    """What clients may cost."""

    head_seconds: float = 30.0
    """For the first whole request head, from accept on, TLS handshake included."""
    request_seconds: float = 60.0
    """For a request from its first byte to the first byte of the response, and for the client to read a response."""
    idle_seconds: float = 90.0
    """For a kept connection without a request."""
    linger_seconds: float = 1.0
    """For the client to close its side after we closed ours."""
    head_bytes: int = 64 * 1024
    """Tokens that name many groups are long."""
    request_bytes: int = 128 * 1024
    """Head and body, and what is sent before a response to it begins."""
    connections: int = 256
    connections_of_a_client: int = 64
    handshakes_per_second: float = 200.0
    """Of one client, after a burst. Each costs about half a millisecond of CPU time."""
    burst_of_handshakes: int = 1_000
    trim_seconds: float = 60.0
    """Memory is given back to the system so often at most."""

    def within(self, descriptors: int) -> GateLimits:
        """The same, for a process that may open so many descriptors."""
        most = max(8, min(self.connections, descriptors // SHARE_OF_DESCRIPTORS))
        of_a_client = max(4, min(self.connections_of_a_client, most // 2))
        return replace(self, connections=most, connections_of_a_client=of_a_client)


class ConnectionGate:
    """Listens on a socket until `close`. Construct it on the loop that serves."""

    def __init__(
        self,
        listening: socket.socket,
        context: ssl.SSLContext | None,
        protocol: Callable[[], asyncio.Protocol],
        *,
        log_name: str,
        limits: GateLimits | None = None,
    ) -> None:
        self.loop = asyncio.get_running_loop()
        self.context = context
        """None: without TLS, for clients on this machine only."""
        self.protocol = protocol
        """Makes the HTTP server's side of a connection."""
        self.limits = (limits or GateLimits()).within(resource.getrlimit(resource.RLIMIT_NOFILE)[0])
        self.buffer = memoryview(bytearray(RECEIVED_AT_ONCE))
        """What all connections receive into; nothing stays in it."""
        self._listening = listening
        self._connections: dict[str, set[GatedConnection]] = {}
        self._count = self._peak = 0
        self._trimmed_at = self.loop.time()
        self._rates = Rates(
            self.loop.time,
            per_second=self.limits.handshakes_per_second,
            burst=self.limits.burst_of_handshakes,
        )
        self._reserve: list[int] = []
        self._warnings = LimitedLog(Log(log_name), lines=1)
        self._details = LimitedLog(Log(log_name, 2))
        self._is_open = True
        self._resuming: asyncio.TimerHandle | None = None
        self._sweeping: asyncio.TimerHandle | None = None
        self._refill()
        listening.setblocking(False)
        self.loop.add_reader(listening, self._accept)
        self._sweep()

    def __len__(self) -> int:
        return self._count

    def stop_accepting(self) -> None:
        """Close the port; open connections go on."""
        if not self._is_open:
            return
        self._is_open = False
        self.loop.remove_reader(self._listening)
        self._listening.close()
        if self._resuming is not None:
            self._resuming.cancel()

    def close(self) -> None:
        """Close the port and every connection. Closing twice is harmless."""
        self.stop_accepting()
        if self._sweeping is not None:
            self._sweeping.cancel()
        for connection in [each for held in self._connections.values() for each in held]:
            connection.abort()
        while self._reserve:
            os.close(self._reserve.pop())

    # Accepting.

    def _accept(self) -> None:
        for _ in range(ACCEPTED_AT_ONCE):
            try:
                accepted, peername = self._listening.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                if error.errno not in OUT_OF_RESOURCES:
                    self._warnings.error("Failed to accept a connection", err=error)
                    self._pause()
                    return
                if not self._make_room_for_a_descriptor(error):
                    return
                continue
            self._admit(accepted, peername)

    def _admit(self, accepted: socket.socket, peername: tuple[object, ...]) -> None:
        client = client_key(str(peername[0]))
        if len(self._connections.get(client, ())) >= self.limits.connections_of_a_client:
            self._shed(self._connections[client])
        if self._count >= self.limits.connections:
            self._shed(self._largest())
        accepted.setblocking(False)
        accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._connections.setdefault(client, set()).add(GatedConnection(self, client, accepted, peername))
        self._count += 1
        self._peak = max(self._peak, self._count)

    def _largest(self) -> set[GatedConnection]:
        return max(self._connections.values(), key=len, default=set())

    def _shed(self, held: set[GatedConnection]) -> None:
        """Close the connection that is worth least: the one that is longest in the lowest phase."""
        least = min(held, key=lambda each: (each.phase, each.since))
        self._details.info(
            "Connection shed: too many are open",
            srcIP=least.client,
            waitsFor=least.phase.name.lower(),
            ofThisClient=len(held),
            total=self._count,
        )
        least.abort()

    def _make_room_for_a_descriptor(self, error: OSError) -> bool:
        """A descriptor was freed and accepting may be tried again; False: accepting pauses."""
        self._warnings.error(
            "Too few file descriptors to accept connections: raise the limit of open files (ulimit -n)",
            err=error,
            connections=self._count,
            limit=resource.getrlimit(resource.RLIMIT_NOFILE)[0],
        )
        if self._reserve:
            os.close(self._reserve.pop())
            return True
        if self._count:
            self._shed(self._largest())
            return True
        self._pause()
        return False

    def _pause(self) -> None:
        """The kernel queues new connections meanwhile."""
        if self._is_open and self._resuming is None:
            self.loop.remove_reader(self._listening)
            self._resuming = self.loop.call_later(PAUSE_SECONDS, self._resume)

    def _resume(self) -> None:
        self._resuming = None
        if self._is_open:
            self.loop.add_reader(self._listening, self._accept)

    def _refill(self) -> None:
        with contextlib.suppress(OSError):
            while len(self._reserve) < RESERVED_DESCRIPTORS and self._is_open:
                self._reserve.append(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC))

    # Time limits.

    def _sweep(self) -> None:
        now = self.loop.time()
        limits = self.limits
        allowed = {
            Phase.CLOSING: limits.linger_seconds,
            Phase.HEAD: limits.head_seconds,
            Phase.IDLE: limits.idle_seconds,
            Phase.SENDING: limits.request_seconds,
            Phase.RESPONDING: limits.request_seconds,
        }
        for connection in [each for held in self._connections.values() for each in held]:
            phase = connection.phase
            if now - connection.since > allowed[phase]:
                if phase in (Phase.HEAD, Phase.SENDING, Phase.RESPONDING):
                    self._details.info(
                        "Connection closed: its time is over", srcIP=connection.client, waitedFor=phase.name.lower()
                    )
                if phase is Phase.IDLE:
                    connection.close()
                else:
                    connection.abort()
        if self._peak >= MANY and self._count < self._peak // 4 and now - self._trimmed_at > limits.trim_seconds:
            self._peak, self._trimmed_at = self._count, now
            give_back_pages()
        self._refill()
        shortest = min(*allowed.values(), SWEEP_SECONDS * 2) / 2
        self._sweeping = self.loop.call_later(shortest, self._sweep)

    # Called by connections.

    def may_handshake(self, connection: GatedConnection) -> bool:
        """Whether TLS may begin: its client has not caused too many handshakes lately."""
        if self._rates.take(connection.client):
            return True
        self._details.info("Connection refused: too many TLS handshakes a second", srcIP=connection.client)
        return False

    def on_end(self, connection: GatedConnection) -> None:
        held = self._connections.get(connection.client)
        if held is None or connection not in held:
            return
        held.discard(connection)
        self._count -= 1
        if not held:
            del self._connections[connection.client]
        if len(self._reserve) < RESERVED_DESCRIPTORS:
            self._refill()

    def on_failed_handshake(self, connection: GatedConnection, error: Exception) -> None:
        self._details.info(
            "TLS handshake failed", srcIP=connection.client, err=getattr(error, "reason", None) or type(error).__name__
        )

    def on_too_large(self, connection: GatedConnection) -> None:
        self._details.info("Request refused: too large", srcIP=connection.client, most=self.limits.head_bytes)
