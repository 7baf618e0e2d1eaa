"""The HTTPS server as a probe, a Prometheus and an intruder meet it; rights come from the embedded API server."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import ssl
import threading
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import yaml
from tests.scheduler.serving.certificates import an_authority

from mooring.apiserver import EmbeddedApiServer
from mooring.base import log
from mooring.base.clock import SystemClock
from mooring.base.errors import Fault, OperatorMistake
from mooring.base.tls import make_identity
from mooring.client import Connection
from mooring.scheduler.serving import reviews
from mooring.scheduler.serving import server as server_module
from mooring.scheduler.serving.certificates import TlsOptions
from mooring.scheduler.serving.client_authorities import AuthorityOptions
from mooring.scheduler.serving.health import Health
from mooring.scheduler.serving.pages import DecisionPage, Page, ZPage, flagz, statusz
from mooring.scheduler.serving.server import SecureServer, ServingOptions
from mooring.scheduler.serving.tls_settings import TlsSettings


def fails() -> str:
    raise RuntimeError("a bug of ours")


def a_server(
    connection: Connection | None = None, decisions: DecisionPage | None = None, **options: Any
) -> SecureServer:
    health = Health({"healthz": {}, "livez": {}, "readyz": {"sync": lambda: "not yet"}})
    pages: dict[str, Page | ZPage] = {
        "/metrics": Page("text/plain", lambda: b"up 1\n"),
        "/broken": Page("text/plain", fails),
        "/flagz": flagz({"v": "0", "config": "c.yaml"}),
        "/statusz": statusz(SystemClock(), "9.9", "1.36", ["/metrics", "/flagz"]),
    }
    # The embedded server runs on the thread that waits for ours to start: its authorities could not be requested.
    given: dict[str, Any] = {
        "bind_address": "127.0.0.1",
        "port": 0,
        "authorities": AuthorityOptions(skip_lookup=True),
    } | options
    return SecureServer(
        ServingOptions(**given),
        health,
        pages,
        SystemClock(),
        authentication=connection,
        authorization=connection,
        decisions=decisions,
    )


@contextmanager
def serving(server: SecureServer) -> Iterator[str]:
    server.start()
    try:
        yield f"https://127.0.0.1:{server.port}"
    finally:
        server.stop()


@pytest.fixture
async def cluster() -> AsyncIterator[Connection]:
    embedded = EmbeddedApiServer()
    await embedded.start()
    yield Connection(server=embedded.url, source="the test", ca_data=embedded.ca_pem.encode(), token=embedded.token)
    await embedded.stop()


def trusting() -> ssl.SSLContext:
    """The server's certificate is not checked."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


async def fetch(
    url: str,
    token: str | None = None,
    method: str = "GET",
    *,
    tls: ssl.SSLContext | None = None,
    headers: Mapping[str, str] | None = None,
    data: str | None = None,
) -> tuple[int, str]:
    shown = {"Authorization": f"Bearer {token}"} if token else {}
    async with (
        aiohttp.ClientSession() as session,
        session.request(
            method, url, ssl=tls or trusting(), headers={**shown, **(headers or {})}, data=data
        ) as response,
    ):
        return response.status, await response.text()


def status(code: int, reason: str, message: str, **more: object) -> str:
    """As the API machinery writes it."""
    failure = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message}
    return json.dumps(failure | {"reason": reason, **more, "code": code}, separators=(",", ":")) + "\n"


async def test_probes_need_no_credentials_and_everything_else_does(cluster):
    with serving(a_server(cluster)) as url:
        assert await fetch(f"{url}/healthz") == (200, "ok")
        assert await fetch(f"{url}/livez?verbose") == (200, "[+]ping ok\nlivez check passed\n")
        assert (await fetch(f"{url}/readyz"))[0] == 500
        assert await fetch(f"{url}/metrics") == (
            403,
            status(403, "Forbidden", 'forbidden: User "system:anonymous" cannot get path "/metrics"', details={}),
        )
        assert await fetch(f"{url}/metrics", "wrong") == (401, status(401, "Unauthorized", "Unauthorized"))
        assert await fetch(f"{url}/metrics", cluster.token) == (200, "up 1\n")
        assert await fetch(f"{url}/readyz/sync", cluster.token) == (500, "internal server error: not yet\n")


@pytest.mark.parametrize("path", ["/", "/secret", "/metrics/other", "/metrics/", "/healthz/moon", "/readyz/sync/x"])
async def test_what_is_not_there_is_not_distinguished_without_rights(cluster, path):
    with serving(a_server(cluster)) as url:
        assert (await fetch(url + path))[0] == 403
        assert (await fetch(url + path, cluster.token))[0] == 404


