"""Which plugin blocks the event loop: a synchronous call that computes for seconds, or never ends, is logged
meanwhile.

Decisions, watches and bindings share one thread, so a plugin that does not return stops them all, and could not be
timed either. A second thread schedules a callback on the loop; where it does not run, the stack of the loop's thread
shows whose code is running.
"""

from __future__ import annotations

import asyncio
import threading
import time
from typing import NamedTuple

from mooring.base.log import Log
from mooring.scheduler.plugin_runtime.blocking_code import running_on

LOOK_SECONDS, PATIENCE_SECONDS = 1.0, 5.0
JOIN_SECONDS = 1.0

_log = Log("scheduler")


class HeldUp(NamedTuple):
    """What keeps the loop from running."""

    plugin: str
    """"" where it is no plugin's code."""
    method: str
    at: str
    seconds: float


class Watchdog:
    """`with` it, the running loop is watched."""

    def __init__(self, *, look_seconds: float = LOOK_SECONDS, patience_seconds: float = PATIENCE_SECONDS) -> None:
        self._look_seconds = look_seconds
        self._patience_seconds = patience_seconds
        self._is_over = threading.Event()
        self._is_alive = threading.Event()
        self._since: float | None = None

    def __enter__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._watched = threading.get_ident()
        self._thread = threading.Thread(target=self._watch, name="watchdog", daemon=True)
        self._thread.start()

    def __exit__(self, *exception: object) -> None:
        self._is_over.set()
        self._is_alive.set()
        self._thread.join(JOIN_SECONDS)

    def _watch(self) -> None:
        while not self._is_over.is_set():
            self._is_alive.clear()
            try:
                self._loop.call_soon_threadsafe(self._is_alive.set)
            except RuntimeError:  # the loop is closed
                return
            self._log_until_it_runs()
            self._is_over.wait(self._look_seconds)

    def held_up(self) -> HeldUp | None:
        """What keeps the loop from running, and for how long; None while it runs. On any thread."""
        since = self._since
        if since is None or self._is_alive.is_set() or (holder := running_on(self._watched)) is None:
            return None
        return HeldUp(*holder, seconds=round(time.monotonic() - since, 1))

    def _log_until_it_runs(self) -> None:
        """Until the loop runs again; log what blocks it, with backoff."""
        since, patience = time.monotonic(), self._patience_seconds
        self._since = since
        while not self._is_alive.wait(patience) and not self._is_over.is_set():
            if (found := self.held_up()) is not None:
                who = "A plugin" if found.plugin else "Something"
                _log.warning(f"{who} blocks all scheduling", **found._asdict())
            patience = time.monotonic() - since
        self._since = None
        if (seconds := time.monotonic() - since) >= self._patience_seconds:
            _log.warning("Scheduling resumed", blockedSeconds=round(seconds, 1))
