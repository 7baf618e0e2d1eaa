"""Background work of plugins: what fails is logged under the plugin's name and started again, with growing pauses."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from mooring.base.clock import Clock
from mooring.base.log import Log

FIRST_PAUSE, LONGEST_PAUSE = 1.0, 60.0

Work = Callable[[], Awaitable[None]]


class Supervisor:
    """Keeps background tasks running until `stop`."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._tasks: set[asyncio.Task[None]] = set()

    def for_plugin(self, plugin: str) -> PluginBackground:
        return PluginBackground(self, plugin)

    def spawn(self, owner: str, work: Work) -> None:
        task = asyncio.get_running_loop().create_task(self._keep(owner, work), name=f"background {owner}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _keep(self, owner: str, work: Work) -> None:
        pause = FIRST_PAUSE
        while True:
            began = self._clock.monotonic()
            try:
                await work()
                return
            except Exception as error:  # a plugin's own code: anything may come out of it
                if self._clock.monotonic() - began > LONGEST_PAUSE:
                    pause = FIRST_PAUSE
                Log(owner).error("Background task failed; starting it again", error=error, seconds=pause)
                await self._clock.sleep(pause)
                pause = min(pause * 2, LONGEST_PAUSE)

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


class PluginBackground:
    """The `Background` service of one plugin."""

    def __init__(self, supervisor: Supervisor, plugin: str) -> None:
        self._supervisor = supervisor
        self._plugin = plugin

    def every(self, seconds: float, work: Work) -> None:
        async def again_and_again() -> None:
            while True:
                await work()
                await self._supervisor._clock.sleep(seconds)

        self._supervisor.spawn(self._plugin, again_and_again)

    def run(self, work: Work) -> None:
        self._supervisor.spawn(self._plugin, work)
