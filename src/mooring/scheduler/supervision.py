"""Background work of plugins: what fails is logged under the plugin's name and started again, with growing pauses."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from mooring.base.clock import Clock
from mooring.base.log import Log
from mooring.engine.asking import described, is_its_own

FIRST_PAUSE, LONGEST_PAUSE = 1.0, 60.0

STOP_SECONDS = 5.0

_log = Log("scheduler")

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
            except BaseException as error:  # a plugin's own code: anything may come out of it
                if not is_its_own(error):
                    raise
                if self._clock.monotonic() - began > LONGEST_PAUSE:
                    pause = FIRST_PAUSE
                Log(owner).error("Background task failed; starting it again", err=described(error), seconds=pause)
                await self._clock.sleep(pause)
                pause = min(pause * 2, LONGEST_PAUSE)

    async def stop(self, seconds: float = STOP_SECONDS) -> None:
        """End all of it; work that does not let itself be cancelled is left behind."""
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            _, left = await asyncio.wait(self._tasks, timeout=seconds)
            for task in left:
                _log.warning("Background task does not end", task=task.get_name())


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
