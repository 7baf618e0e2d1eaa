"""SIGINT and SIGTERM end a command: in order, or without waiting for a plugin that blocks.

A thread of its own receives the signals. The event loop alone would not: a plugin that computes, or sleeps, keeps it
from running. The thread requests an orderly shutdown of the loop. If plugin code still blocks when most of the time
for that is over, the thread logs which, runs the last steps (`Stop.last_step`), and ends the process. What only takes
long, because the machine or the API server is slow, is not cut short.
"""

from __future__ import annotations

import asyncio
import contextlib
import faulthandler
import math
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from types import FrameType
from typing import TYPE_CHECKING, Any

from mooring.base import log
from mooring.base.event_loop import EventLoop
from mooring.cli import ending
from mooring.cli.output import print_line

if TYPE_CHECKING:
    from mooring.scheduler.plugin_runtime.blocking_code import Holder

SIGNALS = (signal.SIGINT, signal.SIGTERM)
SAME_SIGNAL_SECONDS = 0.5
"""timeout(1), and programs that pass Ctrl-C on, signal a process and its group: one request, received twice."""
WARN_SHARE, FORCE_SHARE, CAP = 1 / 3, 5 / 6, 5.0
"""Of the time for the end: when a plugin in the way is logged, when the process ends without it, and when it ends
whatever the reason."""
LOOKS = 30
"""How often it is looked whether something is in the way, within that time."""
FLUSH_SECONDS = 1.0
"""How long output may take that is written when the process is ended."""
YIELD_SECONDS = 0.01
"""How often a C function that keeps Python's lock, but looks for signals (a regular expression), gives it up."""
SWITCH_SECONDS = 0.001

_log = log.Log("mooring")


class Stop(asyncio.Event):
    """Set when the command should end."""

    def __init__(self, seconds: float = math.inf) -> None:
        super().__init__()
        self.seconds = seconds
        """How long the end may take where a plugin holds it up."""
        self._hooks: list[Callable[[], None]] = []
        self._last_steps: list[Callable[[float], None]] = []

    def at_signal(self, hook: Callable[[], None]) -> None:
        """Call it, on another thread, when the signal arrives; whatever the loop does then."""
        self._hooks.append(hook)

    @contextlib.contextmanager
    def last_step(self, step: Callable[[float], None]) -> Iterator[None]:
        """While inside: call it, on another thread, if the process is ended out of order. It is given the seconds that
        it may take."""
        self._last_steps.append(step)
        try:
            yield
        finally:
            self._last_steps.remove(step)

    def signalled(self) -> None:
        for hook in self._hooks:
            hook()

    def take_last_steps(self, seconds: float) -> None:
        """All of them, the innermost first."""
        deadline = time.monotonic() + seconds
        for step in reversed(self._last_steps):
            try:
                step(max(0.0, deadline - time.monotonic()))
            except Exception as error:
                _log.error("Failed to clean up", err=error)


Main = Callable[[Stop], Coroutine[Any, Any, None]]


def run_until_signalled(main: Main, seconds: float = math.inf) -> None:
    """Run it. SIGINT and SIGTERM set the event; a second one ends the process at once.

    `seconds` is how long the end may take where a plugin holds it up.
    """
    log.adopt_library_logs()
    loop = EventLoop()
    asyncio.set_event_loop(loop)
    stop = Stop(seconds)
    listener = _Listener(loop, stop)

    async def listening(work: Coroutine[Any, Any, Any]) -> Any:
        with listener.wakes_up():
            return await work

    with listener:
        try:
            loop.run_until_complete(listening(main(stop)))
        finally:
            ending.close_loop(loop, listening, listener.left)
            asyncio.set_event_loop(None)
            ending.leave_within(listener.left())


