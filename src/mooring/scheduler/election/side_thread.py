"""A second thread with an event loop of its own: for what must run while the first one computes."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import threading
from collections.abc import Callable, Coroutine
from typing import Any

from mooring.base.log import Log

_log = Log("scheduler")


class SideThread:
    """Runs one coroutine until it ends or `stop`.

    `work` is called on the thread, with a function to call once it has begun: `start` returns then, or raises what
    went wrong before. What fails later is passed to `on_failure`, on the side thread.
    """

    def __init__(
        self,
        name: str,
        work: Callable[[Callable[[], None]], Coroutine[Any, Any, None]],
        on_failure: Callable[[BaseException], None] | None = None,
    ) -> None:
        self._name = name
        self._work = work
        self._on_failure = on_failure or (lambda error: _log.error(f"The {name} thread ended", err=error))
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        begun: concurrent.futures.Future[None] = concurrent.futures.Future()

        def has_begun() -> None:
            if not begun.done():
                begun.set_result(None)

        async def main() -> None:
            self._loop, self._task = asyncio.get_running_loop(), asyncio.current_task()
            await self._work(has_begun)

        def run() -> None:
            try:
                asyncio.run(main())
                has_begun()
            except asyncio.CancelledError:
                has_begun()
            except BaseException as error:
                if begun.done():
                    self._on_failure(error)
                else:
                    begun.set_exception(error)

        self._thread = threading.Thread(target=run, name=self._name, daemon=True)
        self._thread.start()
        begun.result()

    def stop(self, seconds: float) -> None:
        """Cancel the work and give it so long to end. Stopping twice is harmless."""
        thread, self._thread = self._thread, None
        if thread is None or self._loop is None or self._task is None:
            return
        with contextlib.suppress(RuntimeError):  # its loop is closed: it has ended by itself
            self._loop.call_soon_threadsafe(self._task.cancel)
        thread.join(seconds)


async def in_thread(work: Callable[[], None]) -> None:
    """Run it on a thread of its own. Those of `asyncio.to_thread` may all be taken by plugins that do not return."""
    loop, done = asyncio.get_running_loop(), asyncio.Event()

    def run() -> None:
        try:
            work()
        finally:
            with contextlib.suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(done.set)

    threading.Thread(target=run, name=getattr(work, "__qualname__", "work"), daemon=True).start()
    await done.wait()
