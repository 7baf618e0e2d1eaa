"""The schedulers under test: their commands, their configuration, their processes, and what they serve."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from http import HTTPStatus
from pathlib import Path
from subprocess import Popen

import aiohttp

from mooring.base.documents import read_tree
from mooring.base.errors import Fault
from mooring.base.files import make_folder, write_private
from mooring.bench.control_plane import ControlPlane
from mooring.bench.processes import Usage, end_process, last_lines, spawn, usage_of
from mooring.bench.scheduler_commands import DEFAULTS, SchedulerCommand, find_commands, gates_flag
from mooring.bench.scheduler_perf.measuring import MeasuredScheduler
from mooring.bench.scheduler_perf.workload_files import Case

READY_SECONDS = 60.0
POLL_SECONDS = 0.1
REQUESTS_PER_SECOND = 5000
BATCHING = "OpportunisticBatching"
"""A gate that upstream's harness switches off where a workload does not name it."""
FIELDS = ("kubeconfig", "config", "gates", "port", "dir")
FLAGS = (
    "--config={config}",
    "--feature-gates={gates}",
    "--secure-port={port}",
    "--bind-address=127.0.0.1",
    "--cert-dir={dir}",
    "--authorization-always-allow-paths=/healthz,/readyz,/livez,/metrics",
)


def read_commands(stated: Sequence[str]) -> list[SchedulerCommand]:
    return find_commands(stated or DEFAULTS, FLAGS, FIELDS)


class SchedulerProcess(MeasuredScheduler):
    """A scheduler that runs; `async with` starts and ends it."""

    def __init__(self, command: SchedulerCommand, case: Case, control_plane: ControlPlane, port: int) -> None:
        self._command, self._case, self._control_plane, self._port = command, case, control_plane, port
        self._folder = control_plane.folder / "scheduler"
        self._log = self._folder / "scheduler.log"
        self._process: Popen[bytes] | None = None
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> SchedulerProcess:
        make_folder(self._folder)
        config = self._folder / "config.yaml"
        write_private(config, json.dumps(configuration(self._case, self._control_plane.kubeconfig)))
        gates = {BATCHING: False} | self._case.feature_gates
        fields = {
            "config": str(config),
            "kubeconfig": str(self._control_plane.kubeconfig),
            "gates": gates_flag(gates.items()),
            "port": str(self._port),
            "dir": str(self._folder),
        }
        self._process = spawn(self._command.filled_in(fields), self._log, self._folder)
        # The certificate is the scheduler's own, and the connection does not leave this machine.
        self._session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=False))
        try:
            await self._wait_until_healthy()
        except BaseException:
            await self.__aexit__()
            raise
        return self

    async def _wait_until_healthy(self) -> None:
        try:
            async with asyncio.timeout(READY_SECONDS):
                while await self._get("/healthz") is None:
                    self.check()
                    await asyncio.sleep(POLL_SECONDS)
        except TimeoutError:
            raise Fault(
                f"{self._command.name} is not healthy after {READY_SECONDS:g} s:\n{last_lines(self._log)}"
            ) from None

    async def __aexit__(self, *_: object) -> None:
        if self._session is not None:
            await self._session.close()
        if self._process is not None:
            await end_process(self._process)

    def check(self) -> None:
        """Raises where the scheduler has ended."""
        assert self._process is not None
        if (code := self._process.poll()) is not None:
            raise Fault(f"{self._command.name} ended with exit code {code}:\n{last_lines(self._log)}")

    async def metrics(self) -> str:
        self.check()
        text = await self._get("/metrics")
        if text is None:
            raise Fault(f"/metrics of {self._command.name} cannot be read:\n{last_lines(self._log)}")
        return text

    async def _get(self, path: str) -> str | None:
        """What the scheduler responds, or None where it does not; empty where its command has no port."""
        if not self._command.uses("port"):
            return ""
        assert self._session is not None
        try:
            async with self._session.get(f"https://127.0.0.1:{self._port}{path}") as response:
                return await response.text() if response.status == HTTPStatus.OK else None
        except aiohttp.ClientError:
            return None

    def usage(self) -> Usage:
        assert self._process is not None
        return usage_of(self._process.pid)


def configuration(case: Case, kubeconfig: Path) -> dict[str, object]:
    """The scheduler configuration of the test case, or the defaults; one scheduler alone, with upstream's client."""
    own: dict[str, object] = {}
    if stated := case.test_case.scheduler_config_path:
        path = case.path(stated)
        own = read_tree(path.read_bytes(), str(path)).plain()
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        **own,
        "leaderElection": {"leaderElect": False},
        "clientConnection": {"kubeconfig": str(kubeconfig), "qps": REQUESTS_PER_SECOND, "burst": REQUESTS_PER_SECOND},
    }
