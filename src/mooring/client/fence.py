"""Holds writes back that a replica may no longer send, because its lease has expired.

A process that was stopped (SIGSTOP, a frozen cgroup, a suspended machine) resumes where it was, and would send what it
decided before the pause although another replica leads by now. So the lease is checked at the last moment, between the
connection and its first byte; and by a clock that runs while the machine is suspended. A write that is held back
waits: the lease is renewed, because no other replica has taken it, or the process ends. A process that is stopped
between the check and the system call is killed by the kernel when its lease expires (see `kill_timer`).

What the kernel has accepted before the pause cannot be recalled. A request is passed to it in the call that checks, and
whole, as long as it fits into the socket's send buffer (see `connection_pool`).
"""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections import deque
from collections.abc import Callable
from typing import Protocol

from mooring.base.clock import boottime
from mooring.base.errors import Fault
from mooring.base.log import Log

READS = frozenset({"GET", "HEAD"})

_log = Log("client")


class Fenced(Fault):
    """A write was held back. Nothing of it has been sent."""


class _Write:
    """A write of one event loop, in flight inside the `with`."""

    __slots__ = ("_in_flight", "cut", "is_decision", "loop")

    def __init__(
        self,
        in_flight: dict[_Write, None],
        loop: asyncio.AbstractEventLoop,
        cut: Callable[[], None],
        *,
        is_decision: bool,
    ) -> None:
        self._in_flight = in_flight
        self.loop = loop
        self.cut = cut
        self.is_decision = is_decision

    def __enter__(self) -> None:
        self._in_flight[self] = None

    def __exit__(self, *_: object) -> None:
        self._in_flight.pop(self, None)


class Timer(Protocol):
    """Ends the process at that moment, by `now`, unless it is disarmed before."""

    def arm(self, at: float, /) -> None: ...
    def disarm(self) -> None: ...


class WriteFence:
    """Open until the lease expires. In force from the first lease on: what a standby may do is not decided here.

    The replica's election extends and closes it, on a thread of its own; clients pass it on one other thread. Without a
    `timer`, a process that is stopped between the check and the system call sends that one request when it goes on.
    """

    def __init__(self, now: Callable[[], float] = boottime, timer: Timer | None = None) -> None:
        self.now = now
        self._timer = timer
        self._until = math.inf
        self._is_closed = False
        self._in_flight: dict[_Write, None] = {}
        self._waiters: deque[tuple[asyncio.AbstractEventLoop, asyncio.Future[None]]] = deque()

    @property
    def is_open(self) -> bool:
        return self.now() <= self._until

    def extend(self, until: float) -> None:
        """The lease holds until then, by `now`, even as the replica sees it that observed its renewal first.

        Suspended writes resume.
        """
        if self._is_closed:
            return
        self._until = until
        while self._waiters:
            loop, waiter = self._waiters.popleft()
            with contextlib.suppress(RuntimeError):  # its loop is closed
                loop.call_soon_threadsafe(_settle, waiter)

    def suspend(self) -> None:
        """Nothing leaves until the lease is renewed. Writes in flight end without a response, their connections closed:
        a server that stalls should not carry them out when another replica leads."""
        self._until = -math.inf
        for write in tuple(self._in_flight):
            with contextlib.suppress(RuntimeError):  # its loop is closed
                write.loop.call_soon_threadsafe(self._cut, write)

    def _cut(self, write: _Write) -> None:
        if write in self._in_flight:  # otherwise it has ended, and its connection serves another
            write.cut()

    def close(self) -> None:
        """Nothing leaves any more: the lease was lost or is about to be released."""
        self._is_closed = True
        self.suspend()

    @property
    def has_decisions_in_flight(self) -> bool:
        """Whether a write that decides about pods may be on its way, or has no response yet. No other can follow once
        the fence is closed."""
        return any(write.is_decision for write in tuple(self._in_flight))

    def write(self, write: Callable[[bytes], None], request: bytes) -> None:
        """Pass the request to the kernel by this function, unless the lease has expired: then raise Fenced."""
        until = self._until
        self._check(until)
        if self._timer is None or until == math.inf:
            write(request)
            return
        self._timer.arm(until)
        try:
            self._check(until)  # the process may have been stopped before the timer was armed
            write(request)
        finally:
            self._timer.disarm()

    def _check(self, until: float) -> None:
        if self.now() > until:
            raise Fenced("the lease has expired; this replica writes nothing until it has renewed it")

    def sending(
        self, cut: Callable[[], None], *, is_decision: bool = True, loop: asyncio.AbstractEventLoop | None = None
    ) -> contextlib.AbstractContextManager[None]:
        """Around a write, from before its first byte, which has to pass `write`, until its response.

        `cut` is called on this event loop if the fence is suspended meanwhile. `is_decision`: whether the write decides
        about pods, so that no other replica may lead while it is in flight.
        """
        # In flight before the check, as the fence is shut before these are read: no write passes between the two.
        return _Write(self._in_flight, loop or asyncio.get_running_loop(), cut, is_decision=is_decision)

    async def opened(self) -> None:
        """Until writes may leave again. Where the lease is lost that is never: the process ends."""
        while not self.is_open:
            if not self._waiters:
                _log.warning("Lease expired; writes are held until it is renewed")
            loop = asyncio.get_running_loop()
            waiter = loop.create_future()
            self._waiters.append((loop, waiter))
            if self.is_open:  # extended between the two lines above, perhaps without seeing this waiter
                return
            await waiter


def _settle(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)
