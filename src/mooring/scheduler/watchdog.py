"""Who holds up the loop: a synchronous call that computes for seconds, or never ends, is named while it does.

Decisions, watches and bindings share one thread, so a plugin that does not return stops them all, and could not be
timed either. A second thread asks the loop for a sign of life; where none comes, the stack of the loop's thread says
whose code is running.
"""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from collections.abc import Iterator
from types import FrameType

from mooring.base.log import Log
from mooring.framework import Plugin

LOOK_SECONDS, PATIENCE_SECONDS = 1.0, 5.0
JOIN_SECONDS = 1.0

_log = Log("scheduler")


class Watchdog:
    """`with` it, the running loop is watched."""

    def __init__(self, *, look_seconds: float = LOOK_SECONDS, patience_seconds: float = PATIENCE_SECONDS) -> None:
        self._look_seconds = look_seconds
        self._patience_seconds = patience_seconds
        self._is_over = threading.Event()
        self._is_alive = threading.Event()

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
            self._wait_for_life()
            self._is_over.wait(self._look_seconds)

    def _wait_for_life(self) -> None:
        """Until the loop goes on; every so often, and ever less often, say who keeps it from that."""
        asked, patience = time.monotonic(), self._patience_seconds
        while not self._is_alive.wait(patience) and not self._is_over.is_set():
            seconds = time.monotonic() - asked
            self._tell(seconds)
            patience = seconds
        if (seconds := time.monotonic() - asked) >= self._patience_seconds:
            _log.warning("Scheduling goes on", heldUpSeconds=round(seconds, 1))

    def _tell(self, seconds: float) -> None:
        frames = list(_frames(sys._current_frames().get(self._watched)))
        if not frames:
            return
        plugin, frame = next(((who, frame) for frame in frames if (who := _plugin_in(frame))), ("", frames[0]))
        words = "A plugin holds up all scheduling" if plugin else "Something holds up all scheduling"
        where = f"{frame.f_code.co_filename}:{frame.f_lineno}"
        _log.warning(words, plugin=plugin, method=frame.f_code.co_name, at=where, seconds=round(seconds, 1))


def _frames(frame: FrameType | None) -> Iterator[FrameType]:
    """From the innermost outwards."""
    while frame is not None:
        yield frame
        frame = frame.f_back


def _plugin_in(frame: FrameType) -> str:
    """The plugin whose method this is; "" if it is no plugin's."""
    speaker = frame.f_locals.get("self")
    return speaker.name if isinstance(speaker, Plugin) else ""
