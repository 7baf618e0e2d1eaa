"""Time that its owner moves, and how it is written."""

from __future__ import annotations

import asyncio
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mooring.base.clock import (
    Alarm,
    ManualClock,
    SystemClock,
    boottime,
    ends_within,
    micro_timestamp,
    parse_timestamp,
    timestamp,
)


async def settled() -> None:
    """Every task has run as far as it can."""
    for _ in range(5):
        await asyncio.sleep(0)


async def test_what_ends_in_time_is_waited_for_no_longer():
    clock, work = ManualClock(), asyncio.get_running_loop().create_future()
    waiting = asyncio.create_task(ends_within(clock, 10, work))
    await settled()
    work.set_result(None)
    assert await waiting


async def test_what_does_not_end_in_time_goes_on():
    clock, work = ManualClock(), asyncio.get_running_loop().create_future()
    waiting = asyncio.create_task(ends_within(clock, 10, work))
    await settled()
    clock.advance(10)
    assert not await waiting
    assert not work.done()


async def test_sleepers_wake_in_the_order_of_their_times():
    clock, woken = ManualClock(), []

    async def sleep(name: str, seconds: float) -> None:
        await clock.sleep(seconds)
        woken.append(name)

    tasks = [asyncio.create_task(sleep(name, seconds)) for name, seconds in [("late", 10), ("soon", 1), ("also", 1)]]
    await settled()
    assert woken == []
    clock.advance(1)
    await settled()
    assert woken == ["soon", "also"]
    clock.advance(8.5)
    await settled()
    assert woken == ["soon", "also"]
    clock.advance(0.5)
    await asyncio.gather(*tasks)
    assert woken == ["soon", "also", "late"]


async def test_a_sleeper_that_was_cancelled_is_not_woken():
    clock = ManualClock()
    sleeper = asyncio.create_task(clock.sleep(1))
    await settled()
    sleeper.cancel()
    await settled()
    clock.advance(2)
    assert sleeper.cancelled()


@pytest.mark.parametrize("seconds", [0, -1])
async def test_sleeping_no_time_at_all_needs_no_advance_of_the_clock(seconds):
    clock = ManualClock()
    sleeper = asyncio.create_task(clock.sleep(seconds))
    await settled()
    assert sleeper.done()


class Bell:
    """An alarm on a clock of its own, and when it rang."""

    def __init__(self) -> None:
        self.clock, self.rang = ManualClock(start=0.0), list[float]()
        self.alarm = Alarm(self.clock, lambda: self.rang.append(self.clock.now()))

    async def advance(self, seconds: int) -> None:
        for _ in range(seconds):
            self.clock.advance(1)
            await settled()


SET = {
    "once": ([5.0], [5.0]),
    "for the same time again": ([5.0, 5.0, 5.0], [5.0]),
    "earlier": ([5.0, 3.0], [3.0]),
    "later": ([3.0, 5.0], [5.0]),
    "for a time that has passed": ([-1.0], [0.0]),
}


@pytest.mark.parametrize(("times", "rings"), SET.values(), ids=SET.keys())
async def test_an_alarm_rings_at_the_time_it_was_set_for_last(times, rings):
    bell = Bell()
    with bell.alarm:
        for due in times:
            bell.alarm.set(due)
            await settled()
        await bell.advance(10)
    assert bell.rang == rings


async def test_an_alarm_that_rang_can_be_set_again_for_the_same_time():
    bell = Bell()
    with bell.alarm:
        bell.alarm.set(2.0)
        await bell.advance(3)
        bell.alarm.set(2.0)
        await settled()
    assert bell.rang == [2.0, 3.0]


async def test_an_alarm_does_not_ring_after_its_end():
    bell = Bell()
    with bell.alarm:
        bell.alarm.set(2.0)
        await settled()
    await bell.advance(5)
    assert bell.rang == []


def test_a_manual_clock_moves_only_when_it_is_moved():
    clock = ManualClock(100)
    assert (clock.now(), clock.monotonic()) == (100, 100)
    clock.advance(5)
    assert (clock.now(), clock.monotonic()) == (105, 105)


async def test_the_machines_clock_goes_on():
    clock = SystemClock()
    before = clock.monotonic()
    await clock.sleep(0)
    assert clock.monotonic() >= before
    assert clock.now() > 1_700_000_000


def test_times_are_written_as_kubernetes_writes_them():
    assert timestamp(1_700_000_000.9) == "2023-11-14T22:13:20Z"
    assert micro_timestamp(1_700_000_000.25) == "2023-11-14T22:13:20.250000Z"


TIMES = {
    "in UTC": "2023-11-14T22:13:20Z",
    "elsewhere": "2023-11-15T00:13:20+02:00",
    "with a fraction": "2023-11-14T22:13:20.000000Z",
}


@pytest.mark.parametrize("text", TIMES.values(), ids=TIMES.keys())
def test_times_are_read_in_any_zone(text):
    assert parse_timestamp(text) == 1_700_000_000


@given(st.integers(0, 4_000_000_000))
def test_what_is_written_reads_back_the_same(seconds):
    assert parse_timestamp(timestamp(seconds)) == seconds
    assert parse_timestamp(micro_timestamp(seconds)) == seconds


def test_the_clock_that_counts_suspended_time_is_never_behind_the_one_that_does_not():
    before = time.monotonic()
    now = boottime()
    assert now >= before
    assert boottime() >= now
