"""Short work that is sent out beside the loop, and what becomes of it when the scheduler ends."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator
from typing import Any


class BackgroundTasks:
    """Those under way. They are held here: asyncio itself forgets a task that nobody holds."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()

    def __len__(self) -> int:
        return len(self._tasks)

    def __iter__(self) -> Iterator[asyncio.Task[Any]]:
        return iter(tuple(self._tasks))

    def send(self, errand: Coroutine[Any, Any, Any], name: str) -> None:
        task = asyncio.get_running_loop().create_task(errand, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def finish(self, seconds: float) -> None:
        """Let what has begun end; what takes longer is cancelled."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=seconds)
        for task in self._tasks:
            task.cancel()

    async def cancel(self) -> None:
        """Let nothing of it go on."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
