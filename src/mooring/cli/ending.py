"""How the process ends: nothing that a plugin left running blocks it.

A coroutine that ignores its cancellation, or a thread that waits for ever, would block the exit: a scheduler that has
lost its lease or received SIGTERM would stay until it is killed. Every command ends here, `mooring --help` too: what
is heavy is imported where it is needed.
"""

from __future__ import annotations

import math
import os
import sys
import threading
import time
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, NoReturn

from mooring.cli import hangup

if TYPE_CHECKING:
    import asyncio

PATIENCE_SECONDS = 2.0

_left_behind: set[asyncio.Task[Any]] = set()
_deadline = math.inf


def close_loop(
    loop: asyncio.AbstractEventLoop,
    around: Callable[[Coroutine[Any, Any, Any]], Coroutine[Any, Any, Any]],
    left: Callable[[], float],
) -> None:
    """End what still runs on the loop, and close it. What does not end is logged and abandoned.

    What runs meanwhile is passed through `around`; `left` returns how many seconds remain for the end.
    """
    import asyncio

    tasks = asyncio.all_tasks(loop)
    for task in tasks:
        task.cancel()
    if tasks:
        patience = min(PATIENCE_SECONDS, left() / 2)
        _, late = loop.run_until_complete(around(asyncio.wait(tasks, timeout=patience)))
        for task in late:
            _warn("Task ignores its cancellation; abandoning it", task=task.get_name())
        _left_behind.update(late)
    if not _left_behind:  # they could not be ended either
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()


def leave_within(seconds: float) -> None:
    """The process has so long to end: threads are not waited for any longer."""
    global _deadline
    _deadline = time.monotonic() + seconds


def leave(code: int) -> NoReturn:
    """End the process."""
    hangup.ignore()
    if not _left_behind:
        late = _late_threads()
        if not late:
            sys.exit(code)
        for thread in late:
            _warn("Thread does not end; abandoning it", thread=thread.name)
    sys.stdout.flush()
    sys.stderr.flush()
    # Python itself would wait for threads, and warn about tasks.
    os._exit(code)


def _warn(message: str, **names: str) -> None:
    from mooring.base.log import Log

    Log("cli").warning(message, **names)


def _late_threads() -> list[threading.Thread]:
    """Those that Python would wait for, and that do not end in time."""
    deadline = min(time.monotonic() + PATIENCE_SECONDS, _deadline)
    others = [each for each in threading.enumerate() if each is not threading.main_thread() and not each.daemon]
    for each in others:
        each.join(max(0.0, deadline - time.monotonic()))
    return [each for each in others if each.is_alive()]
