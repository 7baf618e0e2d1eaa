"""Background work of plugins is kept alive, with growing pauses."""

import asyncio
import itertools

from mooring.base.clock import ManualClock
from mooring.scheduler.supervision import Supervisor


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_work_is_done_at_once_and_again_after_each_interval():
    clock, done = ManualClock(), []
    supervisor = Supervisor(clock)

    async def work() -> None:
        done.append(clock.now())

    supervisor.for_plugin("Load").every(30, work)
    await settle()
    assert len(done) == 1
    clock.advance(30)
    await settle()
    assert len(done) == 2
    await supervisor.stop()


async def test_failed_work_is_named_and_started_again_after_ever_longer_pauses(capsys):
    clock, tries = ManualClock(), []
    supervisor = Supervisor(clock)

    async def work() -> None:
        tries.append(clock.now())
        raise RuntimeError("no answer from Prometheus")

    supervisor.for_plugin("Load").run(work)
    for pause in (1, 2, 4):
        await settle()
        clock.advance(pause)
    await settle()
    assert [later - earlier for earlier, later in itertools.pairwise(tries)] == [1, 2, 4]
    said = capsys.readouterr().err
    assert "Load]" in said
    assert "no answer from Prometheus" in said
    await supervisor.stop()


async def test_work_that_returns_is_over():
    supervisor = Supervisor(ManualClock())
    done = asyncio.Event()

    async def work() -> None:
        done.set()

    supervisor.for_plugin("Once").run(work)
    await done.wait()
    await settle()
    assert not supervisor._tasks
