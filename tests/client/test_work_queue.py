"""The work queue: deduplication, delays and backoff."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import asynccontextmanager

from tests.simulated.conftest import PATIENCE_SECONDS

from mooring.base.clock import ManualClock
from mooring.base.errors import Fault
from mooring.base.log import Log
from mooring.client.work_queue import BACKOFF, WorkQueue


@asynccontextmanager
async def a_running_queue(handle, clock, workers=4):
    queue = WorkQueue("test", handle, clock=clock, log=Log("test"), workers=workers)
    task = asyncio.create_task(queue.run())
    try:
        yield queue
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


class Work:
    """Handles keys only as far as the test lets it."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.ended: list[str] = []
        self.gate = asyncio.Event()
        self._moved = asyncio.Event()
        self.failures: Counter[str] = Counter()

    async def handle(self, key: str) -> None:
        self.begun.append(key)
        self._moved.set()
        await self.gate.wait()
        if self.failures[key]:
            self.failures[key] -= 1
            raise Fault("not yet")
        self.ended.append(key)
        self._moved.set()

    async def until(self, condition) -> None:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not condition():
                self._moved.clear()
                await self._moved.wait()


async def test_a_key_that_is_added_often_is_handled_once():
    work = Work()
    work.gate.set()
    async with a_running_queue(work.handle, ManualClock()) as queue:
        for _ in range(10):
            queue.add("a")
        queue.add("b")
        await work.until(lambda: len(work.ended) == 2)
    assert work.ended == ["a", "b"]


async def test_a_key_that_is_added_while_it_is_handled_is_handled_again_and_never_twice_at_once():
    work = Work()
    async with a_running_queue(work.handle, ManualClock()) as queue:
        queue.add("a")
        await work.until(lambda: work.begun == ["a"])
        queue.add("a")
        queue.add("a")
        assert work.begun == ["a"]
        work.gate.set()
        await work.until(lambda: work.ended == ["a", "a"])


async def test_no_more_keys_are_handled_at_once_than_there_are_workers():
    work = Work()
    async with a_running_queue(work.handle, ManualClock(), workers=2) as queue:
        for key in "abcd":
            queue.add(key)
        await work.until(lambda: len(work.begun) == 2)
        work.gate.set()
        await work.until(lambda: len(work.ended) == 4)


async def test_a_failure_is_tried_again_after_a_while():
    clock, work = ManualClock(), Work()
    work.gate.set()
    work.failures["a"] = 1
    async with a_running_queue(work.handle, clock) as queue:
        queue.add("a")
        queue.add("b")
        await work.until(lambda: work.ended == ["b"])
        assert work.begun == ["a", "b"]

        clock.advance(BACKOFF.initial_seconds)
        await work.until(lambda: work.ended == ["b", "a"])


async def test_of_several_later_times_the_earliest_counts():
    clock, work = ManualClock(), Work()
    work.gate.set()
    async with a_running_queue(work.handle, clock) as queue:
        queue.add_after("a", 60)
        queue.add_after("a", 5)
        queue.add_after("a", 30)
        clock.advance(5)
        await work.until(lambda: work.ended == ["a"])
        clock.advance(60)
        queue.add("end")
        await work.until(lambda: "end" in work.ended)
    assert work.ended == ["a", "end"]
