"""What nodes use, read from the metrics API of the cluster."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from mooring.apiserver import EmbeddedApiServer
from mooring.base.errors import Fault
from mooring.client import ApiClient, Connection
from mooring.framework.resource_metrics import NodeUse, node_uses
from mooring.scheduler.plugin_runtime.resource_metrics_service import ApiResourceMetrics

STAMP = "2026-11-18T09:00:00Z"


def measured(name: str, **more: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "timestamp": STAMP, "usage": {"cpu": "250000000n", "memory": "1024Ki"}} | more


class Source:
    def node_metrics(self, name: str = "") -> list[dict[str, Any]]:
        return [measured("one"), measured("bad", usage={"cpu": "much"}), measured("timeless", timestamp="")]

    def pod_metrics(self, namespace: str = "", name: str = "") -> list[dict[str, Any]]:
        return []


@pytest.fixture
async def server() -> AsyncIterator[EmbeddedApiServer]:
    running = EmbeddedApiServer()
    await running.start()
    yield running
    await running.stop()


@pytest.fixture
async def metrics(server: EmbeddedApiServer) -> AsyncIterator[ApiResourceMetrics]:
    connection = Connection(server=server.url, source="test", token=server.token, ca_data=server.ca_pem.encode())
    async with ApiClient(connection) as client:
        yield ApiResourceMetrics(client)


async def test_what_can_be_read_is_returned(server: EmbeddedApiServer, metrics: ApiResourceMetrics):
    server.serve_metrics(Source())
    assert list(await metrics.nodes()) == [NodeUse("one", 250, 2**20, 1794992400.0)]


async def test_a_cluster_without_a_metrics_api_is_reported(metrics: ApiResourceMetrics):
    with pytest.raises(Fault, match="the cluster has no metrics API; install metrics-server"):
        await metrics.nodes()


@pytest.mark.parametrize("body", [b"<html>", b"{}", b'{"items": 3}', b'{"items": [{"metadata": null}]}'])
def test_something_else_is_a_fault_that_names_the_server(body: bytes):
    with pytest.raises(Fault, match=r"^server returned something that is not a list of NodeMetrics"):
        node_uses(body, "server")
