"""An API server with scripted responses, over HTTPS, and a feed that records what it receives."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from aiohttp import web
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from mooring.base.clock import ManualClock
from mooring.client import ApiClient, Connection
from mooring.objects import KubeObject
from mooring.objects.object_store import Present

# For a machine that is busy with other things; nothing waits this long when all is well.
PATIENCE_SECONDS = 90.0
Responder = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


class InstantClock(ManualClock):
    """No sleep waits: it advances the time, and is recorded."""

    def __init__(self) -> None:
        super().__init__()
        self.slept: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.advance(seconds)
        await asyncio.sleep(0)


@pytest.fixture
def clock() -> InstantClock:
    return InstantClock()


@dataclass
class Authority:
    """A CA of the test's own, and what it signed."""

    ca: bytes
    server: bytes
    server_key: bytes
    client: bytes
    client_key: bytes

    def server_context(self, tmp: Path, *, wants_client_certificate: bool = False) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        chain = tmp / "server.pem"
        chain.write_bytes(self.server + self.server_key)
        context.load_cert_chain(chain)
        if wants_client_certificate:
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(cadata=self.ca.decode())
        return context


@pytest.fixture(scope="session")
def authority() -> Authority:
    return an_authority()


@pytest.fixture(scope="session")
def next_authority() -> Authority:
    """The one that follows when certificates are rotated."""
    return an_authority()


def an_authority(days: int = 1) -> Authority:
    now = datetime.now(UTC)

    def certificate(name: str, key: Any, signer: Any, issuer: str, *, is_ca: bool = False) -> bytes:
        def names(common: str) -> x509.Name:
            return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])

        builder = x509.CertificateBuilder(
            issuer_name=names(issuer),
            subject_name=names(name),
            public_key=key.public_key(),
            serial_number=x509.random_serial_number(),
            not_valid_before=now - timedelta(hours=1),
            not_valid_after=now + timedelta(days=days),
        ).add_extension(x509.BasicConstraints(ca=is_ca, path_length=None), critical=True)
        if name == "server":
            alternatives = [
                x509.IPAddress(ip_address("127.0.0.1")),
                x509.IPAddress(ip_address("::1")),
                x509.DNSName("inner.example"),
            ]
            builder = builder.add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
        return builder.sign(signer, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)

    def pem(key: Any) -> bytes:
        return bytes(
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
        )

    ca_key, server_key, client_key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(3))
    return Authority(
        ca=certificate("ca", ca_key, ca_key, "ca", is_ca=True),
        server=certificate("server", server_key, ca_key, "ca"),
        server_key=pem(server_key),
        client=certificate("client", client_key, ca_key, "ca"),
        client_key=pem(client_key),
    )


@dataclass
class Watch:
    """One response to a watch: these chunks, and then the end of it."""

    chunks: list[bytes] = field(default_factory=list)
    then: str = "end"
    """`end` the response properly, `cut` the connection, or `hold` it open until the client goes."""


NO_STREAMS = {"kind": "Status", "code": 422, "reason": "Invalid", "message": "sendInitialEvents is forbidden for watch"}