async def test_a_page_that_fails_fails_alone(cluster):
    with serving(a_server(cluster)) as url:
        assert await fetch(f"{url}/broken", cluster.token) == (500, "internal server error\n")
        assert await fetch(f"{url}/metrics", cluster.token) == (200, "up 1\n")


async def test_only_reading_is_served(cluster):
    with serving(a_server(cluster)) as url:
        assert (await fetch(f"{url}/metrics", cluster.token, "POST"))[0] == 405


def test_a_busy_main_thread_costs_no_response():
    """The thread that sends the request is not ours: ours does nothing but wait for it."""
    responses = []
    with serving(a_server()) as url:

        def probe_once() -> None:
            host, port = url.removeprefix("https://").split(":")
            with (
                socket.create_connection((host, int(port))) as plain,
                trusting().wrap_socket(plain) as secured,
            ):
                secured.sendall(b"GET /healthz HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n")
                responses.append(secured.recv(4096).split(b"\r\n")[0])

        probe = threading.Thread(target=probe_once)
        probe.start()
        probe.join()
    assert responses == [b"HTTP/1.1 200 OK"]


def test_a_port_in_use_is_named():
    with serving(a_server()) as url:
        port = int(url.rpartition(":")[2])
        with pytest.raises(OperatorMistake, match=rf"(?s)--secure-port.*127.0.0.1:{port} is in use already"):
            a_server(port=port).start()


def a_pair(folder: Path) -> tuple[Path, Path]:
    made = make_identity(["localhost", "127.0.0.1"], "a test")
    certificate, key = folder / "server.crt", folder / "server.key"
    certificate.write_text(made.certificate_pem)
    key.write_text(made.key_pem)
    return certificate, key


async def test_a_given_certificate_is_served(tmp_path):
    certificate, key = a_pair(tmp_path)
    tls = TlsOptions(cert_file=str(certificate), key_file=str(key))
    with serving(a_server(tls=tls)) as url:
        checking = ssl.create_default_context(cafile=str(certificate))
        checking.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
        assert await fetch(f"{url}/healthz", tls=checking) == (200, "ok")


async def test_a_certificate_folder_is_filled_once(tmp_path):
    tls = TlsOptions(cert_dir=str(tmp_path / "made"))
    for _ in range(2):
        with serving(a_server(tls=tls)) as url:
            assert await fetch(f"{url}/healthz") == (200, "ok")
    made = tmp_path / "made"
    assert sorted(file.name for file in made.iterdir()) == ["kube-scheduler.crt", "kube-scheduler.key"]
    assert (made / "kube-scheduler.key").stat().st_mode & 0o777 == 0o600


WRONG = {
    "a certificate that is not there": (
        {"tls": TlsOptions(cert_file="no.crt", key_file="no.key")},
        r"--tls-cert-file.*no.crt cannot be read: No such file",
    ),
    "a certificate without its key": (
        {"tls": TlsOptions(cert_file="server.crt")},
        r"--tls-private-key-file.*must be given too",
    ),
    "words instead of a certificate": (
        {"tls": TlsOptions(cert_file="words", key_file="words")},
        r"--tls-cert-file.*words holds no certificate in PEM",
    ),
    "words instead of a key": (
        {"tls": TlsOptions(cert_file="server.crt", key_file="words")},
        r"--tls-private-key-file.*words holds no private key in PEM",
    ),
    "the two files the wrong way round": (
        {"tls": TlsOptions(cert_file="server.key", key_file="server.crt")},
        r"--tls-cert-file.*server.key holds a key, and no certificate",
    ),
    "a key of another certificate": (
        {"tls": TlsOptions(cert_file="server.crt", key_file="other.key")},
        r"--tls-cert-file.*the key in other.key is not that of the certificate in server.crt",
    ),
    "a key with a password": (
        {"tls": TlsOptions(cert_file="server.crt", key_file="locked.key")},
        r"--tls-private-key-file.*locked.key is protected by a password",
    ),
    "a version of nothing": (
        {"tls": TlsOptions(settings=TlsSettings("TLS9"))},
        r'--tls-min-version.*must be one of VersionTLS10.*got "TLS9"',
    ),
    "an unknown cipher suite": (
        {"tls": TlsOptions(settings=TlsSettings(cipher_suites=("ROT13",)))},
        r'--tls-cipher-suites.*"ROT13" is not a cipher suite',
    ),
    "a cipher suite that is gone": (
        {"tls": TlsOptions(settings=TlsSettings(cipher_suites=("TLS_RSA_WITH_RC4_128_SHA",)))},
        r"--tls-cipher-suites.*supports none of TLS_RSA_WITH_RC4_128_SHA",
    ),
    "an unknown curve": (
        {"tls": TlsOptions(settings=TlsSettings(curves=(4588,)))},
        r"--tls-curve-preferences.*none of these can be used",
    ),
    "a curve out of range": (
        {"tls": TlsOptions(settings=TlsSettings(curves=(99999,)))},
        r"--tls-curve-preferences.*out of range",
    ),
    "words instead of an authority": (
        {"authorities": AuthorityOptions(client_ca_file="words")},
        r"--client-ca-file.*words holds no certificate in PEM",
    ),
    "an authority that is not there": (
        {"authorities": AuthorityOptions(requestheader_client_ca_file="nowhere")},
        r"--requestheader-client-ca-file.*nowhere cannot be read",
    ),
    "a folder that cannot be made": (
        {"tls": TlsOptions(cert_dir="words/below")},
        r"--cert-dir.*no certificate can be written",
    ),
    "an address of another machine": ({"bind_address": "192.0.2.1"}, r"--bind-address.*192.0.2.1:0 is not an address"),
}


