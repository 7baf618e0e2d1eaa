"""The scheduler's HTTPS server in a process of its own, for tests that attack it: its memory, CPU time and log."""

from __future__ import annotations

import asyncio
import json
import os
import resource
import socket
import ssl
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from tests.hostile.bounds import REPOSITORY, WALL_SECONDS

CPU_SECONDS = 120
"""The kernel ends a child that spins."""


class Served:
    """A server in a child. Commands go through its standard input; its log is a file."""

    def __init__(self, child: subprocess.Popen[str], port: int, log: Path) -> None:
        self._child = child
        self._log = log
        self._opened: list[socket.socket] = []
        self._context = trusting()
        self.port = port

    def close(self) -> None:
        """Every connection that was opened here."""
        while self._opened:
            self._opened.pop().close()

    def open(self) -> socket.socket:
        connection = socket.create_connection(("127.0.0.1", self.port), timeout=WALL_SECONDS)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._opened.append(connection)
        return connection

    def open_tls(self) -> ssl.SSLSocket:
        connection = self._context.wrap_socket(self.open())
        self._opened[-1] = connection
        return connection

    def send(self, request: bytes) -> bytes:
        """The whole response, on a connection of its own."""
        with self.open_tls() as connection:
            connection.sendall(request)
            return rest_of(connection)

    def get(self, path: str, *headers: str) -> int:
        """The status of the response."""
        lines = [f"GET {path} HTTP/1.1", "Host: here", "Connection: close", *headers, "", ""]
        return status_of(self.send("\r\n".join(lines).encode("latin-1")))

    def do(self, command: str) -> Any:
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        self._child.stdin.write(command + "\n")
        self._child.stdin.flush()
        return json.loads(self._child.stdout.readline())

    @property
    def rss_kib(self) -> int:
        status = Path(f"/proc/{self._child.pid}/status").read_text()
        return int(status.partition("VmRSS:")[2].split()[0])

    @property
    def cpu_seconds(self) -> float:
        fields = Path(f"/proc/{self._child.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    @property
    def log(self) -> str:
        return self._log.read_text()


def trusting() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


def rest_of(connection: socket.socket) -> bytes:
    """All that is sent until the server closes or resets the connection."""
    received = b""
    try:
        while data := connection.recv(65_536):
            received += data
    except (ConnectionError, ssl.SSLError):
        pass
    return received


def status_of(response: bytes) -> int:
    return int(response.split(b" ", 2)[1]) if response.startswith(b"HTTP/1.") else 0


@contextmanager
def served(
    *,
    descriptors: int | None = None,
    verbosity: int = 2,
    cluster: bool = False,
    options: dict[str, Any] | None = None,
    **limits: Any,
) -> Iterator[Served]:
    """`descriptors` is the child's limit of open files; `cluster`: with an API server to review tokens and rights.

    `options` are fields of ServingOptions, `limits` of GateLimits.
    """
    wanted = {
        "descriptors": descriptors,
        "verbosity": verbosity,
        "cluster": cluster,
        "options": options or {},
        "limits": limits,
    }
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder, "log")
        with log.open("w") as errors:
            child = subprocess.Popen(
                [sys.executable, "-m", "tests.hostile.serving_process", json.dumps(wanted)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                cwd=REPOSITORY,
            )
        try:
            assert child.stdout is not None
            begun = child.stdout.readline()
            assert begun, log.read_text()
            server = Served(child, json.loads(begun), log)
            try:
                yield server
            finally:
                server.close()
        finally:
            assert child.stdin is not None
            assert child.stdout is not None
            child.stdin.close()
            child.wait(WALL_SECONDS)
            child.stdout.close()


def _child(options: dict[str, Any]) -> None:
    from mooring.base import log
    from mooring.base.clock import SystemClock
    from mooring.base.gate import GateLimits
    from mooring.client import Connection
    from mooring.scheduler.serving.client_authorities import AuthorityOptions
    from mooring.scheduler.serving.health import Health
    from mooring.scheduler.serving.pages import Page
    from mooring.scheduler.serving.server import SecureServer, ServingOptions

    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS + 5))
    if options["descriptors"] is not None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (options["descriptors"],) * 2)
    log.configure(verbosity=options["verbosity"])

    async def run() -> None:
        connection = None
        if options["cluster"]:
            from mooring.apiserver import EmbeddedApiServer

            embedded = EmbeddedApiServer()
            await embedded.start()
            connection = Connection(
                server=embedded.url, source="the test", ca_data=embedded.ca_pem.encode(), token=embedded.token
            )
        server = SecureServer(
            ServingOptions(
                bind_address="127.0.0.1",
                port=0,
                authorities=AuthorityOptions(skip_lookup=True),
                limits=GateLimits(**options["limits"]),
                always_allowed=("/healthz", "/readyz", "/livez", "/large"),
                **options["options"],
            ),
            Health({"healthz": {}, "livez": {}, "readyz": {}}),
            {
                "/metrics": Page("text/plain", lambda: b"up 1\n"),
                "/large": Page("text/plain", lambda: os.urandom(2**23)),
            },
            SystemClock(),
            authentication=connection,
            authorization=connection,
        )
        await asyncio.to_thread(server.start)
        print(json.dumps(server.port), flush=True)
        try:
            await asyncio.to_thread(_obey, sys.stdin, connection.token if connection is not None else None)
        finally:
            await asyncio.to_thread(server.stop)

    asyncio.run(run())


def _obey(commands: IO[str], token: str | None) -> None:
    held: list[int] = []
    for command in commands:
        match command.strip():
            case "fill descriptors":
                try:
                    while True:
                        held.append(os.open(os.devnull, os.O_RDONLY))
                except OSError:
                    pass
                result: Any = len(held)
            case "free descriptors":
                while held:
                    os.close(held.pop())
                result = 0
            case "token":
                result = token
            case unknown:
                raise ValueError(unknown)
        print(json.dumps(result), flush=True)


if __name__ == "__main__":
    _child(json.loads(sys.argv[1]))
