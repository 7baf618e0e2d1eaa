"""A real control plane on this machine: etcd and kube-apiserver on free loopback ports, with RBAC and verified TLS.

There are no controllers and no kubelets: simulated ones come from `mooring nodes`. The API server can be killed and
started again on the same port; what it stored is in etcd and stays.
"""

from __future__ import annotations

import http.client
import json
import os
import shutil
import signal
import ssl
import subprocess
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.ports import free_ports
from tests.real_kubectl.conftest import real_program
from tests.scheduler.serving.certificates import an_authority

from mooring.base.tls import make_identity

START_SECONDS = 180.0
LOOK_AGAIN_SECONDS = 0.1
IDLE_SECONDS = 30.0
"""A connection that was idle for so long may be closed by the server at any moment."""
ADMIN, SCHEDULER, SECOND_SCHEDULER, POWERLESS = "admin", "scheduler", "second-scheduler", "powerless"
FRONT_PROXY = "front-proxy"
USERS = {
    ADMIN: ("admin", "system:masters"),
    SCHEDULER: ("system:kube-scheduler", ""),
    SECOND_SCHEDULER: ("system:kube-scheduler", ""),
    POWERLESS: ("powerless", ""),
}
"""Users of the server: the scheduler has no more rights than kube-scheduler in a real cluster. The second
is the same user for the server; the audit log distinguishes the two by their uid, which is the name here."""
WRITES = ["create", "update", "patch", "delete"]
AUDIT_POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [
        {"level": "Metadata", "userGroups": ["system:serviceaccounts"]},
        {"level": "Metadata", "users": ["system:kube-scheduler"], "verbs": WRITES},
        {"level": "None"},
    ],
}


def with_gates(names: Sequence[str]) -> tuple[str, ...]:
    """Flags of an API server that serves pod groups, with these gates on."""
    gates = ",".join(f"{name}=true" for name in names)
    return f"--feature-gates={gates}", "--runtime-config=scheduling.k8s.io/v1alpha2=true"


def debian_program(name: str) -> Path:
    """The path of a program that Debian packages. Without it the calling test is skipped, or fails where required."""
    caches = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    cached = Path(os.environ.get("MOORING_CACHE") or caches / "mooring") / "debian" / name / "usr" / "bin" / name
    found = shutil.which(name) or shutil.which(cached)
    if found is not None:
        return Path(found)
    reason = f"there is no {name} on the PATH or at {cached}; `scripts/install-debian {name}` gets it"
    if os.environ.get("REQUIRE_REAL"):
        pytest.fail(f"REQUIRE_REAL is set, and {reason}", pytrace=False)
    pytest.skip(reason)


class ApiError(Exception):
    """The server's refusal."""

    def __init__(self, code: int, body: str) -> None:
        super().__init__(f"{code}: {body}")
        self.code = code


