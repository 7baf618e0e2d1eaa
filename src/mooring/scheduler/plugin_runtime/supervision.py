"""Background work of plugins: what fails is logged under the plugin's name and restarted with backoff."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection
from weakref import WeakSet

from mooring.base.clock import Clock
from mooring.base.errors import Fault
from mooring.base.foreign_code import described, is_its_own
from mooring.base.log import Log
from mooring.base.retry import Backoff, Retry

BACKOFF = Backoff(initial_seconds=1.0, limit_seconds=60.0)

STOP_SECONDS = 5.0
BACKGROUND = "Background"

_log = Log("scheduler")

Work = Callable[[], Awaitable[None]]


class Supervisor:
    """Keeps background tasks running until `stop`."""

    def __init__(self, clock: Clock, on_fault: Callable[[str, str], None] = lambda _plugin, _what: None) -> None:
        """`on_fault` is called at each failure with the plugin and "Background"."""
        self._clock = clock
        self._on_fault = on_fault
        self._tasks: set[asyncio.Task[None]] = set()

    def for_plugin(self, plugin: str) -> PluginBackground:
        return PluginBackground(self, self._clock, plugin)

    def spawn(self, owner: str, work: Work) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(self._keep(owner, work), name=f"background {owner}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _keep(self, owner: str, work: Work) -> None:
        retry = Retry(BACKOFF, self._clock)
        while True:
            began = self._clock.monotonic()
            try:
                await work()
                return
            except BaseException as error:  # plugin code: it may raise anything
                if not is_its_own(error):
                    raise
                if self._clock.monotonic() - began > BACKOFF.limit_seconds:
                    retry.reset()
                seconds = retry.failed()
                Log(owner).error("Background task failed; restarting it", err=described(error), seconds=seconds)
                self._on_fault(owner, BACKGROUND)
                await self._clock.sleep(seconds)

    async def stop(self, seconds: float = STOP_SECONDS) -> None:
        """End all of it; work that ignores its cancellation is abandoned."""
        await _end(self._tasks, seconds)


async def _end(tasks: Collection[asyncio.Task[None]], seconds: float) -> None:
    for task in tasks:
        task.cancel()
    if tasks:
        _, left = await asyncio.wait(tasks, timeout=seconds)
        for task in left:
            _log.warning("Background task does not end", task=task.get_name())


class PluginBackground:
    """The `Background` service of one plugin instance."""

    def __init__(self, supervisor: Supervisor, clock: Clock, plugin: str) -> None:
        self._supervisor = supervisor
        self._clock = clock
        self._plugin = plugin
        self._tasks: WeakSet[asyncio.Task[None]] = WeakSet()
        self.is_idle = False
        """Set where nothing is to be started: a recomputation, which has the data that this work would fetch."""

    def every(self, seconds: float, work: Work) -> None:
        if not seconds > 0:
            raise Fault(f"background work every {seconds!r} seconds: it must be a positive number")

        async def again_and_again() -> None:
            while True:
                await work()
                await self._clock.sleep(seconds)

        self.run(again_and_again)

    def run(self, work: Work) -> None:
        if self.is_idle:
            return
        self._tasks.add(self._supervisor.spawn(self._plugin, work))

    async def stop(self, seconds: float = STOP_SECONDS) -> None:
        """End the work of this instance alone."""
        await _end([task for task in self._tasks if not task.done()], seconds)