class _Listener:
    """Receives the signals, on its own thread, from the file descriptor that Python's C handler writes to."""

    def __init__(self, loop: asyncio.AbstractEventLoop, stop: Stop) -> None:
        self._loop = loop
        self._stop = stop
        self._looped = threading.get_ident()
        self._signal: int | None = None
        self._signalled_at = 0.0
        self._pulse = _Pulse(loop)
        self._has_warned = False
        self._lock = threading.Lock()
        self._loops_own: int | None = None
        """What the event loop reads, to be woken up by signals itself."""

    def __enter__(self) -> None:
        self._reader, self._writer = socket.socketpair()
        self._writer.setblocking(False)
        self._handlers = {number: signal.signal(number, self._on_main_thread) for number in SIGNALS}
        if hasattr(signal, "SIGVTALRM"):
            self._handlers[signal.SIGVTALRM] = signal.signal(signal.SIGVTALRM, _give_way)
        self._thread = threading.Thread(target=self._listen, name="signals", daemon=True)
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        faulthandler.cancel_dump_traceback_later()
        if self._signal is not None and hasattr(signal, "setitimer"):
            signal.setitimer(signal.ITIMER_VIRTUAL, 0.0)
        for number, handler in self._handlers.items():
            signal.signal(number, handler if handler is not None else signal.SIG_DFL)
        self._writer.close()
        self._thread.join()
        self._reader.close()

    @contextlib.contextmanager
    def wakes_up(self) -> Iterator[None]:
        """While the loop runs: signals are received here, and passed on to it."""
        with self._lock:
            self._loops_own = signal.set_wakeup_fd(self._writer.fileno(), warn_on_full_buffer=False)
        try:
            yield
        finally:
            with self._lock:  # from here on the loop may close its descriptor, and another file get its number
                signal.set_wakeup_fd(self._loops_own)
                self._loops_own = None

    def left(self) -> float:
        """The seconds that are left for the end; infinite before any signal."""
        if self._signal is None:
            return math.inf
        return max(0.0, self._signalled_at + self._stop.seconds * FORCE_SHARE - time.monotonic())

    def _on_main_thread(self, _number: int, _frame: FrameType | None) -> None:
        """Python's own handler, wherever the main thread is by now."""
        if hasattr(signal, "setitimer") and self._stop.seconds < math.inf:
            signal.setitimer(signal.ITIMER_VIRTUAL, YIELD_SECONDS, YIELD_SECONDS)

    def _listen(self) -> None:
        while True:
            self._reader.settimeout(None if self._signal is None else self._pause)
            try:
                numbers = self._reader.recv(4096)
                if not numbers:
                    return
                self._pass_on(numbers)
                for number in numbers:
                    if number in SIGNALS:
                        self._received(number)
            except TimeoutError:
                pass
            if self._signal is not None and self._stop.seconds < math.inf:
                _end_without_python(self._stop.seconds + FLUSH_SECONDS)
                self._look()

    @property
    def _pause(self) -> float | None:
        return self._stop.seconds / LOOKS if self._stop.seconds < math.inf else None

    def _pass_on(self, numbers: bytes) -> None:
        with self._lock, contextlib.suppress(OSError):
            if self._loops_own is not None and self._loops_own >= 0:
                os.write(self._loops_own, numbers)

    def _received(self, number: int) -> None:
        now = time.monotonic()
        if self._signal is None:
            self._signal, self._signalled_at = number, now
            sys.setswitchinterval(SWITCH_SECONDS)  # beside a plugin that computes, this thread must be quick
            with contextlib.suppress(RuntimeError):  # the loop is closed
                self._loop.call_soon_threadsafe(self._stop.set)
            self._stop.signalled()
        elif now >= self._signalled_at + SAME_SIGNAL_SECONDS:
            self._end(1, 0.0, lambda: print_line("second signal: ending at once", err=True))

    def _look(self) -> None:
        """Whether something is in the way of the end."""
        limit, seconds = self._stop.seconds, time.monotonic() - self._signalled_at
        if seconds < limit * WARN_SHARE:
            return
        holder = self._holder(limit / LOOKS)
        if holder is not None and not self._has_warned:
            self._has_warned = True
            _log.warning(
                "A plugin blocks the shutdown" if holder.plugin else "Shutdown is blocked",
                **holder._asdict(),
                seconds=round(seconds, 1),
            )
        is_in_the_way = holder is not None and bool(holder.plugin)
        if seconds >= limit * (FORCE_SHARE if is_in_the_way else CAP):
            what = "Ending without waiting for the plugin" if is_in_the_way else "Ending although not all has ended"
            names = holder._asdict() if holder is not None else {}
            self._end(
                128 + (self._signal or 0),
                max(0.0, limit - seconds),
                lambda: _log.error(what, **names, seconds=round(seconds, 1)),
            )

    def _holder(self, silence: float) -> Holder | None:
        """What computes on the loop's thread and blocks it; or a plugin that ignores its cancellation."""
        holdup = sys.modules.get("mooring.scheduler.plugin_runtime.blocking_code")
        if holdup is None:
            return None  # no plugin is loaded
        if self._pulse.silent_seconds() > silence:
            found: Holder | None = holdup.running_on(self._looped)
        else:
            found = holdup.uncancellable_in(asyncio.all_tasks(self._loop))
        return found

    def _end(self, code: int, seconds: float, report: Callable[[], None]) -> None:
        _end_without_python(seconds + FLUSH_SECONDS)
        report()
        self._stop.take_last_steps(seconds)
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _end_without_python(seconds: float) -> None:
    """After so long, unless it is called again, the stacks are dumped and the process ends: another thread may keep a
    lock that this one needs (of the log, of a stream) for ever."""
    with contextlib.suppress(Exception):  # there is no stderr
        faulthandler.dump_traceback_later(seconds, exit=True)


class _Pulse:
    """How long an event loop has not run a scheduled callback, as seen from another thread."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._has_run = threading.Event()
        self._scheduled_at: float | None = None

    def silent_seconds(self) -> float:
        now = time.monotonic()
        if self._scheduled_at is None or self._has_run.is_set():
            self._has_run.clear()
            try:
                self._loop.call_soon_threadsafe(self._has_run.set)
            except RuntimeError:  # the loop is closed
                return 0.0
            self._scheduled_at = now
        return now - self._scheduled_at


def _give_way(_number: int, _frame: FrameType | None) -> None:
    """To run any Python function lets other threads run, too."""
