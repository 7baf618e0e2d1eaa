"""Log lines that an untrusted client can cause: a few of each message a minute, then a count of what was suppressed.

Without a limit, any client that reaches a port can fill a node's disk with log lines.
"""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable

from mooring.base.log import Log, Severity

WINDOW_SECONDS = 60.0
LINES_IN_A_WINDOW = 10
LONGEST_TEXT = 256


def shortened(text: str, longest: int = LONGEST_TEXT) -> str:
    """Text that a client sent, fit for a log line: bounded, and without bytes that no encoding can write."""
    cut = text if len(text) <= longest else f"{text[:longest]}… ({len(text)} characters)"
    return cut.encode("utf-8", "backslashreplace").decode()


def report_suppressed() -> None:
    """Write the counts of every log of this process whose windows are over: call it about once a minute."""
    for each in list(_all):
        each.report()


class LimitedLog:
    """A log with a limit for each message. Values may vary; the message is a constant of the program."""

    def __init__(
        self,
        log: Log,
        *,
        now: Callable[[], float] = time.monotonic,
        lines: int = LINES_IN_A_WINDOW,
        seconds: float = WINDOW_SECONDS,
    ) -> None:
        self._log = log
        self._now = now
        self._lines = lines
        self._seconds = seconds
        self._lock = threading.Lock()
        self._windows: dict[str, _Window] = {}
        _all.add(self)

    def info(self, message: str, /, **values: object) -> None:
        self._write("I", message, values)

    def warning(self, message: str, /, **values: object) -> None:
        self._write("W", message, values)

    def error(self, message: str, /, **values: object) -> None:
        self._write("E", message, values)

    def report(self) -> None:
        """Write the counts of windows that are over: a flood that has ended is still counted."""
        with self._lock:
            over = {
                message: window.suppressed
                for message, window in self._windows.items()
                if window.suppressed and self._now() - window.since >= self._seconds
            }
            for message in over:
                del self._windows[message]
        for message, suppressed in over.items():
            self._log.info("Log lines were suppressed", message=message, suppressed=suppressed)

    def _write(self, severity: Severity, message: str, values: dict[str, object]) -> None:
        if not self._log:
            return
        with self._lock:
            now = self._now()
            window = self._windows.get(message)
            if window is None or now - window.since >= self._seconds:
                before = window.suppressed if window is not None else 0
                window = self._windows[message] = _Window(now)
            else:
                before = 0
            if window.written >= self._lines:
                window.suppressed += 1
                return
            window.written += 1
        if before:
            values = values | {"suppressed": before}
        write = {"I": self._log.info, "W": self._log.warning, "E": self._log.error}[severity]
        write(message, **values)


class _Window:
    __slots__ = ("since", "suppressed", "written")

    def __init__(self, since: float) -> None:
        self.since = since
        self.written = 0
        self.suppressed = 0


_all: weakref.WeakSet[LimitedLog] = weakref.WeakSet()
