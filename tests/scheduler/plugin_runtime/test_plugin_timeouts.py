"""How long a plugin is waited for, and what becomes of one that does not end."""

import asyncio
import math

import pytest
from tests.engine.builders import a_profile, a_state

from mooring.base.clock import ManualClock
from mooring.base.errors import PluginFault
from mooring.engine import decide
from mooring.engine.cycle import EngineCycle
from mooring.engine.extension_point import ExtensionPoint
from mooring.framework import Plugin
from mooring.scheduler.plugin_runtime.plugin_timeouts import GRACE_SECONDS, PluginCaller
from mooring.testing import a_pod


class Slow(Plugin):
    longest_wait_seconds = 60


@pytest.fixture
def cycle() -> EngineCycle:
    return decide(a_profile(), a_pod(), a_state("a")).cycle


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def test_a_result_in_time_is_returned(cycle, clock):
    async def response() -> str:
        await clock.sleep(59)
        return "done"

    requested = asyncio.create_task(PluginCaller(clock).call(cycle, Slow(), ExtensionPoint.PRE_BIND, response))
    await settle()
    clock.advance(59)
    assert await requested == "done"


async def test_a_plugin_that_takes_longer_is_cancelled_and_named(cycle, clock):
    ended = []

    async def response() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(True)

    requested = asyncio.create_task(PluginCaller(clock).call(cycle, Slow(), ExtensionPoint.PRE_BIND, response))
    await settle()
    clock.advance(59)
    await settle()
    assert not requested.done()
    clock.advance(1)
    with pytest.raises(PluginFault) as problem:
        await requested
    assert str(problem.value) == 'running PreBind plugin "Slow": it did not end within 1m0s'
    assert (problem.value.plugin, problem.value.point) == ("Slow", "PreBind")
    assert ended == [True]


async def test_a_plugin_that_does_not_let_itself_be_cancelled_is_left_behind(cycle, clock, capsys):
    may_end = asyncio.Event()

    async def response() -> None:
        while not may_end.is_set():
            try:
                await may_end.wait()
            except asyncio.CancelledError:
                continue

    requested = asyncio.create_task(PluginCaller(clock).call(cycle, Slow(), ExtensionPoint.PRE_BIND, response))
    await settle()
    clock.advance(60)
    await settle()
    assert not requested.done()
    clock.advance(GRACE_SECONDS)
    with pytest.raises(PluginFault, match="did not end within 1m0s"):
        await requested
    logged = capsys.readouterr().err
    assert "Slow]" in logged
    assert "ignores its cancellation" in logged
    may_end.set()
    await settle()


async def test_a_plugin_that_bounds_its_waiting_itself_is_waited_for(cycle, clock):
    class Patient(Plugin):
        longest_wait_seconds = math.inf

    may_end = asyncio.Event()

    async def response() -> str:
        await may_end.wait()
        return "at last"

    requested = asyncio.create_task(PluginCaller(clock).call(cycle, Patient(), ExtensionPoint.PRE_BIND, response))
    await settle()
    clock.advance(1e9)
    await settle()
    assert not requested.done()
    may_end.set()
    assert await requested == "at last"


async def test_a_caller_that_is_cancelled_cancels_the_plugin_it_called(cycle, clock):
    ended = []

    async def response() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(True)

    requested = asyncio.create_task(PluginCaller(clock).call(cycle, Slow(), ExtensionPoint.PRE_BIND, response))
    await settle()
    requested.cancel()
    with pytest.raises(asyncio.CancelledError):
        await requested
    assert ended == [True]


async def test_of_several_that_fail_the_first_is_reported(clock):
    async def fails(words: str) -> None:
        raise PluginFault("X", words)

    async def fails_when_cancelled() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            raise PluginFault("Y", "second")

    with pytest.raises(PluginFault, match="first"):
        await PluginCaller(clock).call_in_parallel([fails_when_cancelled, lambda: fails("first")])


@pytest.mark.parametrize("invalid", [0, -1, math.nan, "long", None])
async def test_an_invalid_timeout_is_reported(cycle, clock, invalid):
    class Odd(Plugin):
        longest_wait_seconds = invalid

    async def response() -> None: ...

    with pytest.raises(PluginFault, match=r'"Odd": longest_wait_seconds is .*; it must be a positive number'):
        await PluginCaller(clock).call(cycle, Odd(), ExtensionPoint.PRE_BIND, response)