class FakeServer:
    """Responds by `respond`, or else from the scripts `lists`, `watches` and `streams`. Records every request.

    Without a script for them streaming lists are refused, as older servers refuse them, and not even remembered.
    """

    def __init__(self, authority: Authority) -> None:
        self.authority = authority
        self.requests: list[tuple[str, str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.respond: Responder | None = None
        self.lists: deque[Any] = deque()
        self.watches: deque[Any] = deque()
        self.streams: deque[Any] | None = None
        self.port = 0
        self.shown: list[str] = []
        """The names in the certificates that clients showed."""
        self.held = asyncio.Event()
        """Set when a watch is being held open: everything scripted before it was sent."""

    def connection(self, **changes: Any) -> Connection:
        settings: dict[str, Any] = {
            "server": f"https://127.0.0.1:{self.port}",
            "source": "a test",
            "ca_data": self.authority.ca,
        }
        return Connection(**settings | changes)

    def requested(self, method: str) -> list[tuple[str, Any]]:
        return [(path, body) for sent, path, body in self.requests if sent == method]

    async def __call__(self, request: web.BaseRequest) -> web.StreamResponse:
        if "sendInitialEvents" in request.query and self.streams is None:
            return self.plain((422, NO_STREAMS))
        text = await request.text()
        self.requests.append((request.method, request.path_qs, msgspec.json.decode(text) if text else None))
        self.headers.append(dict(request.headers))
        if (certificate := request.get_extra_info("peercert")) is not None:
            self.shown.append(dict(pair for part in certificate["subject"] for pair in part)["commonName"])
        if self.respond is not None:
            return await self.respond(request)
        if "watch" in request.query:
            return await self._watched(request)
        return self.plain(self.lists.popleft())

    async def _watched(self, request: web.BaseRequest) -> web.StreamResponse:
        scripts = self.streams if "sendInitialEvents" in request.query else self.watches
        script = scripts.popleft() if scripts else Watch(then="hold")
        if not isinstance(script, Watch):
            return self.plain(script)
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        for chunk in script.chunks:
            await response.write(chunk)
        if script.then == "cut":
            assert request.transport is not None
            request.transport.close()
        if script.then == "hold":
            self.held.set()
            await asyncio.Event().wait()
        return response

    @staticmethod
    def plain(response: Any) -> web.Response:
        """A body, or a code, a body and perhaps headers."""
        if isinstance(response, tuple):
            code, body, *headers = response
            return web.json_response(body, status=code, headers=headers[0] if headers else None)
        return web.json_response(response)


@pytest.fixture
def watch() -> Callable[..., Watch]:
    return lambda *chunks, then="end": Watch(list(chunks), then)


@pytest.fixture
async def server(authority: Authority, tmp_path: Path) -> AsyncIterator[FakeServer]:
    fake = FakeServer(authority)
    async with serving(fake, authority.server_context(tmp_path)):
        yield fake


class serving:  # noqa: N801 (used as a function: `async with serving(…)`)
    """Serves a fake on loopback for the length of a block."""

    def __init__(
        self,
        fake: FakeServer,
        tls: ssl.SSLContext | None,
        *,
        host: str = "127.0.0.1",
        sock: socket.socket | None = None,
    ) -> None:
        self._fake, self._tls, self._host, self._sock = fake, tls, host, sock

    async def __aenter__(self) -> FakeServer:
        self._runner = web.ServerRunner(
            web.Server(self._fake, handler_cancellation=True, access_log=None),
            shutdown_timeout=0.05,
        )
        await self._runner.setup()
        if self._sock is not None:
            await web.SockSite(self._runner, self._sock, ssl_context=self._tls).start()
        else:
            await web.TCPSite(self._runner, self._host, 0, ssl_context=self._tls).start()
        self._fake.port = self._runner.addresses[0][1]
        return self._fake

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()


@pytest.fixture
def reserved() -> Iterator[socket.socket]:
    """A port of ours on which nothing listens (yet)."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        yield sock


@pytest.fixture
def has_ipv6() -> None:
    try:
        with socket.socket(socket.AF_INET6) as sock:
            sock.bind(("::1", 0))
    except OSError:
        pytest.skip("this machine has no IPv6 loopback address")


@pytest.fixture
def serve() -> type[serving]:
    return serving


@pytest.fixture
async def client(server: FakeServer, clock: InstantClock) -> AsyncIterator[ApiClient]:
    async with ApiClient(server.connection(), clock=clock) as client:
        yield client


@pytest.fixture
async def waiting_client(server: FakeServer) -> AsyncIterator[ApiClient]:
    """A client on a clock that stands still: a backoff never ends."""
    async with ApiClient(server.connection(), clock=ManualClock()) as client:
        yield client


class RememberingFeed:
    """A feed whose test awaits what it receives, one call after the other."""

    def __init__(self) -> None:
        self.received: asyncio.Queue[tuple[str, Any]] = asyncio.Queue()
        self.parts: list[str] = []
        """What lists have brought so far, complete or not."""

    def found(self, object: KubeObject) -> None:
        self.parts.append(object.name)

    def listed(self, present: Present) -> None:
        self.received.put_nowait(("listed", [key.rpartition("/")[2] for key in present]))

    def changed(self, object: KubeObject) -> None:
        self.received.put_nowait(("changed", object.name))

    def deleted(self, object: KubeObject) -> None:
        self.received.put_nowait(("deleted", object.name))

    async def next(self) -> tuple[str, Any]:
        async with asyncio.timeout(PATIENCE_SECONDS):
            return await self.received.get()

    async def receives(self, *expected: tuple[str, Any]) -> None:
        assert [await self.next() for _ in expected] == list(expected)


async def until(is_so: Callable[[], bool]) -> None:
    """Let the others go on until it is so."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            if is_so():
                return
            await asyncio.sleep(0)


@pytest.fixture
def feed() -> RememberingFeed:
    return RememberingFeed()


@pytest.fixture
def fake(authority: Authority) -> Callable[[], FakeServer]:
    return lambda: FakeServer(authority)


@pytest.fixture
def write_kubeconfig(tmp_path: Path) -> Callable[..., Path]:
    """Writes a kubeconfig with one cluster, user and context; keywords change them, None leaves one out."""

    def write(
        name: str = "config",
        *,
        cluster: dict[str, Any] | None = None,
        user: dict[str, Any] | None = None,
        context: dict[str, Any] | None = None,
        current: str | None = "main",
        context_name: str = "main",
        **more: Any,
    ) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        document: dict[str, Any] = {"apiVersion": "v1", "kind": "Config", **more}
        document["contexts"] = [
            {
                "name": context_name,
                "context": context or {"cluster": "c", **({"user": "u"} if user is not None else {})},
            }
        ]
        document["clusters"] = [{"name": "c", "cluster": {"server": "https://one:6443"} | (cluster or {})}]
        if user is not None:
            document["users"] = [{"name": "u", "user": user}]
        if current is not None:
            document["current-context"] = current
        path.write_text(yaml.safe_dump(document | more))
        return path

    return write
