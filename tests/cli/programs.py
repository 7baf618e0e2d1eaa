"""`mooring` as a process of its own, as a user starts it; tests wait for what it writes, never for time to pass."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO

# Upper bounds for a machine that is busy with other things; nothing waits this long when all is well.
PATIENCE_SECONDS = 90.0

# What a scheduler logs where the machine is busy with other things.
SLOW = ("One plugin takes most of a slow", "blocks all scheduling", "Scheduling resumed")


def clean_environment(home: Path) -> dict[str, str]:
    """Nothing of the person who runs the tests: no ~/.kube, no $KUBECONFIG, no control sockets of theirs."""
    mine = ("KUBECONFIG", "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT", "PYTHONWARNINGS", "FORCE_COLOR")
    kept = {name: value for name, value in os.environ.items() if name not in mine}
    return kept | {"HOME": str(home), "XDG_RUNTIME_DIR": str(home), "COLUMNS": "200", "PYTHONUNBUFFERED": "1"}


@contextlib.contextmanager
def private_home() -> Iterator[Path]:
    """A home with a short path: a control socket's may have 108 bytes at most, and a tmp_path can be longer."""
    with tempfile.TemporaryDirectory(prefix="mooring-") as folder:
        yield Path(folder)


def serving_nothing(arguments: Sequence[str]) -> list[str]:
    """The same command, but a scheduler that does not name its port opens none: tests run side by side, and two
    schedulers would conflict on the usual one. And without a page, which costs another process, unless it is named."""
    if arguments and arguments[0] == "up" and not {"--web", "--no-web"}.intersection(arguments):
        arguments = ["up", "--no-web", *arguments[1:]]
    if any("--secure-port" in argument for argument in arguments):
        return list(arguments)
    if arguments and arguments[0] == "run":
        return ["run", "--secure-port=0", *arguments[1:]]
    return [argument.replace("mooring run ", "mooring run --secure-port=0 ") for argument in arguments]


class Program:
    """A running `mooring …` (or another program). What it writes is read at once: it never waits for a reader."""

    def __init__(
        self,
        *arguments: str,
        home: Path,
        cwd: Path | None = None,
        program: Sequence[str] = (sys.executable, "-m", "mooring"),
    ) -> None:
        self.process = subprocess.Popen(
            [*program, *serving_nothing(arguments)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=clean_environment(home),
            cwd=cwd or home,
            text=True,
        )
        self.out: list[str] = []
        self.err: list[str] = []
        self._news = threading.Condition()
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        self._readers = [
            threading.Thread(target=self._read, args=(self.process.stdout, self.out)),
            threading.Thread(target=self._read, args=(self.process.stderr, self.err)),
        ]
        for reader in self._readers:
            reader.start()

    def __enter__(self) -> Program:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self.process.poll() is None:
            self.process.terminate()
        try:
            self.process.wait(PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
        for reader in self._readers:
            reader.join()
        for stream in (self.process.stdout, self.process.stderr):
            assert stream is not None
            stream.close()

    def _read(self, stream: IO[str], into: list[str]) -> None:
        for line in stream:
            with self._news:
                into.append(line.rstrip("\n"))
                self._news.notify_all()
        with self._news:
            self._news.notify_all()

    def until_line(self, matches: Callable[[str], bool], *, what: str) -> str:
        """Wait for a line on either stream; fails with everything that was written if it ends without one."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        with self._news:
            while True:
                for line in [*self.out, *self.err]:
                    if matches(line):
                        return line
                silent = not any(reader.is_alive() for reader in self._readers)
                left = deadline - time.monotonic()
                assert not silent, f"it ended without {what}:\n{self.written()}"
                assert left > 0, f"no {what} within {PATIENCE_SECONDS:g} s:\n{self.written()}"
                self._news.wait(min(left, 1.0))

    def ready(self) -> str:
        """Wait for its line that starts with `Ready`; gives it."""
        return self.until_line(lambda line: line.startswith("Ready"), what="Ready")

    def mentions(self, text: str) -> str:
        return self.until_line(lambda line: text in line, what=repr(text))

    def end(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Send a signal; gives the exit code."""
        self.process.send_signal(number)
        return self.ended()

    def ended(self) -> int:
        code = self.process.wait(PATIENCE_SECONDS)
        for reader in self._readers:
            reader.join()
        return code

    def children(self) -> list[int]:
        """The processes it has started that still run."""
        found = []
        for stat in Path("/proc").glob("[0-9]*/stat"):
            with contextlib.suppress(OSError):
                # pid (name) state parent …; the name may hold spaces and parentheses.
                after_name = stat.read_text().rpartition(")")[2].split()
                if int(after_name[1]) == self.process.pid and after_name[0] != "Z":
                    found.append(int(stat.parent.name))
        return found

    def written(self) -> str:
        return "\n".join(["stdout:", *self.out, "stderr:", *self.err])


def is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def until_gone(pid: int) -> None:
    """Wait until a process that is not our child has ended."""
    with contextlib.suppress(OSError):
        descriptor = os.pidfd_open(pid)
        try:
            import select

            readable, _, _ = select.select([descriptor], [], [], PATIENCE_SECONDS)
            assert readable, f"process {pid} still runs after {PATIENCE_SECONDS:g} s"
        finally:
            os.close(descriptor)