@pytest.mark.parametrize(("options", "logged"), WRONG.values(), ids=WRONG.keys())
def test_what_cannot_be_served_with_is_named(tmp_path, monkeypatch, options, logged):
    monkeypatch.chdir(tmp_path)
    pair = an_authority("a test").issue("server", hosts=["localhost"])
    pair.write(tmp_path, "server")
    pair.write(tmp_path, "locked", password=b"secret")
    an_authority("a test").write(tmp_path, "other")
    Path("words").write_text("hello")
    with pytest.raises(OperatorMistake, match=f"(?s){logged}"):
        a_server(**options).start()


async def test_a_cluster_whose_authority_cannot_be_read_stops_only_those_that_configure_it():
    nowhere = Connection(server="https://127.0.0.1:1", source="the test", token="t")
    with serving(a_server(nowhere, authorities=AuthorityOptions())) as url:
        assert await fetch(f"{url}/healthz") == (200, "ok")
    strict = a_server(nowhere, authorities=AuthorityOptions(tolerate_lookup_failure=False))
    with pytest.raises(Fault, match="extension-apiserver-authentication-reader"):
        strict.start()


async def test_without_a_cluster_only_probes_are_served(capfd):
    with serving(a_server()) as url:
        assert await fetch(f"{url}/healthz") == (200, "ok")
        assert (await fetch(f"{url}/metrics", "a token"))[0] == 403
    assert 'openToAll="/healthz,/readyz,/livez"' in capfd.readouterr().err
    with serving(a_server(always_allowed=("/healthz", "/metrics"))) as url:
        assert (await fetch(f"{url}/metrics"))[0] == 200
    assert 'openToAll="/healthz,/metrics"' in capfd.readouterr().err


async def test_a_long_token_is_read(cluster):
    with serving(a_server(cluster)) as url:
        assert (await fetch(f"{url}/metrics", "x" * 20_000))[0] == 401


@pytest.mark.parametrize(
    ("sent", "response", "line"),
    [
        (b"GET metrics HTTP/1.1\r\n\r\n", b"400 Bad Request", "Malformed HTTP request"),
        (b"GET / HTTP/1.1\r\nA: " + b"secret" * 20_000, b" 431 Request Header", "Request refused: too large"),
    ],
)
async def test_what_is_no_http_makes_one_short_line_at_verbosity_2(monkeypatch, capfd, sent, response, line):
    for verbosity, lines in ((0, 0), (2, 1)):
        monkeypatch.setattr(log.settings(), "verbosity", verbosity)
        with serving(a_server()) as url:
            port = int(url.rpartition(":")[2])
            reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=trusting())
            writer.write(sent)
            assert response in await reader.read()
            writer.close()
        logged = capfd.readouterr().err
        assert logged.count(f'"{line}" srcIP="127.0.0.1"') == lines
        assert "Traceback" not in logged
        assert "secret" not in logged