class Api:
    """Plain requests as an administrator, for what a test sets up and looks at; one after the other."""

    def __init__(self, port: int, ca_pem: str, token: str, *, seconds: float = 60.0) -> None:
        self._connection = http.client.HTTPSConnection(
            "127.0.0.1", port, context=ssl.create_default_context(cadata=ca_pem), timeout=seconds
        )
        self._token = token
        self._one_at_a_time = threading.Lock()
        self._last_used = 0.0

    def close(self) -> None:
        """The next request connects again."""
        self._connection.close()

    def request(self, method: str, path: str, body: Any = None, *, content: str = "application/json") -> Any:
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": content}
        with self._one_at_a_time:
            if time.monotonic() - self._last_used > IDLE_SECONDS:
                self.close()
            try:
                self._connection.request(method, path, None if body is None else json.dumps(body), headers)
                response = self._connection.getresponse()
                body = response.read().decode()
            except BaseException:
                self.close()
                raise
            self._last_used = time.monotonic()
        if response.status >= 300:
            raise ApiError(response.status, body)
        return json.loads(body) if body.startswith("{") else body

    def get(self, path: str) -> Any:
        return self.request("GET", path)

    def items(self, path: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.get(path)["items"]
        return found

    def create(self, path: str, document: dict[str, Any]) -> Any:
        return self.request("POST", path, document)

    def merge(self, path: str, document: dict[str, Any]) -> Any:
        return self.request("PATCH", path, document, content="application/merge-patch+json")

    def delete(self, path: str) -> None:
        self.request("DELETE", path, {"gracePeriodSeconds": 0})

    def delete_if_there(self, path: str) -> None:
        try:
            self.delete(path)
        except ApiError as error:
            if error.code != 404:
                raise


class ControlPlane:
    """etcd and kube-apiserver; `with` starts and ends them."""

    def __init__(self, folder: Path, *flags: str) -> None:
        """`flags`: further ones of the API server."""
        self._flags = flags
        self._etcd_program, self._server_program = debian_program("etcd"), real_program("kube-apiserver")
        self.folder = folder
        self._etcd_port, self._peer_port, self.port = free_ports(3)
        self.url = f"https://127.0.0.1:{self.port}"
        self._identity = make_identity(["127.0.0.1"], "test")
        self.api = Api(self.port, self._identity.ca_pem, _token(ADMIN))
        self.ca_pem = self._identity.ca_pem
        self.clients, self.front_proxies = an_authority("clients"), an_authority("front proxies")
        """Authorities of client certificates, and of front proxies."""
        self.audit_log = folder / "audit.log"
        """Requests of service accounts and writes of schedulers, one JSON object a line."""
        self._etcd: subprocess.Popen[bytes] | None = None
        self._server: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> ControlPlane:
        self._write_files()
        try:
            self.start_etcd()
            self.start_server()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.api.close()
        for process in (self._server, self._etcd):
            if process is not None:
                process.send_signal(signal.SIGCONT)
                _end(process)
        self._server = self._etcd = None

    def start_etcd(self) -> None:
        peer, client = f"http://127.0.0.1:{self._peer_port}", f"http://127.0.0.1:{self._etcd_port}"
        self._etcd = self._spawn(
            "etcd",
            [
                str(self._etcd_program),
                f"--data-dir={self.folder / 'etcd'}",
                "--unsafe-no-fsync",
                f"--listen-client-urls={client}",
                f"--advertise-client-urls={client}",
                f"--listen-peer-urls={peer}",
                f"--initial-advertise-peer-urls={peer}",
                f"--initial-cluster=default={peer}",
                "--log-level=warn",
            ],
        )

    def kill_etcd(self) -> None:
        assert self._etcd is not None
        self._etcd.kill()
        self._etcd.wait()

    def pause_etcd(self) -> None:
        """Until `resume_etcd` it does not respond, and keeps its connections."""
        assert self._etcd is not None
        self._etcd.send_signal(signal.SIGSTOP)

    def resume_etcd(self) -> None:
        assert self._etcd is not None
        self._etcd.send_signal(signal.SIGCONT)

    def start_server(self) -> None:
        """Start the API server and wait until it responds."""
        certificate, key = f"{self.folder}/certificate.pem", f"{self.folder}/key.pem"
        self._server = self._spawn(
            "kube-apiserver",
            [
                str(self._server_program),
                f"--etcd-servers=http://127.0.0.1:{self._etcd_port}",
                f"--secure-port={self.port}",
                "--bind-address=127.0.0.1",
                "--advertise-address=127.0.0.1",
                # Endpoints may not name a loopback address, and no test reads them.
                "--endpoint-reconciler-type=none",
                f"--tls-cert-file={certificate}",
                f"--tls-private-key-file={key}",
                f"--token-auth-file={self.folder}/tokens.csv",
                f"--client-ca-file={self.folder}/clients.pem",
                f"--requestheader-client-ca-file={self.folder}/front-proxies.pem",
                f"--requestheader-allowed-names={FRONT_PROXY}",
                "--requestheader-username-headers=X-Remote-User",
                "--requestheader-group-headers=X-Remote-Group",
                "--requestheader-extra-headers-prefix=X-Remote-Extra-",
                "--authorization-mode=RBAC",
                "--service-account-issuer=https://kubernetes.default.svc",
                f"--service-account-signing-key-file={key}",
                f"--service-account-key-file={certificate}",
                "--service-cluster-ip-range=10.0.0.0/16",
                # Both wait for a controller manager, which there is not.
                "--disable-admission-plugins=ServiceAccount,TaintNodesByCondition",
                f"--audit-policy-file={self.folder}/audit-policy.yaml",
                f"--audit-log-path={self.audit_log}",
                *self._flags,
            ],
        )
        self._wait_until_ready()

    def pause_server(self) -> None:
        """Until `resume_server` it does not respond, and keeps its connections."""
        assert self._server is not None
        self._server.send_signal(signal.SIGSTOP)

    def resume_server(self) -> None:
        assert self._server is not None
        self._server.send_signal(signal.SIGCONT)

    def kill_server(self) -> None:
        """Kill the API server without a shutdown, as a crash does."""
        assert self._server is not None
        self._server.kill()
        self._server.wait()
        self.api.close()

    def kubeconfig(self, user: str) -> Path:
        return self.folder / f"{user}.kubeconfig"

    def _write_files(self) -> None:
        texts = {
            "certificate.pem": self._identity.certificate_pem,
            "key.pem": self._identity.key_pem,
            "ca.pem": self._identity.ca_pem,
            "clients.pem": self.clients.pem,
            "front-proxies.pem": self.front_proxies.pem,
            "audit-policy.yaml": json.dumps(AUDIT_POLICY),
            "tokens.csv": "".join(
                f"{_token(each)},{name},{each}" + (f',"{groups}"\n' if groups else "\n")
                for each, (name, groups) in USERS.items()
            ),
        }
        for name, text in texts.items():
            (self.folder / name).write_text(text, encoding="utf-8")
        for user in USERS:
            self.write_kubeconfig(user, self.kubeconfig(user), port=self.port)

    def write_kubeconfig(self, user: str, path: Path, *, port: int) -> Path:
        """A kubeconfig for the server as it is reached by this port."""
        place = {"server": f"https://127.0.0.1:{port}", "certificate-authority": str(self.folder / "ca.pem")}
        document = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "real",
            "clusters": [{"name": "real", "cluster": place}],
            "users": [{"name": user, "user": {"token": _token(user)}}],
            "contexts": [{"name": "real", "context": {"cluster": "real", "user": user}}],
        }
        path.write_text(json.dumps(document), encoding="utf-8")
        return path

    def _spawn(self, name: str, command: Sequence[str]) -> subprocess.Popen[bytes]:
        with (self.folder / f"{name}.log").open("ab") as log:
            return subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, cwd=self.folder
            )

    def _wait_until_ready(self) -> None:
        deadline = time.monotonic() + START_SECONDS
        while True:
            try:
                self.api.get("/readyz")
                self.api.get("/api/v1/namespaces/default")
                return
            except (OSError, http.client.HTTPException, ApiError) as error:
                for name, process in (("etcd", self._etcd), ("kube-apiserver", self._server)):
                    assert process is not None
                    assert process.poll() is None, f"{name} ended:\n{self._last_words(name)}"
                if time.monotonic() > deadline:
                    pytest.fail(f"the API server is not ready: {error}\n{self._last_words('kube-apiserver')}")
            time.sleep(LOOK_AGAIN_SECONDS)

    def _last_words(self, name: str) -> str:
        return (self.folder / f"{name}.log").read_text(encoding="utf-8", errors="replace")[-3000:]


def _token(user: str) -> str:
    return f"token-of-{user}"


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
    process.wait()
