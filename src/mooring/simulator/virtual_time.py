"""Virtual time: an event loop that jumps to its next timer instead of waiting for it.

All that waits by asyncio (backoff, permit, time-outs, departures) then takes as long as its computation, in the same
order as it would in real time.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable
from typing import Any

from mooring.base.errors import Fault

START = 1_700_000_000.0
"""When simulations begin, in seconds since the epoch."""


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """Its time begins at 0 and passes only between two steps."""

    def __init__(self) -> None:
        self._virtual_now = 0.0
        super().__init__(_JumpingSelector(self.advance))
        # Timers that are so close fire together. Asyncio's own nanosecond is less than the last place of a year.
        self._clock_resolution = 1e-6

    def time(self) -> float:
        return self._virtual_now

    def advance(self, seconds: float) -> None:
        """So much time has passed."""
        self._virtual_now += seconds


class _JumpingSelector(selectors.DefaultSelector):
    """Where the loop would sleep until its next timer, that time has passed at once."""

    def __init__(self, jump: Callable[[float], None]) -> None:
        super().__init__()
        self._jump = jump

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready: list[Any] = super().select(0)
        if not ready and timeout is None:
            raise Fault("the simulation waits for something that cannot happen: no timer is set")
        if not ready and timeout:
            self._jump(timeout)
        return ready


class SimulatedClock:
    """The time of a simulation, for scheduler and plugins. It begins at `start`, in seconds since the epoch."""

    def __init__(self, loop: VirtualTimeLoop, start: float) -> None:
        self._start = start
        self.monotonic = loop.time

    def now(self) -> float:
        return self._start + self.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
