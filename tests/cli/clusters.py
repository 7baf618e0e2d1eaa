"""An embedded API server in the test's process, for schedulers that run in processes of their own."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Collection

from tests.cli.programs import PATIENCE_SECONDS

from mooring.apiserver import EmbeddedApiServer
from mooring.client import ApiClient, Connection, Reflector
from mooring.objects import Node, Pod
from mooring.objects.object_store import Present


class Placed:
    """Where each pod is; wakes the waiters for one."""

    def __init__(self) -> None:
        self.nodes: dict[str, str] = {}
        self._refused: set[str] = set()
        self._deleted: set[str] = set()
        self._changed = asyncio.Event()

    def found(self, pod: Pod) -> None:
        self.changed(pod)

    def listed(self, present: Present) -> None: ...

    def changed(self, pod: Pod) -> None:
        self.nodes[pod.name] = pod.spec.node_name
        if (condition := pod.condition("PodScheduled")) is not None and condition.status == "False":
            self._refused.add(pod.name)
        self._changed.set()

    def deleted(self, pod: Pod) -> None:
        self._deleted.add(pod.name)
        self.changed(pod)

    async def without(self, pods: Collection[str]) -> None:
        """Until all of these are deleted."""
        await self._until(lambda: self._deleted.issuperset(pods))

    async def refused(self, pods: Collection[str]) -> None:
        """Until each of these has been refused once."""
        await self._until(lambda: self._refused.issuperset(pods))

    async def on(self, pod: str) -> str:
        await self._until(lambda: bool(self.nodes.get(pod)))
        return self.nodes[pod]

    async def _until(self, holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not holds():
                self._changed.clear()
                await self._changed.wait()


@contextlib.asynccontextmanager
async def a_server(
    features: Collection[str] = (),
) -> AsyncIterator[tuple[EmbeddedApiServer, ApiClient, Placed]]:
    """`features`: the feature gates that are on."""
    server = EmbeddedApiServer(features=features)
    await server.start()
    direct = Connection(server=server.url, source="the test", ca_data=server.ca_pem.encode(), token=server.token)
    async with ApiClient(direct) as client:
        placed = Placed()
        watching = asyncio.create_task(Reflector(client, Pod, placed).run())
        yield server, client, placed
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)
    await server.stop()


async def create_node(client: ApiClient, name: str) -> None:
    resources = {"cpu": "4", "memory": "8Gi", "pods": "110"}
    await client.create(Node.KIND, {"metadata": {"name": name}, "status": {"allocatable": resources}})


async def create_pod(client: ApiClient, name: str) -> None:
    spec = {"containers": [{"name": "main", "image": "pause"}]}
    await client.create(Pod.KIND, {"metadata": {"name": name}, "spec": spec}, "default")
