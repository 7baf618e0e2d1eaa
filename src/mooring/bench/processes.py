"""Programs under measurement: started in a session of their own, their CPU time and memory read from /proc, ended."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mooring.base.files import open_to_append

END_SECONDS = 15.0
LOG_CHARACTERS = 3000


@dataclass(frozen=True)
class Usage:
    """Of a process and its children."""

    cpu_seconds: float = 0.0
    peak_mib: float = 0.0
    """The most memory that was resident at once (VmHWM)."""


def spawn(
    command: Sequence[str], log: Path, folder: Path, *, stdin: int = subprocess.DEVNULL
) -> subprocess.Popen[bytes]:
    """Start it. Ctrl-C at the terminal does not reach it: the benchmark ends its programs in order."""
    with open_to_append(log) as output:
        return subprocess.Popen(
            command, stdin=stdin, stdout=output, stderr=subprocess.STDOUT, cwd=folder, start_new_session=True
        )


async def end_process(process: subprocess.Popen[bytes]) -> None:
    """End the process and whatever it started: in order, or after a while without. Also where Ctrl-C cancels it."""
    try:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                await asyncio.to_thread(process.wait, END_SECONDS)
    finally:
        kill_process(process)


def kill_process(process: subprocess.Popen[bytes]) -> None:
    """End the process and whatever it started, at once."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def usage_of(pid: int, proc: Path = Path("/proc")) -> Usage:
    """So far. A process that has ended counts nothing."""
    ticks = peak_kib = 0
    for each in _with_children(pid, proc):
        with contextlib.suppress(OSError):
            # The name in parentheses may hold spaces; what follows it does not.
            fields = (proc / str(each) / "stat").read_text().rpartition(")")[2].split()
            ticks += int(fields[11]) + int(fields[12])
            for line in (proc / str(each) / "status").read_text().splitlines():
                if line.startswith("VmHWM:"):
                    peak_kib += int(line.split()[1])
    return Usage(ticks / os.sysconf("SC_CLK_TCK"), peak_kib / 1024)


def _with_children(pid: int, proc: Path) -> list[int]:
    found = [pid]
    with contextlib.suppress(OSError):
        for task in (proc / str(pid) / "task").iterdir():
            for child in (task / "children").read_text().split():
                found += _with_children(int(child), proc)
    return found


def last_lines(log: Path) -> str:
    with contextlib.suppress(OSError):
        return log.read_text(encoding="utf-8", errors="replace")[-LOG_CHARACTERS:].strip()
    return ""
