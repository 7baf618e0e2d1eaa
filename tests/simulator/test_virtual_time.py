"""Time passes at once, in the order in which it would pass."""

from __future__ import annotations

import asyncio
import time

import pytest

from mooring.base.errors import Fault
from mooring.simulator.virtual_time import SimulatedClock, VirtualTimeLoop

YEAR = 365 * 86_400.0


def run(main):
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return runner.run(main())


def test_a_year_takes_no_time():
    async def main() -> float:
        await asyncio.sleep(YEAR)
        return asyncio.get_running_loop().time()

    began = time.monotonic()
    assert run(main) == pytest.approx(YEAR)
    assert time.monotonic() - began < 60


def test_timers_fire_in_order_and_at_their_time():
    async def main() -> list[tuple[str, float]]:
        seen = []
        loop = asyncio.get_running_loop()

        async def sleep(name: str, seconds: float) -> None:
            await asyncio.sleep(seconds)
            seen.append((name, loop.time()))

        await asyncio.gather(sleep("late", 3600.0), sleep("early", 0.25), sleep("at once", 0.0))
        return seen

    assert run(main) == [("at once", 0.0), ("early", 0.25), ("late", 3600.0)]


def test_a_timeout_ends_by_virtual_time():
    async def main() -> float:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(5.0):
                await asyncio.Event().wait()
        return asyncio.get_running_loop().time()

    assert run(main) == 5.0


def test_what_waits_for_nothing_is_reported():
    async def main() -> None:
        await asyncio.Event().wait()

    with pytest.raises(Fault, match="waits for something that cannot happen"):
        run(main)


def test_the_clock_shows_the_time_of_the_loop():
    async def main() -> tuple[float, float]:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualTimeLoop)
        clock = SimulatedClock(loop, start=1000.0)
        await clock.sleep(7.5)
        return clock.now(), clock.monotonic()

    assert run(main) == (1007.5, 7.5)
