"""A work queue of keys, as client-go's: one worker per key at a time, deduplicated, with exponential backoff.

A key that is added while it is processed is processed once more afterwards; added ten times before its turn, once.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable

from mooring.base.clock import Clock
from mooring.base.errors import ApiError, Fault
from mooring.base.log import Log
from mooring.base.retry import Backoff

BACKOFF = Backoff(initial_seconds=0.05, limit_seconds=30.0)


class WorkQueue:
    """Calls `sync(key)` for every key added, at most `workers` at once."""

    def __init__(
        self, name: str, sync: Callable[[str], Awaitable[None]], *, clock: Clock, log: Log, workers: int = 16
    ) -> None:
        self._name = name
        self._sync = sync
        self._clock = clock
        self._log = log
        self._workers = workers
        self._ready: deque[str] = deque()
        self._queued: set[str] = set()
        self._processing: set[str] = set()
        self._dirty: set[str] = set()
        self._failures: dict[str, int] = {}
        self._reasons: dict[str, str] = {}
        """The last failure of a key, as it was logged."""
        self._delayed: dict[str, tuple[float, asyncio.Task[None]]] = {}
        self._wake = asyncio.Event()

    def add(self, key: str) -> None:
        """Enqueue the key."""
        if key in self._processing:
            self._dirty.add(key)
        elif key not in self._queued:
            self._queued.add(key)
            self._ready.append(key)
            self._wake.set()

    def add_after(self, key: str, seconds: float) -> None:
        """Enqueue the key later; of several times for one key the earliest counts."""
        due = self._clock.monotonic() + seconds
        if (waiting := self._delayed.get(key)) is not None:
            if waiting[0] <= due:
                return
            waiting[1].cancel()
        self._delayed[key] = due, asyncio.create_task(self._add_at(key, due), name=f"{self._name} {key} later")

    async def _add_at(self, key: str, due: float) -> None:
        await self._clock.sleep(due - self._clock.monotonic())
        self._delayed.pop(key, None)
        self.add(key)

    @property
    def is_idle(self) -> bool:
        """No key is queued or processed; keys may be delayed."""
        return not self._ready and not self._processing

    async def run(self) -> None:
        """Process keys until cancelled."""
        try:
            async with asyncio.TaskGroup() as group:
                free = asyncio.Semaphore(self._workers)
                while True:
                    await free.acquire()
                    while not self._ready:
                        self._wake.clear()
                        await self._wake.wait()
                    key = self._ready.popleft()
                    self._queued.discard(key)
                    self._processing.add(key)
                    group.create_task(self._queue(key)).add_done_callback(lambda _: free.release())
        finally:
            for _, task in self._delayed.values():
                task.cancel()
            self._delayed.clear()

    async def _queue(self, key: str) -> None:
        try:
            await self._sync(key)
            self._failures.pop(key, None)
            self._reasons.pop(key, None)
        except Exception as error:  # a failure of one object must not stop the others
            self._failed(key, error)
        finally:
            self._processing.discard(key)
            if key in self._dirty:
                self._dirty.discard(key)
                self.add(key)

    def _failed(self, key: str, error: Exception) -> None:
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        wait = BACKOFF.delay(failures)
        is_race = isinstance(error, ApiError) and error.code == 409
        if not is_race or failures > 5:
            expected = isinstance(error, Fault)
            reason = str(error) if expected else f"{type(error).__name__}: {error}"
            is_new = self._reasons.get(key) != reason
            self._reasons[key] = reason
            # A failure that repeats for the same reason is logged once.
            log = self._log if is_new else self._log.v(2)
            log.warning("Sync failed and is retried", queue=self._name, key=key, seconds=wait, err=reason)
        self.add_after(key, wait)
