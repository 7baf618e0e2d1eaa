"""Every request is reported to the observer that counts them."""

from __future__ import annotations

import contextlib

import pytest

from mooring.apiserver import EmbeddedApiServer
from mooring.base.errors import ApiError, Unreachable
from mooring.client import ApiClient, Connection
from mooring.objects import Pod


class Observed:
    """A `RequestObserver` that records its calls."""

    def __init__(self) -> None:
        self.responses: list[tuple[str, str, str]] = []
        self.sent: list[int] = []
        self.sizes: list[int] = []
        self.waits: list[float] = []

    def responded(self, method: str, host: str, code: str, seconds: float, sent: int, /) -> None:
        assert seconds >= 0
        self.responses.append((method, host, code))
        self.sent.append(sent)

    def received(self, method: str, host: str, size: int, /) -> None:
        self.sizes.append(size)

    def held_back(self, method: str, host: str, seconds: float, /) -> None:
        self.waits.append(seconds)


async def test_responses_and_refusals_are_reported():
    server = EmbeddedApiServer()
    await server.start()
    connection = Connection(server=server.url, source="the test", ca_data=server.ca_pem.encode(), token=server.token)
    host = server.url.removeprefix("https://")
    try:
        observed = Observed()
        async with ApiClient(connection, qps=1000, burst=10, observer=observed) as client:
            body = {"metadata": {"name": "web"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
            await client.create(Pod.KIND, body, "default")
            with contextlib.suppress(ApiError):
                await client.get(Pod.KIND, "missing", "default")
            async with client.beside("events") as other:
                await other.get(Pod.KIND, "web", "default")
    finally:
        await server.stop()
    assert observed.responses == [("POST", host, "201"), ("GET", host, "404"), ("GET", host, "200")]
    assert observed.sent[0] > 50
    assert observed.sent[1:] == [0, 0]
    assert all(size > 0 for size in observed.sizes)
    assert observed.waits == [0.0, 0.0, 0.0]


async def test_a_server_that_is_not_there_is_reported():
    observed = Observed()
    async with ApiClient(Connection(server="http://127.0.0.1:9", source="the test"), observer=observed) as client:
        with pytest.raises(Unreachable):
            await client.get(Pod.KIND, "web", "default")
    assert observed.responses == [("GET", "127.0.0.1:9", "<error>")]
