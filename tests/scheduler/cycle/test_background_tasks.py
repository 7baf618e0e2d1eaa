"""Short work beside the loop: it is held until it ends, and ends with the scheduler."""

import asyncio

from mooring.scheduler.cycle.background_tasks import BackgroundTasks


class Work:
    """Ends when it may; records how."""

    def __init__(self) -> None:
        self.may_end = asyncio.Event()
        self.ended = ""

    async def run(self) -> None:
        try:
            await self.may_end.wait()
            self.ended = "well"
        except asyncio.CancelledError:
            self.ended = "cancelled"
            raise


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_what_has_ended_is_no_longer_under_way():
    tasks, work = BackgroundTasks(), Work()
    tasks.start(work.run(), "work")
    assert [task.get_name() for task in tasks] == ["work"]
    work.may_end.set()
    await settle()
    assert (len(tasks), work.ended) == (0, "well")


async def test_at_the_end_what_has_begun_may_end():
    tasks, work = BackgroundTasks(), Work()
    tasks.start(work.run(), "work")
    await settle()
    asyncio.get_running_loop().call_soon(work.may_end.set)
    await tasks.finish(60)
    assert work.ended == "well"


async def test_what_takes_longer_than_there_is_time_is_cancelled():
    tasks, work = BackgroundTasks(), Work()
    tasks.start(work.run(), "work")
    await settle()
    await tasks.finish(0)
    await settle()
    assert (len(tasks), work.ended) == (0, "cancelled")


async def test_what_does_not_matter_any_more_is_cancelled_at_once():
    tasks, work = BackgroundTasks(), Work()
    tasks.start(work.run(), "work")
    await settle()
    await tasks.cancel()
    assert (len(tasks), work.ended) == (0, "cancelled")


async def test_without_background_tasks_there_is_nothing_to_wait_for():
    tasks = BackgroundTasks()
    async with asyncio.timeout(30):  # much less than it was given
        await tasks.finish(3600)
        await tasks.cancel()
    assert len(tasks) == 0
