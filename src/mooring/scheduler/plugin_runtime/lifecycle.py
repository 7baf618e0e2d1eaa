"""The lifecycle of plugin instances: `start()` and `stop()`, and the background work that ends with them."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable

from mooring.base.errors import Fault
from mooring.base.foreign_code import described, is_its_own, raised
from mooring.base.log import Log
from mooring.scheduler.plugin_runtime.assembly import Instance
from mooring.scheduler.plugin_runtime.blocking_code import awaited_in

SLOW_START_SECONDS, MOST_START_SECONDS = 5.0, 60.0

_log = Log("scheduler")


class Lifecycle:
    """Knows which instances have been started and have not ended."""

    def __init__(self, on_fault: Callable[[str, str], None] = lambda _plugin, _what: None) -> None:
        """`on_fault` is called with the plugin that failed to "Start" or to "Stop"."""
        self._alive: list[Instance] = []
        self._on_fault = on_fault

    async def start(self, instance: Instance) -> None:
        """Wait for it with a timeout: one plugin must not block the other profiles."""
        try:
            await self.begin(instance, MOST_START_SECONDS)
        except Fault as problem:
            self._on_fault(instance.plugin.name, "Start")
            where = raised(problem.__cause__ or problem, getattr(instance.plugin, "start", None))
            Log(instance.plugin.name).error("Plugin failed to start; continuing without its start", **where)

    async def begin(self, instance: Instance, at_most_seconds: float = math.inf) -> None:
        """Start it. Raises `Fault` if that fails, or lasts longer."""
        self._alive.append(instance)
        start = getattr(instance.plugin, "start", None)
        if start is None:
            return
        starting, left = asyncio.ensure_future(_called(start)), at_most_seconds
        try:
            while not starting.done():
                if left <= 0:
                    starting.cancel()
                    raise Fault(f"it has not started within {at_most_seconds:g} s")
                await asyncio.wait([starting], timeout=min(SLOW_START_SECONDS, left))
                left -= SLOW_START_SECONDS
                if not starting.done():
                    _log.warning("Still waiting for a plugin to start", plugin=instance.plugin.name)
            await starting
        except BaseException:
            starting.cancel()
            raise

    async def end(self, instance: Instance, seconds: float) -> None:
        """Stop it, and what it does in the background."""
        await self._stop(instance, seconds)
        await instance.background.stop(seconds)
        if instance in self._alive:
            self._alive.remove(instance)

    async def stop_all(self, left: Callable[[], float]) -> None:
        """At shutdown; the `Supervisor` ends background work."""
        for instance in self._alive:
            await self._stop(instance, left())
        self._alive.clear()

    async def _stop(self, instance: Instance, seconds: float) -> None:
        stop = getattr(instance.plugin, "stop", None)
        if stop is None:
            return
        stopping = asyncio.get_running_loop().create_task(_called(stop))
        try:
            await asyncio.wait([stopping], timeout=seconds)
            if not stopping.done():
                raise await _cancelled(stopping, seconds)
            await stopping
        except Fault as problem:
            self._on_fault(instance.plugin.name, "Stop")
            Log(instance.plugin.name).error("Plugin failed to stop", err=problem)
        except BaseException:
            stopping.cancel()
            raise


async def _cancelled(stopping: asyncio.Task[None], seconds: float) -> Fault:
    """Cancel it; what is left to report."""
    if (holder := awaited_in(stopping)) is not None:
        _log.warning("Cancelled a plugin at shutdown", **holder._asdict())
    stopping.cancel()
    stopping.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
    await asyncio.wait([stopping], timeout=seconds)
    return Fault(f"it has not stopped within {seconds:g} s")


async def _called(method: Callable[[], Awaitable[None]]) -> None:
    """Inside the task: a SystemExit that reached the task itself would end the event loop."""
    try:
        await method()
    except BaseException as error:
        if not is_its_own(error):
            raise
        raise Fault(described(error)) from error
