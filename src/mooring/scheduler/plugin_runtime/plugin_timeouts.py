"""Calls plugins at the extension points that may wait: each with a timeout, PreBind in parallel where plugins allow it.

A plugin that does not return in time is cancelled and has failed; one that ignores its cancellation is abandoned. Its
pod continues without it.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from typing import Any, TypeVar

from mooring.base.clock import Clock, ends_within
from mooring.base.durations import go_duration
from mooring.base.log import Log
from mooring.engine import calling
from mooring.engine.cycle import EngineCycle
from mooring.engine.extension_point import ExtensionPoint
from mooring.engine.plugin_call import fault
from mooring.framework import Plugin
from mooring.scheduler.plugin_runtime.blocking_code import awaited_in

T = TypeVar("T")

_log = Log("scheduler")

GRACE_SECONDS = 10.0
"""How long a cancelled plugin may take to clean up."""


class PluginCaller:
    """Waits for plugins, by the scheduler's clock."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._calls: set[asyncio.Task[Any]] = set()
        self._is_closed = False

    def cancel_plugins(self) -> None:
        """At shutdown: plugins that await anything but the API server are cancelled, and have failed."""
        self._is_closed = True
        for task in self._calls:
            if not task.cancelling() and (holder := awaited_in(task)) is not None:
                _log.warning("Cancelled a plugin at shutdown", **holder._asdict())
                task.cancel()

    async def call(
        self, cycle: EngineCycle, plugin: Plugin, point: ExtensionPoint, method: Callable[..., Awaitable[T]], *args: Any
    ) -> T:
        """What the plugin returns. Whatever it raises, and a timeout, is a `PluginFault`."""
        seconds = plugin.longest_wait_seconds
        if seconds == math.inf:
            with calling(cycle, plugin, point):
                return await method(*args)
        _check_wait(plugin, point, seconds)

        async def timed() -> T:
            with calling(cycle, plugin, point):
                return await method(*args)

        # As a task of its own: a call that does not end must not block the binding cycle.
        called = asyncio.get_running_loop().create_task(timed())
        self._calls.add(called)
        try:
            is_in_time = await ends_within(self._clock, seconds, called)
        finally:
            await self._end(called, plugin)
            self._calls.discard(called)
        if self._is_closed and called.cancelled():
            raise fault(plugin, point, "it was cancelled: the scheduler is stopping")
        if not is_in_time:
            raise fault(plugin, point, f"it did not end within {go_duration(seconds)}")
        return called.result()

    async def call_in_parallel(self, methods: Iterable[Callable[[], Awaitable[None]]]) -> None:
        """Concurrently. The first failure cancels the others, and is raised."""
        try:
            async with asyncio.TaskGroup() as tasks:
                for method in methods:
                    tasks.create_task(_coroutine(method))
        except BaseExceptionGroup as failures:
            raise failures.exceptions[0]  # noqa: B904  # it has its own cause; the others ended because of it

    async def _end(self, task: asyncio.Future[Any], plugin: Plugin) -> None:
        """Cancel it, if it is still running: it timed out, or the caller is cancelled."""
        if task.done():
            return
        task.cancel()
        task.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
        if not await ends_within(self._clock, GRACE_SECONDS, task):
            Log(plugin.name).error("Plugin ignores its cancellation; continuing without it")


def _check_wait(plugin: Plugin, point: ExtensionPoint, seconds: object) -> None:
    if not isinstance(seconds, int | float) or not seconds > 0:
        raise fault(plugin, point, f"longest_wait_seconds is {seconds!r}; it must be a positive number")


async def _coroutine(method: Callable[[], Awaitable[None]]) -> None:
    await method()


def parallel_groups(plugins: Sequence[Plugin], needed: Collection[Plugin]) -> list[list[Plugin]]:
    """The PreBind plugins to call, in the profile's order; those of one list concurrently.

    A plugin that wants to be alone separates its neighbours even where it has nothing to do.
    """
    groups: list[list[Plugin]] = [[]]
    for plugin in plugins:
        if plugin.pre_bind_in_parallel:
            groups[-1] += [plugin] if plugin in needed else []
        else:
            groups += [[plugin] if plugin in needed else [], []]
    return [group for group in groups if group]
