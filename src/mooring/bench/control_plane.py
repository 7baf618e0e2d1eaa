"""A control plane of a benchmark's own: etcd and kube-apiserver on free loopback ports, in a folder that goes with it.

No controllers and no kubelets run: nodes and pods are documents that the benchmark creates. etcd does not wait for the
disk (`--unsafe-no-fsync`), so that the figures are those of programs and not of a disk. The one user may do everything
and is exempt from priority and fairness.
"""

from __future__ import annotations

import asyncio
import json
import random
import secrets
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from mooring.base.errors import ApiError, Fault, Unreachable
from mooring.base.files import write_private
from mooring.base.tls import make_identity
from mooring.bench.processes import end_process, kill_process, last_lines, spawn
from mooring.bench.programs import ETCD, KUBE_APISERVER, require_programs
from mooring.client import ApiClient, Connection, load_kubeconfig

START_SECONDS = 180.0
POLL_SECONDS = 0.1
ETCD_BYTES = 8 << 30
"""Large runs write gigabytes of revisions before the first compaction."""
# Below those that Linux gives to outgoing connections and to port 0: between the choice and the start of the program
# no other process gets one of them by chance.
_PORTS = range(20_000, 32_000)


class ControlPlane:
    """etcd and kube-apiserver; `async with` starts and ends them. `flags` are further ones of kube-apiserver."""

    def __init__(self, *flags: str) -> None:
        self._programs = require_programs((ETCD, KUBE_APISERVER))
        self._flags = flags
        self.folder = Path(tempfile.mkdtemp(prefix="mooring-bench-"))
        self.kubeconfig = self.folder / "kubeconfig"
        self._processes: dict[str, subprocess.Popen[bytes]] = {}

    async def __aenter__(self) -> ControlPlane:
        try:
            await self._start()
        except BaseException:
            await self.__aexit__()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        try:
            while self._processes:
                await end_process(self._processes.popitem()[1])  # kube-apiserver before etcd
        finally:
            # Ctrl-C may cancel the orderly end as well.
            for process in self._processes.values():
                kill_process(process)
            self._processes.clear()
            shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def connection(self) -> Connection:
        return load_kubeconfig([self.kubeconfig])

    @property
    def server_pid(self) -> int:
        """Of kube-apiserver."""
        return self._processes[KUBE_APISERVER].pid

    async def _start(self) -> None:
        etcd, peer, port = free_ports(3)
        self._write_files(port)
        etcd_url, peer_url = f"http://127.0.0.1:{etcd}", f"http://127.0.0.1:{peer}"
        self._spawn(
            ETCD,
            f"--data-dir={self.folder / 'etcd'}",
            "--unsafe-no-fsync",
            f"--listen-client-urls={etcd_url}",
            f"--advertise-client-urls={etcd_url}",
            f"--listen-peer-urls={peer_url}",
            f"--initial-advertise-peer-urls={peer_url}",
            f"--initial-cluster=default={peer_url}",
            f"--quota-backend-bytes={ETCD_BYTES}",
            "--log-level=error",
        )
        certificate, key = self.folder / "certificate.pem", self.folder / "key.pem"
        self._spawn(
            KUBE_APISERVER,
            f"--etcd-servers={etcd_url}",
            f"--secure-port={port}",
            "--bind-address=127.0.0.1",
            "--advertise-address=127.0.0.1",
            # Endpoints may not name a loopback address, and no benchmark reads them.
            "--endpoint-reconciler-type=none",
            f"--tls-cert-file={certificate}",
            f"--tls-private-key-file={key}",
            f"--token-auth-file={self.folder}/tokens.csv",
            "--authorization-mode=AlwaysAllow",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-signing-key-file={key}",
            f"--service-account-key-file={certificate}",
            "--service-cluster-ip-range=10.0.0.0/16",
            # Both wait for a controller manager, which there is not.
            "--disable-admission-plugins=ServiceAccount,TaintNodesByCondition",
            "--max-requests-inflight=2000",
            "--max-mutating-requests-inflight=1000",
            # Between runs thousands of pods are deleted by one request.
            "--delete-collection-workers=16",
            *self._flags,
        )
        await self._wait_until_ready()

    def _spawn(self, name: str, *flags: str) -> None:
        command: Sequence[str] = [str(self._programs[name]), *flags]
        self._processes[name] = spawn(command, self.folder / f"{name}.log", self.folder)

    def _write_files(self, port: int) -> None:
        identity, token = make_identity(["127.0.0.1"], "mooring-bench"), secrets.token_hex(16)
        kubeconfig = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "bench",
            "clusters": [
                {
                    "name": "bench",
                    "cluster": {
                        "server": f"https://127.0.0.1:{port}",
                        "certificate-authority": str(self.folder / "ca.pem"),
                    },
                }
            ],
            "users": [{"name": "bench", "user": {"token": token}}],
            "contexts": [{"name": "bench", "context": {"cluster": "bench", "user": "bench"}}],
        }
        texts = {
            "certificate.pem": identity.certificate_pem,
            "key.pem": identity.key_pem,
            "ca.pem": identity.ca_pem,
            "tokens.csv": f'{token},bench,bench,"system:masters"\n',
            "kubeconfig": json.dumps(kubeconfig),
        }
        for name, text in texts.items():
            write_private(self.folder / name, text)

    async def _wait_until_ready(self) -> None:
        deadline = time.monotonic() + START_SECONDS
        async with ApiClient(self.connection) as client:
            while True:
                try:
                    await client.transport.request("GET", "/readyz")
                    await client.transport.request("GET", "/api/v1/namespaces/default")
                    return
                except (ApiError, Unreachable) as error:
                    self._check_that_all_run()
                    if time.monotonic() > deadline:
                        log = last_lines(self.folder / f"{KUBE_APISERVER}.log")
                        raise Fault(f"kube-apiserver is not ready after {START_SECONDS:g} s: {error}\n{log}") from error
                await asyncio.sleep(POLL_SECONDS)

    def _check_that_all_run(self) -> None:
        for name, process in self._processes.items():
            if (code := process.poll()) is not None:
                raise Fault(f"{name} ended with exit code {code}:\n{last_lines(self.folder / f'{name}.log')}")


def free_ports(count: int) -> list[int]:
    """Different ports that no process listens on."""
    dice, found = random.SystemRandom(), set[int]()
    while len(found) < count:
        port = dice.choice(_PORTS)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        found.add(port)
    return list(found)
