"""How long the plugins may compute about one pod. What exceeds it is interrupted, and the attempt fails.

One thread decides, so a plugin that computes for minutes about one pod delays all others. A timer interrupts it: while
a plugin runs, `AttemptTimeout` is raised in its code, as Ctrl-C would be. It is never raised in code of the engine or
the state, nor while such code is on the stack above the plugin's, so what was changed for a what-if is undone.

The budget is time that the process could run. The time in which a process was stopped, or got no CPU, does not count.

Python delivers signals to the main thread alone. On another thread, and where there is no interval timer, the budget is
only checked when a plugin calls the cycle.
"""

from __future__ import annotations

import atexit
import contextlib
import math
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager
from types import FrameType
from typing import Any, Protocol

from mooring.base.durations import go_duration
from mooring.base.errors import BudgetExceeded
from mooring.engine.extension_point import ExtensionPoint
from mooring.framework import Plugin

TICK_SECONDS = 0.1
"""How often a long attempt is checked. Most attempts end before the first check."""
RETRY_SECONDS = 0.005
"""How soon after a look that found code which must not be interrupted."""

HELPERS = ("mooring.plugins", "mooring.objects", "mooring.cel")
"""Code that changes nothing shared: whether it may be interrupted depends on its caller."""
RUNTIME = frozenset(
    {"asyncio", "concurrent", "contextlib", "functools", "importlib", "logging", "threading", "weakref"}
)
"""Modules that an exception at any line could leave with a lock held, or a context entered and never left."""


class AttemptTimeout(BaseException):
    """Raised in a plugin's code. Not an `Exception`: a plugin's `except Exception` must not catch it."""


class RunningCycle(Protocol):
    """What runs at the moment."""

    point: ExtensionPoint | None
    plugin: str


class TimeBudget:
    """The time for one attempt after the other. It runs while inside; `renew` begins another attempt."""

    __slots__ = (
        "_last_look",
        "_spent",
        "cycle",
        "exceeded",
        "is_over",
        "is_timed",
        "others_seconds",
        "seconds",
        "seen",
    )

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.is_timed = False
        """Whether the timer looks at this attempt; before the first one, False."""
        self.cycle: RunningCycle | None = None
        """The attempt that runs."""
        self.renew()

    def renew(self) -> None:
        self._spent = 0.0
        self._last_look = 0.0
        self.others_seconds = 0.0
        """Of the time spent, that of which pods and objects of other namespaces are the cause."""
        self.is_over = False
        """More time than the budget was spent: plugins are interrupted."""
        self.seen: list[tuple[ExtensionPoint, str, float]] = []
        """What ran when the timer looked at the attempt, point and plugin; and the seconds since its last look."""
        self.exceeded: BudgetExceeded | None = None
        """The first plugin that was interrupted, as a fault."""

    @property
    def spent_seconds(self) -> float:
        """The time of this attempt so far, while the budget does not run."""
        return self._spent

    @contextlib.contextmanager
    def caused_by_others(self, share: float) -> Iterator[None]:
        began = time.monotonic()
        try:
            yield
        finally:
            self.others_seconds += share * (time.monotonic() - began)

    def __enter__(self) -> None:
        self._last_look = time.monotonic()
        self.is_timed = _start(self)

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        _stop()
        self.cycle = None  # it holds the profile, which a reload may replace
        self._spent += time.monotonic() - self._last_look
        if kind is None and self.exceeded is not None:
            raise self.exceeded  # a plugin survived its interruption: its results cannot be relied on
        if kind is AttemptTimeout:
            raise BudgetExceeded("", self.overrun)

    @property
    def overrun(self) -> str:
        if self._spent <= self.seconds:
            return "was interrupted: the scheduler is stopping"
        return f"exceeded the time budget of {go_duration(self.seconds)} for one attempt"

    def check(self) -> None:
        """Called between two steps of an attempt, where raising is safe."""
        if self.is_over or (not self.is_timed and self._spent_now() > self.seconds):
            self.is_over = True
            raise AttemptTimeout

    def look(self, frame: FrameType | None) -> None:
        """The timer's check of a running attempt."""
        now = time.monotonic()
        # After a stop, or without CPU, a look comes late: of that time no more counts than a plugin can have used.
        since = min(now - self._last_look, 2 * TICK_SECONDS)
        self._spent += since
        self._last_look = now
        if self.cycle is not None and self.cycle.point is not None:
            self.seen.append((self.cycle.point, self.cycle.plugin, since))
        if self._spent <= self.seconds and now < _interrupt_at:
            return
        if not self.is_over:
            self.is_over = True
            _set_timer(RETRY_SECONDS)
        if is_interruptible(frame):
            raise AttemptTimeout

    def _spent_now(self) -> float:
        return self._spent + time.monotonic() - self._last_look


_UNLIMITED = contextlib.nullcontext()


def within(budget: TimeBudget | None) -> AbstractContextManager[None]:
    """While inside, the budget runs; None: any time. Leaves with `BudgetExceeded` if a plugin was interrupted."""
    return _UNLIMITED if budget is None else budget


def is_interruptible(frame: FrameType | None) -> bool:
    """Whether a plugin is at work here: its own code, or helpers that it called."""
    while frame is not None:
        module: str = frame.f_globals.get("__name__", "")
        if _is_method_of_plugin(frame):
            return True
        if module.partition(".")[0] in RUNTIME:
            return False
        if module.startswith("mooring.") and not module.startswith(HELPERS):
            return False
        frame = frame.f_back
    return False


def _is_method_of_plugin(frame: FrameType) -> bool:
    code = frame.f_code
    return code.co_argcount > 0 and isinstance(frame.f_locals.get(code.co_varnames[0]), Plugin)


# One timer and one handler for the process: only one attempt runs at a time on the main thread.
_HAS_TIMER = hasattr(signal, "setitimer")
_running: TimeBudget | None = None
_interrupt_at = math.inf
_is_installed = False
_interval = 0.0
"""Of the timer; 0: it is off. It runs on between attempts, until it finds none: two system calls for each cost more."""


def interrupt_after(seconds: float) -> None:
    """The process is about to end: running attempts are interrupted, whatever their budget. On any thread."""
    global _interrupt_at
    _interrupt_at = time.monotonic() + seconds


def _can_interrupt() -> bool:
    return _HAS_TIMER and threading.get_ident() == threading.main_thread().ident


def _start(budget: TimeBudget) -> bool:
    """Whether the timer looks at the budget from now on."""
    global _running, _is_installed
    if not _can_interrupt():
        return False
    if not _is_installed:
        signal.signal(signal.SIGALRM, _on_alarm)
        atexit.register(_set_timer, 0.0)  # at its end Python takes the handler away: an alarm would kill the process
        _is_installed = True
    _running = budget
    interval = RETRY_SECONDS if budget.is_over else TICK_SECONDS
    if interval != _interval:
        _set_timer(interval)
    return True


def _stop() -> None:
    global _running
    _running = None


def _set_timer(seconds: float) -> None:
    global _interval
    _interval = seconds
    signal.setitimer(signal.ITIMER_REAL, seconds, seconds)


def _on_alarm(_number: int, frame: Any) -> None:
    if _running is not None:
        _running.look(frame)
    else:
        _set_timer(0.0)
