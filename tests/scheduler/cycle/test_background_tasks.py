"""Short work beside the loop: it is held until it ends, and ends with the scheduler."""

import asyncio

from mooring.scheduler.cycle.background_tasks import BackgroundTasks


class Work:
    """Ends when it may; says how."""

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
    errands, work = BackgroundTasks(), Work()
    errands.send(work.run(), "work")
    assert [task.get_name() for task in errands] == ["work"]
    work.may_end.set()
    await settle()
    assert (len(errands), work.ended) == (0, "well")


async def test_at_the_end_what_has_begun_may_end():
    errands, work = BackgroundTasks(), Work()
    errands.send(work.run(), "work")
    await settle()
    asyncio.get_running_loop().call_soon(work.may_end.set)
    await errands.finish(60)
    assert work.ended == "well"


async def test_what_takes_longer_than_there_is_time_is_cancelled():
    errands, work = BackgroundTasks(), Work()
    errands.send(work.run(), "work")
    await settle()
    await errands.finish(0)
    await settle()
    assert (len(errands), work.ended) == (0, "cancelled")


async def test_what_does_not_matter_any_more_is_cancelled_at_once():
    errands, work = BackgroundTasks(), Work()
    errands.send(work.run(), "work")
    await settle()
    await errands.cancel()
    assert (len(errands), work.ended) == (0, "cancelled")


async def test_without_errands_there_is_nothing_to_wait_for():
    errands = BackgroundTasks()
    async with asyncio.timeout(30):  # much less than it was given
        await errands.finish(3600)
        await errands.cancel()
    assert len(errands) == 0
