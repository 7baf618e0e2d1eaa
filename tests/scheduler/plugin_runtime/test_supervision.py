"""Background work of plugins is kept alive, with growing pauses."""

import asyncio
import contextlib
import itertools

import pytest

from mooring.base.clock import ManualClock
from mooring.base.errors import Fault
from mooring.scheduler.plugin_runtime.supervision import Supervisor


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
    """Isolation: a bad plugin fails only its own pod."""
    clock, tries = ManualClock(), []
    supervisor = Supervisor(clock)

    async def work() -> None:
        tries.append(clock.now())
        raise RuntimeError("no response from Prometheus")

    supervisor.for_plugin("Load").run(work)
    for pause in (1, 2, 4):
        await settle()
        clock.advance(pause)
    await settle()
    assert [later - earlier for earlier, later in itertools.pairwise(tries)] == [1, 2, 4]
    logged = capsys.readouterr().err
    assert "Load]" in logged
    assert "no response from Prometheus" in logged
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


async def test_something_cancelled_inside_the_work_does_not_end_it():
    clock, tries = ManualClock(), []
    supervisor = Supervisor(clock)

    async def work() -> None:
        tries.append(clock.now())
        raise asyncio.CancelledError

    supervisor.for_plugin("Load").run(work)
    await settle()
    clock.advance(1)
    await settle()
    assert len(tries) == 2
    await supervisor.stop()
    assert not supervisor._tasks


async def test_work_that_does_not_let_itself_be_cancelled_does_not_hold_up_the_end(capsys):
    supervisor, let_go = Supervisor(ManualClock()), asyncio.Event()

    async def work() -> None:
        while not let_go.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await let_go.wait()

    supervisor.for_plugin("Stubborn").run(work)
    await settle()
    await supervisor.stop(seconds=0.01)
    assert "background Stubborn" in capsys.readouterr().err
    let_go.set()
    await settle()


@pytest.mark.parametrize("seconds", [0, -1, float("nan")])
async def test_work_without_a_pause_is_refused(seconds):
    async def work() -> None: ...

    with pytest.raises(Fault, match="must be a positive number"):
        Supervisor(ManualClock()).for_plugin("Load").every(seconds, work)
