"""What is measured: schedulers by their commands, and the client that only posts bindings.

That client is the limit of what a scheduler can reach on this API server: 64 requests in flight, nodes in turn, no
decisions and no events. It is a small Go program (`scripts/build-bind-rate`); where that was not built, a Python one
takes its place, which is slower and lowers the limit.
"""

from __future__ import annotations

import base64
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mooring.base.errors import OperatorMistake
from mooring.base.files import write_private
from mooring.bench.manifests import NAMESPACE
from mooring.bench.programs import BIND_RATE, find_program
from mooring.bench.scheduler_commands import find_commands, gates_flag
from mooring.client import Connection

IN_FLIGHT = 64
BARE, MOORING, PAGE = "bare", "mooring", "mooring+page"
RECORDING = "bench.recording"
FIELDS = ("kubeconfig", "config", "gates", "dir")
FLAGS = ("--config={config}", "--feature-gates={gates}", "--secure-port=0")
_CONFIG = """apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {{leaderElect: false}}
clientConnection: {{kubeconfig: {kubeconfig}, qps: 5000, burst: 5000}}
"""


@dataclass(frozen=True)
class Contender:
    """A command. In its words {kubeconfig}, {config}, {gates} and {dir} stand for what a run has."""

    name: str
    command: tuple[str, ...]
    has_page: bool = False
    """A page is open beside it, which shows its cluster and its recording."""

    @property
    def is_bare(self) -> bool:
        """It posts bindings for the pods that it is given, and ends."""
        return self.name == BARE

    def command_for(self, kubeconfig: Path, folder: Path, gates: Sequence[str] = ()) -> list[str]:
        """Writes the configuration that the command is given. These feature gates are to be on."""
        config = folder / "config.yaml"
        write_private(config, _CONFIG.format(kubeconfig=kubeconfig))
        flag = gates_flag((gate, True) for gate in gates)
        return [word.format(kubeconfig=kubeconfig, config=config, gates=flag, dir=folder) for word in self.command]


def find_contenders(wanted: Sequence[str], *, with_bare: bool, with_page: bool = False) -> list[Contender]:
    """Schedulers as the command line names them: `mooring`, `kube-scheduler` or `NAME=COMMAND`.

    `with_page`: Mooring once more, while it records and a page is open.
    """
    commands = find_commands(wanted, FLAGS, FIELDS, reserved=(BARE, PAGE))
    found = [Contender(each.name, each.words) for each in commands]
    if with_page:
        mooring = next((each for each in found if each.name == MOORING), None)
        if mooring is None:
            raise OperatorMistake("--page is about mooring, which --scheduler leaves out.")
        found.append(Contender(PAGE, (*mooring.command, f"--record={{dir}}/{RECORDING}"), has_page=True))
    return [_bare(), *found] if with_bare else found


def _bare() -> Contender:
    program = find_program(BIND_RATE)
    command = (str(program),) if program is not None else (sys.executable, "-m", "mooring.bench.e2e.bare_client")
    return Contender(BARE, command)


def is_python(contender: Contender) -> bool:
    return contender.is_bare and contender.command[0] == sys.executable


def bare_job(connection: Connection, pods: Sequence[str], nodes: Sequence[str]) -> dict[str, Any]:
    """What the client reads from standard input."""
    key = connection.client_key_data
    if key is None and connection.client_key_file is not None:
        key = Path(connection.client_key_file).read_bytes()
    return {
        "server": connection.server.rstrip("/"),
        "ca": _base64(connection.ca_pem()),
        "insecure": connection.insecure_skip_tls_verify,
        "serverName": connection.tls_server_name or "",
        "token": connection.token or "",
        "certificate": _base64(connection.client_certificate()),
        "key": _base64(key),
        "namespace": NAMESPACE,
        "pods": list(pods),
        "nodes": list(nodes),
        "inFlight": IN_FLIGHT,
    }


def _base64(data: bytes | None) -> str:
    return base64.b64encode(data or b"").decode("ascii")