async def test_client_certificates_are_distinguished_by_their_authority(tmp_path):
    clients, front = an_authority("clients"), an_authority("front")
    (tmp_path / "clients.pem").write_text(clients.pem)
    (tmp_path / "front.pem").write_text(front.pem)
    authorities = AuthorityOptions(
        client_ca_file=str(tmp_path / "clients.pem"), requestheader_client_ca_file=str(tmp_path / "front.pem")
    )
    root = clients.issue("root", ["system:masters"]).client_context(tmp_path)
    bob = clients.issue("bob").client_context(tmp_path)
    proxy = front.issue("proxy", ["system:masters"]).client_context(tmp_path)
    foreigner = an_authority("others").issue("root", ["system:masters"]).client_context(tmp_path)
    as_root = {"X-Remote-User": "root", "X-Remote-Group": "system:masters"}
    with serving(a_server(authorities=authorities)) as url:
        assert await fetch(f"{url}/metrics", tls=root) == (200, "up 1\n")
        assert (await fetch(f"{url}/metrics", tls=bob))[0] == 403
        assert (await fetch(f"{url}/metrics", tls=bob, headers=as_root))[0] == 403
        assert (await fetch(f"{url}/metrics", tls=proxy))[0] == 401
        assert await fetch(f"{url}/metrics", tls=proxy, headers=as_root) == (200, "up 1\n")
        assert (await fetch(f"{url}/metrics", headers=as_root))[0] == 403
        with pytest.raises(aiohttp.ClientError):
            await fetch(f"{url}/metrics", tls=foreigner)


JSON_FLAGZ = "application/json;v=v1beta1;g=config.k8s.io;as=Flagz"


async def test_flags_and_status_are_served_to_people_and_to_programs(cluster):
    with serving(a_server(cluster)) as url:
        reported = (await fetch(f"{url}/flagz", cluster.token))[1]
        assert reported.startswith("\nkube-scheduler flagz\nWarning: ")
        assert reported.endswith("\nconfig:c.yaml\nv:0\n")
        code, reported = await fetch(f"{url}/flagz", cluster.token, headers={"Accept": JSON_FLAGZ})
        assert (code, json.loads(reported)["flags"]) == (200, {"config": "c.yaml", "v": "0"})
        code, reported = await fetch(f"{url}/flagz", cluster.token, headers={"Accept": "application/json"})
        assert (code, json.loads(reported)["reason"]) == (406, "NotAcceptable")
        reported = (await fetch(f"{url}/statusz", cluster.token))[1]
        assert "\nBinary version: 9.9\nEmulation version: 1.36\nPaths: /flagz /metrics\n" in reported
        as_yaml = JSON_FLAGZ.replace("json", "yaml").replace("Flagz", "Statusz")
        reported = (await fetch(f"{url}/statusz", cluster.token, headers={"Accept": as_yaml}))[1]
        assert yaml.safe_load(reported)["binaryVersion"] == "9.9"


async def test_the_verbosity_can_be_set_by_those_who_may(cluster):
    path = "/debug/flags/v"
    try:
        with serving(a_server(cluster, sets_verbosity=True)) as url:
            assert (await fetch(url + path, None, "PUT", data="4"))[0] == 403
            assert log.settings().verbosity == 0
            assert await fetch(url + path, cluster.token, "PUT", data="4") == (
                200,
                "successfully set klog.logging.verbosity to 4\n",
            )
            assert log.settings().verbosity == 4
            assert (await fetch(url + path, cluster.token, "PUT", data="high"))[0] == 400
            assert (await fetch(url + path, cluster.token))[0] == 406
        with serving(a_server(cluster)) as url:
            assert (await fetch(url + path, cluster.token, "PUT", data="4"))[0] == 404
    finally:
        log.configure(verbosity=0)


async def test_all_addresses_means_both_families():
    with serving(a_server(bind_address="0.0.0.0")) as url:
        port = url.rpartition(":")[2]
        assert await fetch(f"https://127.0.0.1:{port}/healthz") == (200, "ok")
        if socket.has_dualstack_ipv6():
            assert await fetch(f"https://[::1]:{port}/healthz") == (200, "ok")


async def test_a_port_can_be_shared_where_both_want_to():
    with serving(a_server(share_port=True)) as url:
        with serving(a_server(port=int(url.rpartition(":")[2]), share_port=True)) as shared_url:
            assert shared_url == url
            assert (await fetch(f"{url}/healthz"))[0] == 200
        assert (await fetch(f"{url}/healthz"))[0] == 200


