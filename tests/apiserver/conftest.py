"""A server in this process on a clock that tests own, and an HTTPS client of it."""

from __future__ import annotations

import asyncio
import io
import json
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest
from tests.apiserver.builders import PODS, a_binding, a_pod

from mooring.apiserver import EmbeddedApiServer
from mooring.base.clock import ManualClock

Document = dict[str, Any]


class Response:
    """Status code, headers and decoded body."""

    def __init__(self, code: int, headers: Any, body: Any) -> None:
        self.code, self.headers, self.body = code, headers, body

    @property
    def message(self) -> str:
        return str(self.body["message"])


class Watching:
    """Events of a watch, one by one."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self.response = response
        self._buffer = b""

    async def next(self) -> Document | None:
        """The next event; None when the server has ended the watch."""
        while b"\n" not in self._buffer:
            chunk = await self.response.content.readany()
            if not chunk:
                return None
            self._buffer += chunk
        line, _, self._buffer = self._buffer.partition(b"\n")
        event: Document = json.loads(line)
        return event

    async def seen(self, count: int) -> list[tuple[str, str]]:
        """The next events as (type, name)."""
        events = [await self.next() for _ in range(count)]
        return [(event["type"], event["object"]["metadata"]["name"]) for event in events if event is not None]


class Client:
    def __init__(self, server: EmbeddedApiServer, session: aiohttp.ClientSession) -> None:
        self.server = server
        self._session = session
        self._watches: list[aiohttp.ClientResponse] = []

    def close(self) -> None:
        for response in self._watches:
            response.close()

    async def call(self, method: str, path: str, body: Any = None, **headers: str) -> Response:
        sent = {key.replace("_", "-"): value for key, value in headers.items()}
        data: Any = None
        if body is not None:
            sent.setdefault("Content-Type", "application/json")
            data = io.BytesIO(body) if isinstance(body, bytes) else json.dumps(body)
        async with self._session.request(method, self.server.url + path, data=data, headers=sent) as response:
            raw = await response.read()
            is_json = response.content_type.startswith("application/json")
            return Response(response.status, response.headers, json.loads(raw) if is_json else raw.decode())

    async def get(self, path: str, **headers: str) -> Response:
        return await self.call("GET", path, **headers)

    async def post(self, path: str, body: Any, **headers: str) -> Response:
        return await self.call("POST", path, body, **headers)

    async def put(self, path: str, body: Any) -> Response:
        return await self.call("PUT", path, body)

    async def delete(self, path: str, body: Any = None) -> Response:
        return await self.call("DELETE", path, body)

    async def patch(self, path: str, body: Any, kind: str = "strategic-merge") -> Response:
        return await self.call("PATCH", path, body, Content_Type=f"application/{kind}-patch+json")

    async def watch(self, path: str) -> Watching:
        joint = "&" if "?" in path else "?"
        response = await self._session.get(self.server.url + path + joint + "watch=true")
        assert response.status == 200, await response.text()
        self._watches.append(response)
        return Watching(response)


async def eventually(server: EmbeddedApiServer, holds: Callable[[], bool]) -> None:
    """Wait until something holds of the stored objects, looking after every write."""
    changed = asyncio.Event()
    server.registry.store.subscribe(lambda *_: changed.set())
    async with asyncio.timeout(90):
        while not holds():
            await changed.wait()
            changed.clear()


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def store(clock: ManualClock) -> Any:
    """The server's objects without HTTP: for rules that do not need it."""
    return EmbeddedApiServer(clock=clock).store


@pytest.fixture
async def server(clock: ManualClock) -> AsyncIterator[EmbeddedApiServer]:
    running = EmbeddedApiServer(clock=clock)
    await running.start()
    yield running
    await running.stop()


@asynccontextmanager
async def connected(server: EmbeddedApiServer) -> AsyncIterator[Client]:
    """A client that trusts the server and knows its token."""
    context = ssl.create_default_context(cadata=server.ca_pem)
    headers = {"Authorization": f"Bearer {server.token}"}
    connector = aiohttp.TCPConnector(ssl=context, limit=0)
    async with aiohttp.ClientSession(connector=connector, headers=headers) as session:
        client = Client(server, session)
        yield client
        client.close()


@pytest.fixture
async def api(server: EmbeddedApiServer) -> AsyncIterator[Client]:
    async with connected(server) as client:
        yield client


async def a_running_pod(api: Client, *, ready: bool = True, **spec: Any) -> None:
    """The pod `web`, bound and started."""
    await api.post(PODS, a_pod(labels={"app": "web"}, **spec))
    await api.post(f"{PODS}/web/binding", a_binding())
    conditions = [{"type": "Ready", "status": "True" if ready else "False"}]
    await api.patch(f"{PODS}/web/status", {"status": {"phase": "Running", "conditions": conditions}})
