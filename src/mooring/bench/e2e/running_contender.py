"""A contender's process during a run: started, observed, ended."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from mooring.base.files import write_private
from mooring.bench.e2e.cluster import BenchCluster
from mooring.bench.e2e.contenders import RECORDING, Contender, bare_job
from mooring.bench.e2e.open_page import open_page
from mooring.bench.processes import Usage, end_process, last_lines, spawn, usage_of


class RunningContender:
    """The process. Its figures are kept when it has ended by itself, as the bare client does."""

    def __init__(self, command: Sequence[str], folder: Path, stdin: Path | None) -> None:
        self.log = folder / "contender.log"
        self._usage = Usage()
        with (stdin or Path("/dev/null")).open("rb") as source:
            self.started_at = time.monotonic()
            self._process = spawn(command, self.log, folder, stdin=source.fileno())

    @property
    def has_ended(self) -> bool:
        return self._process.poll() is not None

    @property
    def exit_code(self) -> int | None:
        return self._process.poll()

    def usage(self) -> Usage:
        """So far; of a process that has ended, as far as it was looked at before."""
        found = usage_of(self._process.pid)
        # A process that is just ending still shows its CPU time, and no memory any more.
        self._usage = Usage(max(found.cpu_seconds, self._usage.cpu_seconds), max(found.peak_mib, self._usage.peak_mib))
        return self._usage

    def last_lines(self) -> str:
        return last_lines(self.log)

    async def end(self) -> None:
        await end_process(self._process)


@asynccontextmanager
async def running(
    contender: Contender, cluster: BenchCluster, pods: Sequence[str] = (), nodes: Sequence[str] = ()
) -> AsyncIterator[RunningContender]:
    """Started now, ended with the block. Pods and nodes are what the bare client binds."""
    with tempfile.TemporaryDirectory(prefix="mooring-bench-run-") as name:
        folder, job = Path(name), None
        if contender.is_bare:
            job = folder / "job.json"
            write_private(job, json.dumps(bare_job(cluster.connection, pods, nodes)))
        async with AsyncExitStack() as stack:
            if contender.has_page:
                await stack.enter_async_context(open_page(cluster.kubeconfig, folder / RECORDING, folder))
            process = RunningContender(contender.command_for(cluster.kubeconfig, folder, cluster.gates), folder, job)
            stack.push_async_callback(process.end)
            yield process
