"""An executor of worker processes of its own: each is a fresh interpreter that imports nothing of the main program.

multiprocessing would import the caller's script again in every worker, and a worker that dies would break its whole
pool, with all runs that others compute. Here a thread feeds each worker, so that a death costs one run, which is known.
"""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

_START = (
    "import sys, json; sys.path[:] = json.loads(sys.argv[1]); "
    "from mooring.simulator.sweeps.worker_processes import serve; serve(int(sys.argv[2]))"
)
_ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "POLARS_MAX_THREADS")
"""A worker is one core's: libraries that start a thread for each core would slow down the others."""


class WorkerDied(Exception):
    """The process ended before it had returned a result."""


class WorkerProcesses(Executor):
    """So many processes, each with one call at a time. They start with the first calls that need them."""

    def __init__(self, workers: int | None = None) -> None:
        self.workers = workers or core_count()
        self._calls: queue.SimpleQueue[tuple[Future[Any], bytes] | None] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._processes: set[_WorkerProcess] = set()
        self._lock = threading.Lock()
        self._is_shut_down = self._is_killed = False

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        if self._is_shut_down:
            raise RuntimeError("cannot schedule new futures after shutdown")
        future: Future[T] = Future()
        self._calls.put((future, pickle.dumps((fn, args, kwargs))))
        if len(self._threads) < self.workers:
            # A thread ends with its program, not the program with its thread.
            thread = threading.Thread(target=self._feed, name="sweep-worker", daemon=True)
            self._threads.append(thread)
            thread.start()
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        self._is_shut_down = True
        if cancel_futures:
            with contextlib.suppress(queue.Empty):
                while (call := self._calls.get_nowait()) is None or call[0].cancel():
                    pass
        for _ in self._threads:
            self._calls.put(None)
        if wait:
            for thread in self._threads:
                thread.join()

    def kill(self) -> None:
        """End now: what is computed is lost."""
        with self._lock:
            self._is_killed = True
            processes = list(self._processes)
        for process in processes:
            process.kill()
        self.shutdown(cancel_futures=True)

    def _feed(self) -> None:
        """One worker's thread."""
        process: _WorkerProcess | None = None
        while (call := self._calls.get()) is not None:
            future, data = call
            if not future.set_running_or_notify_cancel():
                continue
            try:
                process = process or self._started()
                is_returned, value = process.call(data)
            except (EOFError, OSError) as error:
                cause = process.ended() if process is not None else str(error)
                self._drop(process)
                process = None
                future.set_exception(WorkerDied(cause))
            else:
                future.set_result(value) if is_returned else future.set_exception(value)
        self._drop(process)

    def _started(self) -> _WorkerProcess:
        with self._lock:
            if self._is_killed:
                raise EOFError
            process = _WorkerProcess()
            self._processes.add(process)
            return process

    def _drop(self, process: _WorkerProcess | None) -> None:
        if process is not None:
            process.close()
            with self._lock:
                self._processes.discard(process)


class _WorkerProcess:
    """A worker, as its thread sees it."""

    def __init__(self) -> None:
        self._connection, theirs = Pipe()
        arguments = [sys.executable, "-P", "-c", _START, json.dumps(sys.path), str(theirs.fileno())]
        try:
            self._process = subprocess.Popen(
                arguments,
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                env={**dict.fromkeys(_ONE_THREAD, "1"), **os.environ},
                process_group=0,  # Ctrl-C interrupts the sweep, which ends its workers itself
            )
        finally:
            theirs.close()

    def call(self, data: bytes) -> tuple[bool, Any]:
        """Whether it returned, and what it returned or raised."""
        self._connection.send_bytes(data)
        reply: tuple[bool, Any] = pickle.loads(self._connection.recv_bytes())
        return reply

    def kill(self) -> None:
        self._process.kill()

    def ended(self) -> str:
        """How, in words."""
        self._connection.close()
        code = self._process.wait()
        if code >= 0:
            return f"the worker process ended with exit code {code}"
        name = signal.Signals(-code).name if -code in list(signal.Signals) else f"signal {-code}"
        hint = "; memory may have run out" if -code == signal.SIGKILL else ""
        return f"the worker process was killed by {name}{hint}"

    def close(self) -> None:
        """Without a connection, a worker ends after its call."""
        self._connection.close()
        self._process.wait()


def core_count() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def serve(descriptor: int) -> None:
    """The main function of a worker: calls functions until its connection is closed."""
    from mooring.base.memory import collect_rarely

    collect_rarely()
    os.dup2(2, 1)  # what runs print is no output of the program that sweeps
    connection: Connection[Any, Any] = Connection(descriptor)
    while True:
        try:
            fn, args, kwargs = pickle.loads(connection.recv_bytes())
        except EOFError:
            return
        try:
            reply: tuple[bool, Any] = (True, fn(*args, **kwargs))
        except Exception as error:
            reply = (False, error)
        try:
            data = pickle.dumps(reply)
        except Exception as error:
            data = pickle.dumps((False, TypeError(f"the result cannot be pickled: {error}")))
        try:
            connection.send_bytes(data)
        except OSError:  # the program that sweeps has ended
            return
