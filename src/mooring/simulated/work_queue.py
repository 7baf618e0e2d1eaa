"""Keys to be looked at, each by one worker at a time, again with growing patience when it fails.

A key that is added while it is worked on is worked on once more afterwards; added ten times before its turn, once.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable

from mooring.base.clock import Clock
from mooring.base.errors import ApiError, Fault
from mooring.base.log import Log

FIRST_RETRY_SECONDS = 0.05
LAST_RETRY_SECONDS = 30.0


class WorkQueue:
    """Runs `handle(key)` for every key added, at most `workers` at once."""

    def __init__(
        self, name: str, handle: Callable[[str], Awaitable[None]], *, clock: Clock, log: Log, workers: int = 16
    ) -> None:
        self._name = name
        self._handle = handle
        self._clock = clock
        self._log = log
        self._workers = workers
        self._ready: deque[str] = deque()
        self._queued: set[str] = set()
        self._running: set[str] = set()
        self._again: set[str] = set()
        self._failures: dict[str, int] = {}
        self._reasons: dict[str, str] = {}
        """Why a key failed last, as it was logged."""
        self._later: dict[str, tuple[float, asyncio.Task[None]]] = {}
        self._news = asyncio.Event()

    def add(self, key: str) -> None:
        """Look at the key soon."""
        if key in self._running:
            self._again.add(key)
        elif key not in self._queued:
            self._queued.add(key)
            self._ready.append(key)
            self._news.set()

    def add_after(self, key: str, seconds: float) -> None:
        """Look at the key then; of several times asked for one key the earliest counts."""
        due = self._clock.monotonic() + seconds
        if (waiting := self._later.get(key)) is not None:
            if waiting[0] <= due:
                return
            waiting[1].cancel()
        self._later[key] = due, asyncio.create_task(self._add_at(key, due), name=f"{self._name} {key} later")

    async def _add_at(self, key: str, due: float) -> None:
        await self._clock.sleep(due - self._clock.monotonic())
        self._later.pop(key, None)
        self.add(key)

    @property
    def is_idle(self) -> bool:
        """Nothing to do now (something may be due later)."""
        return not self._ready and not self._running

    async def run(self) -> None:
        """Work until cancelled."""
        try:
            async with asyncio.TaskGroup() as group:
                free = asyncio.Semaphore(self._workers)
                while True:
                    await free.acquire()
                    while not self._ready:
                        self._news.clear()
                        await self._news.wait()
                    key = self._ready.popleft()
                    self._queued.discard(key)
                    self._running.add(key)
                    group.create_task(self._work(key)).add_done_callback(lambda _: free.release())
        finally:
            for _, task in self._later.values():
                task.cancel()
            self._later.clear()

    async def _work(self, key: str) -> None:
        try:
            await self._handle(key)
            self._failures.pop(key, None)
            self._reasons.pop(key, None)
        except Exception as error:  # one object's trouble must not stop the others
            self._failed(key, error)
        finally:
            self._running.discard(key)
            if key in self._again:
                self._again.discard(key)
                self.add(key)

    def _failed(self, key: str, error: Exception) -> None:
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        wait = min(FIRST_RETRY_SECONDS * 2 ** min(failures - 1, 20), LAST_RETRY_SECONDS)
        is_race = isinstance(error, ApiError) and error.code == 409
        if not is_race or failures > 5:
            expected = isinstance(error, Fault)
            reason = str(error) if expected else f"{type(error).__name__}: {error}"
            is_new = self._reasons.get(key) != reason
            self._reasons[key] = reason
            # What keeps failing for one reason is one line, however long the reason lasts.
            log = self._log if is_new else self._log.v(2)
            log.warning("Will try again", work=self._name, key=key, seconds=wait, err=reason)
        self.add_after(key, wait)
