"""Starting, stopping and authentication."""

from __future__ import annotations

import asyncio
import stat
from pathlib import Path

import aiohttp
import pytest
import yaml
from tests.apiserver.builders import PODS, a_pod
from tests.apiserver.conftest import Client, connected

from mooring.apiserver import EmbeddedApiServer
from mooring.apiserver.storage import Watch
from mooring.base.clock import ManualClock
from mooring.base.errors import OperatorMistake


async def test_a_request_without_the_token_is_unauthorized(api: Client):
    for header in ("", "Bearer wrong", f"Basic {api.server.token}"):
        response = await api.get("/api/v1/pods", Authorization=header)
        assert (response.code, response.body["kind"], response.body["reason"]) == (401, "Status", "Unauthorized")


@pytest.mark.parametrize("path", ["/healthz", "/livez", "/readyz", "/version", "/version/"])
async def test_health_and_version_are_open(api: Client, path: str):
    assert (await api.get(path, Authorization="")).code == 200


async def test_a_client_that_does_not_know_the_authority_refuses_the_server(server: EmbeddedApiServer):
    async with aiohttp.ClientSession() as session:
        with pytest.raises(aiohttp.ClientConnectorCertificateError):
            await session.get(server.url + "/healthz")


async def test_two_servers_have_different_tokens_and_authorities():
    one, other = EmbeddedApiServer(), EmbeddedApiServer()
    assert one.token != other.token
    assert one.ca_pem != other.ca_pem


async def test_a_port_in_use_is_the_operators_mistake(server: EmbeddedApiServer):
    second = EmbeddedApiServer(port=server.port)
    with pytest.raises(OperatorMistake, match=rf"127\.0\.0\.1:{server.port} is in use.*another port"):
        await second.start()


def test_the_kubeconfig_is_for_its_owners_eyes_only(tmp_path: Path):
    server = EmbeddedApiServer(port=6443)
    file = tmp_path / "kubeconfig"
    server.write_kubeconfig(file)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    written = yaml.safe_load(file.read_text())
    assert written == server.kubeconfig()
    assert written["clusters"][0]["cluster"]["server"] == "https://127.0.0.1:6443"
    assert list(tmp_path.iterdir()) == [file]


async def test_stopping_ends_open_watches(server: EmbeddedApiServer, api: Client):
    watching = await api.watch("/api/v1/pods")
    await server.stop()
    assert await watching.next() is None
    await server.stop()


async def test_a_stopped_server_can_be_started_again_with_its_objects(server: EmbeddedApiServer, api: Client):
    await api.post(PODS, a_pod())
    await server.stop()
    await server.start()
    async with connected(server) as again:
        assert (await again.get(f"{PODS}/web")).code == 200


@pytest.mark.parametrize("turns", range(12))
async def test_stopping_waits_for_no_client_that_follows(
    clock: ManualClock, monkeypatch: pytest.MonkeyPatch, turns: int
):
    monkeypatch.setattr("mooring.apiserver.server.GRACE_SECONDS", 600.0)
    server = EmbeddedApiServer(clock=clock)
    await server.start()
    async with connected(server) as api:
        await api.watch("/api/v1/nodes")
        assert (await api.get("/api/v1/pods")).code == 200

        async def follow() -> None:
            while True:
                watching = await api.watch("/api/v1/pods")
                while await watching.next() is not None:
                    pass

        following = asyncio.create_task(follow())
        # The next watch comes over a connection that is kept alive. Stopping may meet it at any stage of its way.
        for _ in range(turns):
            await asyncio.sleep(0)
        async with asyncio.timeout(60):
            await server.stop()
        with pytest.raises((aiohttp.ClientError, AssertionError)):
            await following


async def test_a_request_while_stopping_is_refused_and_its_connection_closed(api: Client):
    handler = api.server._handler
    assert handler is not None
    handler.shut_down()
    response = await api.get("/api/v1/pods")
    assert (response.code, response.message) == (503, "the API server is shutting down")
    assert response.headers["Connection"] == "close"


class Watches(set[Watch]):
    """Sets an event when the last one is closed."""

    def __init__(self) -> None:
        super().__init__()
        self.emptied = asyncio.Event()

    def discard(self, watch: object) -> None:
        super().discard(watch)
        if not self:
            self.emptied.set()


async def test_a_watch_ends_when_its_client_goes(server: EmbeddedApiServer, api: Client):
    watches = server.registry.store.collection("pods").watches = Watches()
    watching = await api.watch("/api/v1/pods")
    assert len(watches) == 1
    watching.response.close()
    async with asyncio.timeout(90):
        await watches.emptied.wait()


async def test_a_fault_inside_is_an_internal_error_and_the_server_goes_on(api: Client, monkeypatch: pytest.MonkeyPatch):
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("something is loose")

    monkeypatch.setattr(api.server.registry, "create", broken)
    response = await api.post(PODS, a_pod())
    assert (response.code, response.body["reason"]) == (500, "InternalError")
    assert (await api.get(PODS)).code == 200


@pytest.mark.parametrize("path", ["/nothing", "/api/v2/pods", "/apis/none.test/v1/things", "/api/v1/pods/web/log"])
async def test_what_is_not_served_is_not_found(api: Client, path: str):
    response = await api.get(path)
    assert (response.code, response.message) == (404, "the server could not find the requested resource")


BAD_BODIES = {
    "no JSON": (b"{", 400),
    "not an object": (b"[]", 400),
    "nothing": (b"null", 400),
    "not text": (b'{"a": "\xff"}', 400),
    "nested too deeply": (b'{"a":' * 100_000, 400),
    "more than the limit on bodies": (b" " * (4 * 1024 * 1024), 413),
}


@pytest.mark.parametrize(("body", "code"), BAD_BODIES.values(), ids=BAD_BODIES.keys())
async def test_a_bad_body_is_refused(api: Client, body: bytes, code: int):
    response = await api.post(PODS, body)
    assert (response.code, response.body["kind"]) == (code, "Status")


@pytest.mark.parametrize(
    ("method", "query"),
    [("DELETE", "gracePeriodSeconds=soon"), ("GET", "limit=few"), ("GET", "watch=1&timeoutSeconds=x")],
)
async def test_a_bad_number_in_the_query_is_refused(api: Client, method: str, query: str):
    assert (await api.call(method, f"{PODS}?{query}")).code == 400


async def test_yaml_is_taken_too(api: Client):
    body = yaml.safe_dump(a_pod()).encode()
    assert (await api.post(PODS, body, Content_Type="application/yaml")).code == 201
    assert (await api.post(PODS, b"a: [", Content_Type="application/yaml")).code == 400
    assert (await api.post(PODS, b"x", Content_Type="application/x-tar")).code == 415