async def test_people_get_line_breaks():
    with serving(a_server()) as url:
        one_line = (await fetch(f"{url}/metrics"))[1]
        assert one_line.count("\n") == 1
        for reported in (
            await fetch(f"{url}/metrics", headers={"User-Agent": "curl/8"}),
            await fetch(f"{url}/metrics?pretty=true"),
        ):
            assert json.dumps(json.loads(one_line), indent=2) == reported[1]


TRICKS = [
    "/metrics",
    "//metrics",
    "/metrics/",
    "/./metrics",
    "/healthz/../metrics",
    "/healthz/%2e%2e/metrics",
    "/healthz%2f..%2fmetrics",
    "/healthz/..;/metrics",
    "/healthz?/../metrics",
    "/healthz#/../metrics",
    "/metrics%00/healthz",
    "/metrics?x=/healthz",
    "/%6detrics",
    "https://127.0.0.1/metrics",
    "https://127.0.0.1/healthz/../metrics",
    "*",
    "metrics",
]


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "OPTIONS", "INVALID"])
@pytest.mark.parametrize("target", TRICKS)
def test_no_kind_of_request_gets_a_byte_without_the_right(server_of_secrets, target, method):
    host, port = server_of_secrets
    with socket.create_connection((host, port)) as plain, trusting().wrap_socket(plain) as secured:
        secured.sendall(f"{method} {target} HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n".encode())
        response = b"".join(iter(lambda: secured.recv(4096), b""))
    assert b"up 1" not in response
    is_a_probe = target.startswith(("/healthz?", "/healthz#"))
    assert response.split(b" ")[1] in ((b"200",) if is_a_probe and b"200" in response else (b"400", b"403"))


@pytest.fixture(scope="module")
def server_of_secrets() -> Iterator[tuple[str, int]]:
    with serving(a_server()) as url:
        host, _, port = url.removeprefix("https://").partition(":")
        yield host, int(port)


async def test_authorities_and_certificates_are_read_again_while_serving(tmp_path, monkeypatch):
    monkeypatch.setattr(server_module, "REFRESH_SECONDS", 0.01)
    one, other = an_authority("one"), an_authority("other")
    file = tmp_path / "clients.pem"
    file.write_text(one.pem)
    root = other.issue("root", ["system:masters"]).client_context(tmp_path)
    with serving(a_server(authorities=AuthorityOptions(client_ca_file=str(file)))) as url:
        with pytest.raises(aiohttp.ClientError):
            await fetch(f"{url}/metrics", tls=root)
        file.write_text("hello")
        file.write_text(other.pem)
        for _ in range(1000):
            with contextlib.suppress(aiohttp.ClientError):
                if (await fetch(f"{url}/metrics", tls=root))[0] == 200:
                    break
        else:
            pytest.fail("the new authority is not trusted")


async def test_an_api_server_that_does_not_respond_is_not_waited_for_for_ever(monkeypatch):
    class Silent:
        async def create(self, kind: object, document: object) -> dict[str, Any]:
            await asyncio.Event().wait()
            raise AssertionError

    monkeypatch.setattr(reviews, "LONGEST_SECONDS", 0.01)
    with pytest.raises(Fault, match=r"no response to a TokenReview within 0.01 s"):
        await reviews.ClusterReviews(Silent()).user_of("token")


async def explained(request: dict[str, Any]) -> dict[str, Any]:
    known: dict[str, dict[str, Any]] = {
        "shop/web": {"found": True, "decision": {"node": "one"}},
        "shop/busy": {"heldUp": None},
    }
    return known.get(request["explain"], {"found": False, "profiles": ["default-scheduler"], "gating": None})


DECISIONS = {
    "a pod that was decided": ("/explain/shop/web", 200, '"node":"one"'),
    "a pod that was not": ("/explain/shop/other", 404, "there is no decision about pod shop/other in memory"),
    "no pod": ("/explain/shop", 404, "name a pod: /explain/NAMESPACE/POD"),
    "more than a pod": ("/explain/shop/web/x", 404, "name a pod"),
    "a scheduler that is blocked": ("/explain/shop/busy", 503, "the scheduler is busy"),
}


@pytest.mark.parametrize(("path", "code", "body"), DECISIONS.values(), ids=DECISIONS.keys())
async def test_decisions_are_served_to_those_who_may_read_them(cluster, path, code, body):
    with serving(a_server(cluster, decisions=DecisionPage("/explain/", explained))) as url:
        assert (await fetch(f"{url}{path}"))[0] == 403
        found, text = await fetch(f"{url}{path}", cluster.token)
        assert (found, body in text) == (code, True), text
        assert (await fetch(f"{url}{path}", cluster.token, "POST"))[0] == 405
