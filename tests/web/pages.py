"""A served page on a small cluster, and a client that sends its token."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

from aiohttp import ClientResponse, ClientSession
from tests.why.clusters import recomputing

from mooring.framework import Pod
from mooring.objects import Node
from mooring.objects.core import Taint
from mooring.objects.meta import KubeObject
from mooring.plugins.catalogue import catalogue
from mooring.testing import a_node_object, a_pod
from mooring.web.access import OperatorAccess, PageAccess
from mooring.web.api import Api
from mooring.web.mirror import Mirror, file_mirror
from mooring.web.server import WebOptions, WebServer

GPU = Taint(key="gpu", value="true", effect="NoSchedule")
NODES = [
    a_node_object("node-1", cpu="2", memory="4Gi", labels={"topology.kubernetes.io/zone": "a"}),
    a_node_object("node-2", cpu="4", memory="8Gi", labels={"topology.kubernetes.io/zone": "b"}, taints=[GPU]),
]
PODS = [
    a_pod("web-0", namespace="shop", cpu="1500m", memory="1Gi", node="node-1"),
    a_pod("web-1", namespace="shop", cpu="1", memory="1Gi"),
    a_pod("web-2", namespace="shop", cpu="1", memory="1Gi", priority=5),
    a_pod("train", namespace="lab", cpu="64", node_selector={"disk": "ssd"}),
]


class Page(NamedTuple):
    """A client of the page."""

    session: ClientSession
    url: str
    token: str
    server: WebServer
    api: Api

    async def get(self, path: str, status: int = 200, **headers: str) -> Any:
        """The JSON of a path of the API."""
        async with self.session.get(f"{self.url}api/v1/{path}", headers=self.headers | headers) as response:
            assert response.status == status, await response.text()
            return await response.json()

    async def post(self, path: str, document: Any, status: int = 200) -> Any:
        async with self.session.post(f"{self.url}api/v1/{path}", json=document, headers=self.headers) as response:
            assert response.status == status, await response.text()
            return await response.json()

    @contextlib.asynccontextmanager
    async def raw(self, path: str, method: str = "GET", **options: Any) -> AsyncIterator[ClientResponse]:
        """Without a token."""
        async with self.session.request(method, f"{self.url}{path}", **options) as response:
            yield response

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}"}


@contextlib.contextmanager
def mirrored(
    nodes: Sequence[Node] = NODES,
    pods: Sequence[Pod] = PODS,
    configuration: str = "",
    objects: Sequence[KubeObject] = (),
) -> Iterator[Mirror]:
    """Of a file. Entered on another thread: the recomputation runs an event loop of its own."""
    recomputing_them = recomputing(nodes, pods, configuration, objects)
    with ThreadPoolExecutor(1) as other_thread:
        recomputation = other_thread.submit(recomputing_them.__enter__).result()
        try:
            yield file_mirror("test.yaml", "file", recomputation, catalogue())
        finally:
            other_thread.submit(recomputing_them.__exit__, None, None, None).result()


@contextlib.asynccontextmanager
async def served(
    mirror: Mirror, options: WebOptions | None = None, access: PageAccess | None = None, **of_api: Any
) -> AsyncIterator[Page]:
    operator = OperatorAccess()
    api = Api(mirror, **of_api)
    server = WebServer(api, access or operator, options or WebOptions())
    async with server.serving(), ClientSession() as session:
        yield Page(session, server.url, operator.token, server, api)
