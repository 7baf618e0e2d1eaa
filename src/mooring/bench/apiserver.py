"""What a create costs the embedded API server: pods over TLS, while watchers follow.

The server runs in a process of its own, as under `mooring up`, and reports its CPU time. Clients and watchers share
this process, so that on two cores the rate is the server's.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import ssl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection

import aiohttp
import msgspec
import uvloop

from mooring.apiserver import EmbeddedApiServer
from mooring.base.memory import keep_collector_calm

WARM_UP = 100
_PODS = "/api/v1/namespaces/default/pods"


@dataclass(frozen=True)
class ServerCost:
    """What was created, how fast, and at which price."""

    pods: int
    events_seen: int
    per_second: float
    server_micros: float
    """Millionths of a second of the server's CPU per pod."""


@dataclass(frozen=True)
class ServerAddress:
    url: str
    token: str
    ca_pem: str


def measure(pods: int, watchers: int = 3, in_flight: int = 32) -> ServerCost:
    """Create so many pods, so many at a time, until every watcher has seen them all."""
    with server() as (address, line):

        def server_cpu() -> float:
            line.send("cpu")
            return float(line.recv())

        async def main() -> ServerCost:
            async with _Load(address, watchers, in_flight) as load:
                await load.create(WARM_UP)
                began, cpu = time.perf_counter(), server_cpu()
                seen = await load.create(pods)
                took, cpu = time.perf_counter() - began, server_cpu() - cpu
            return ServerCost(pods, seen, pods / took, cpu / pods * 1e6)

        return uvloop.run(main())


class _Load:
    """The clients: some that create, some that watch."""

    def __init__(self, address: ServerAddress, watchers: int, in_flight: int) -> None:
        self._url, self._watchers, self._in_flight = address.url, watchers, in_flight
        self._connector = aiohttp.TCPConnector(ssl=ssl.create_default_context(cadata=address.ca_pem), limit=0)
        headers = {"Authorization": f"Bearer {address.token}", "Content-Type": "application/json"}
        self._session = aiohttp.ClientSession(connector=self._connector, headers=headers)
        self._watches: list[aiohttp.ClientResponse] = []
        self._created = 0

    async def __aenter__(self) -> _Load:
        for _ in range(self._watchers):
            self._watches.append(await self._session.get(f"{self._url}{_PODS}?watch=true"))
        return self

    async def __aexit__(self, *_: object) -> None:
        # Without TLS close_notify, which would outlive this loop.
        await self._connector.close(abort_ssl=True)
        for watch in self._watches:
            watch.close()
        await self._session.close()

    async def create(self, count: int) -> int:
        """Create pods, and wait until every watcher has seen them. Returns how many events they saw."""
        names = iter([f"pod-{number}" for number in range(self._created, self._created + count)])
        self._created += count
        creating = [self._create_all(names) for _ in range(self._in_flight)]
        seen = await asyncio.gather(*(_read(watch, count) for watch in self._watches), *creating)
        return sum(each for each in seen if each is not None)

    async def _create_all(self, names: Iterator[str]) -> None:
        for name in names:
            async with self._session.post(self._url + _PODS, data=_pod(name)) as response:
                await response.read()
                response.raise_for_status()


async def _read(watch: aiohttp.ClientResponse, count: int) -> int:
    seen = 0
    while seen < count:
        seen += (await watch.content.readany()).count(b"\n")
    return seen


def _pod(name: str) -> bytes:
    requests = {"cpu": "100m", "memory": "500Mi"}
    container = {"name": "main", "image": "registry.example/app:1", "resources": {"requests": requests}}
    metadata = {"name": name, "labels": {"app": "bench"}}
    return msgspec.json.encode(
        {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container]}}
    )


@contextmanager
def server() -> Iterator[tuple[ServerAddress, Connection]]:
    """A server in another process: where it is, and the pipe that reports its CPU time. It ends with the pipe."""
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=_serve, args=(theirs,), daemon=True)
    process.start()
    theirs.close()
    with ours:
        yield ours.recv(), ours
    process.join()


def _serve(line: Connection) -> None:
    async def main() -> None:
        keep_collector_calm()
        embedded = EmbeddedApiServer()
        await embedded.start()
        line.send(ServerAddress(embedded.url, embedded.token, embedded.ca_pem))
        over = asyncio.Event()

        def on_request() -> None:
            try:
                line.recv()
            except EOFError:
                over.set()
            else:
                line.send(time.process_time())

        asyncio.get_running_loop().add_reader(line.fileno(), on_request)
        await over.wait()
        asyncio.get_running_loop().remove_reader(line.fileno())
        await embedded.stop()

    uvloop.run(main())
