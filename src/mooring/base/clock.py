"""Time as a dependency that is injected, so that tests and the simulator control it."""

from __future__ import annotations

import asyncio
import functools
import heapq
import itertools
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Protocol


class Clock(Protocol):
    """The time, and waiting."""

    def now(self) -> float:
        """Seconds since the epoch: what Kubernetes objects carry."""
        ...

    def monotonic(self) -> float:
        """Seconds that never go backwards: for measuring and for backoff."""
        ...

    async def sleep(self, seconds: float) -> None: ...


class SystemClock:
    """The machine's own time."""

    # The functions themselves: they are called many times for every pod.
    now = staticmethod(time.time)
    monotonic = staticmethod(time.monotonic)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


def boottime() -> float:
    """Monotonic seconds that also count while the machine is suspended, where the system has such a clock."""
    return time.clock_gettime(_BOOTTIME) if _BOOTTIME is not None else time.monotonic()


# Linux: CLOCK_MONOTONIC stands still while a machine is suspended.
_BOOTTIME: int | None = getattr(time, "CLOCK_BOOTTIME", None)


class ManualClock:
    """Time that moves only when its owner advances it."""

    def __init__(self, start: float = 1_700_000_000.0) -> None:
        self._now = start
        self._order = itertools.count()
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []

    def now(self) -> float:
        return self._now

    def monotonic(self) -> float:
        return self._now

    async def sleep(self, seconds: float) -> None:
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self._now + seconds, next(self._order), done))
        await done

    def advance(self, seconds: float) -> None:
        """Advance the time, and wake every sleeper whose time has come."""
        self._now += seconds
        while self._sleepers and self._sleepers[0][0] <= self._now:
            _, _, done = heapq.heappop(self._sleepers)
            if not done.done():
                done.set_result(None)


class Alarm:
    """Calls `ring` at a time of the clock. `with` it; what is not due at the end is dropped.

    To set it again for the same time costs nothing: a loop may do so before every wait.
    """

    def __init__(self, clock: Clock, ring: Callable[[], None]) -> None:
        self._clock = clock
        self._ring = ring
        self._due: float | None = None
        self._task: asyncio.Task[None] | None = None

    def __enter__(self) -> Alarm:
        return self

    def __exit__(self, *exception: object) -> None:
        self._drop()

    def set(self, due: float) -> None:
        """Ring then, by the clock's `now`, and at no earlier time that was set before."""
        if due != self._due:
            self._drop()
            self._due = due
            self._task = asyncio.get_running_loop().create_task(self._wait(due))

    async def _wait(self, due: float) -> None:
        await self._clock.sleep(max(0.0, due - self._clock.now()))
        self._due = None
        self._ring()

    def _drop(self) -> None:
        if self._task is not None:
            self._task.cancel()


async def ends_within(clock: Clock, seconds: float, future: asyncio.Future[Any]) -> bool:
    """Wait for it at most that long; return whether it is done. It runs on if it is not, also if we are cancelled."""
    alarm = asyncio.ensure_future(clock.sleep(seconds))
    try:
        await asyncio.wait([future, alarm], return_when=asyncio.FIRST_COMPLETED)
    finally:
        alarm.cancel()
    return future.done()


def timestamp(seconds: float) -> str:
    """RFC 3339 in whole seconds, as Kubernetes writes `metav1.Time`."""
    return datetime.fromtimestamp(int(seconds), UTC).isoformat()[:-6] + "Z"


def micro_timestamp(seconds: float) -> str:
    """RFC 3339 with microseconds, as Kubernetes writes `metav1.MicroTime`."""
    whole, micros = divmod(round(seconds * 1e6), 1_000_000)
    return f"{_second(whole)}.{micros:06d}Z"


@functools.lru_cache(maxsize=8)
def _second(seconds: int) -> str:
    """Many events have the same second."""
    return timestamp(seconds)[:-1]


def parse_timestamp(text: str) -> float:
    """Seconds since the epoch of an RFC 3339 text."""
    return datetime.fromisoformat(text).timestamp()
