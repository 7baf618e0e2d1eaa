"""The doctor reads the sources of node loads once, and compares them with the nodes."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from tests.deploy.configurations import a_file

from mooring.base.clock import timestamp
from mooring.base.documents import written
from mooring.config import load_configuration
from mooring.doctor import PlannedScheduler
from mooring.doctor.findings import CheckStatus

PATH = "/apis/metrics.k8s.io/v1beta1/nodes"


def with_loads(plan: PlannedScheduler, **arguments: Any) -> PlannedScheduler:
    file = a_file(enabled=["TargetLoadPacking"])
    file["profiles"][0]["pluginConfig"] = [{"name": "TargetLoadPacking", "args": arguments}]
    loaded = load_configuration(written(file), source="test.yaml", registry=plan.registry)
    return replace(plan, configuration=loaded.configuration)


def a_cluster_with(cluster: Any, clock: Any, *measured: str, age: float = 0.0) -> None:
    """Nodes one and two, and measurements of these."""
    respond = cluster._document
    status = {"capacity": {"cpu": "4", "memory": "8Gi"}}
    nodes = [{"metadata": {"name": name}, "status": status} for name in ("one", "two")]
    stamp = timestamp(clock.now() - age)
    items = [{"metadata": {"name": name}, "timestamp": stamp, "usage": {"cpu": "1"}} for name in measured]

    async def document(request: Any) -> Any:
        if request.path == "/api/v1/nodes":
            return {"items": nodes, "metadata": {}}
        return {"items": items} if request.path == PATH and measured else await respond(request)

    cluster._document = document


async def test_a_source_that_knows_all_nodes_is_well(cluster, clock, plan, findings):
    a_cluster_with(cluster, clock, "one", "two")
    (found,) = await findings("loads", with_loads(plan))
    assert found.verdict is CheckStatus.GOOD
    assert found.message == "TargetLoadPacking: the metrics API of the cluster has loads of 2 of 2 nodes"


async def test_nodes_without_loads_are_named(cluster, clock, plan, findings):
    a_cluster_with(cluster, clock, "one", "three")
    (found,) = await findings("loads", with_loads(plan))
    assert found.verdict is CheckStatus.NOTICE
    assert "loads of 1 of 2 nodes; none of two; 2 of nodes that do not exist, such as three" in found.message


async def test_a_cluster_without_a_metrics_api_is_bad(cluster, clock, plan, findings):
    a_cluster_with(cluster, clock)
    (found,) = await findings("loads", with_loads(plan))
    assert found.verdict is CheckStatus.BAD
    assert "install metrics-server" in json.dumps(found.document())


async def test_a_watcher_that_cannot_be_reached_is_bad(cluster, clock, plan, findings, unused_tcp_port):
    a_cluster_with(cluster, clock, "one")
    (found,) = await findings("loads", with_loads(plan, watcherAddress=f"http://127.0.0.1:{unused_tcp_port}"))
    assert found.verdict is CheckStatus.BAD
    assert f"http://127.0.0.1:{unused_tcp_port} cannot be reached" in found.message


async def test_without_load_aware_plugins_nothing_is_checked(findings):
    assert await findings("loads") == []
