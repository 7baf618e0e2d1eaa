"""CPU time and memory are read of a process and its children."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from mooring.bench.processes import Usage, end_process, last_lines, spawn, usage_of

STAT = "{pid} (a name) S " + " ".join(["0"] * 10) + " {user} {system} 0 0"


def a_process(proc: Path, pid: int, *, user: int, system: int, peak_kib: int, children: str = "") -> None:
    folder = proc / str(pid)
    (folder / "task" / str(pid)).mkdir(parents=True)
    (folder / "stat").write_text(STAT.format(pid=pid, user=user, system=system))
    (folder / "status").write_text(f"Name:\tx\nVmHWM:\t{peak_kib} kB\n")
    (folder / "task" / str(pid) / "children").write_text(children)


def test_children_count(tmp_path: Path):
    a_process(tmp_path, 10, user=3, system=4, peak_kib=1024, children="11 ")
    a_process(tmp_path, 11, user=5, system=6, peak_kib=2048)
    assert usage_of(10, tmp_path) == Usage(18 / os.sysconf("SC_CLK_TCK"), 3.0)


def test_a_process_that_has_ended_counts_nothing(tmp_path: Path):
    assert usage_of(10, tmp_path) == Usage()


def test_a_process_ends_with_what_it_started(tmp_path: Path):
    """The child inherits the write end of a pipe: its end is the end of the pipe."""
    reader, writer = os.pipe()
    script = "import subprocess, time; subprocess.Popen(['sleep', '600']); print('up', flush=True); time.sleep(600)"
    process = spawn([sys.executable, "-c", script], tmp_path / "log", tmp_path, stdin=writer)
    os.close(writer)
    while not last_lines(tmp_path / "log"):
        assert process.poll() is None
    asyncio.run(end_process(process))
    assert process.poll() is not None
    assert os.read(reader, 1) == b""
    os.close(reader)


def test_a_process_ends_although_its_end_is_cancelled(tmp_path: Path):
    ignores = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN)"
    script = f"{ignores}; print('up', flush=True); time.sleep(600)"
    process = spawn([sys.executable, "-c", script], tmp_path / "log", tmp_path)
    while not last_lines(tmp_path / "log"):
        assert process.poll() is None

    async def cancelled() -> None:
        ending = asyncio.create_task(end_process(process))
        await asyncio.sleep(0)
        ending.cancel()
        await asyncio.wait([ending])

    asyncio.run(cancelled())
    assert process.poll() is not None
