"""metrics.k8s.io: read only, computed by a source when it is read."""

from __future__ import annotations

from typing import Any

import pytest
from tests.apiserver.conftest import Client, eventually

PATH = "/apis/metrics.k8s.io/v1beta1"


def measured(kind: str, name: str, namespace: str = "", **labels: str) -> dict[str, Any]:
    metadata = {"name": name, "labels": labels} | ({"namespace": namespace} if namespace else {})
    usage = {"cpu": "250000000n", "memory": "1024Ki"}
    document = {"apiVersion": "metrics.k8s.io/v1beta1", "kind": kind, "metadata": metadata, "window": "15s"}
    return document | ({"containers": [{"name": "a", "usage": usage}] * 2} if namespace else {"usage": usage})


class Source:
    def node_metrics(self, name: str = "") -> list[dict[str, Any]]:
        return [measured("NodeMetrics", each, zone=each) for each in ("two", "one") if name in ("", each)]

    def pod_metrics(self, namespace: str = "", name: str = "") -> list[dict[str, Any]]:
        pods = [("shop", "web"), ("shop", "db"), ("blog", "web")]
        return [
            measured("PodMetrics", each, where)
            for where, each in pods
            if namespace in ("", where) and name in ("", each)
        ]


@pytest.fixture
def metrics(api: Client) -> Client:
    api.server.serve_metrics(Source())
    return api


def names(body: dict[str, Any]) -> list[str]:
    return [each["metadata"]["name"] for each in body["items"]]


async def test_without_a_source_the_group_is_not_served(api: Client):
    assert (await api.get(f"{PATH}/nodes")).code == 404


async def test_nodes_and_pods_are_listed_in_order(metrics: Client):
    listed = (await metrics.get(f"{PATH}/nodes")).body
    assert (listed["kind"], names(listed)) == ("NodeMetricsList", ["one", "two"])
    assert names((await metrics.get(f"{PATH}/pods")).body) == ["web", "db", "web"]
    assert names((await metrics.get(f"{PATH}/namespaces/shop/pods")).body) == ["db", "web"]


async def test_selectors_select(metrics: Client):
    assert names((await metrics.get(f"{PATH}/nodes?labelSelector=zone%3Done")).body) == ["one"]
    assert names((await metrics.get(f"{PATH}/nodes?fieldSelector=metadata.name%3Dtwo")).body) == ["two"]


async def test_one_is_read_by_its_name(metrics: Client):
    assert (await metrics.get(f"{PATH}/nodes/one")).body["usage"]["cpu"] == "250000000n"
    assert (await metrics.get(f"{PATH}/namespaces/shop/pods/db")).body["metadata"]["namespace"] == "shop"
    missing = await metrics.get(f"{PATH}/nodes/three")
    assert (missing.code, missing.message) == (404, 'nodes.metrics.k8s.io "three" not found')


async def test_a_table_has_the_columns_of_metrics_server(metrics: Client):
    table = (
        await metrics.get(f"{PATH}/namespaces/shop/pods", Accept="application/json;as=Table;v=v1;g=meta.k8s.io")
    ).body
    assert [row["cells"] for row in table["rows"]] == [
        ["db", "500000000n", "2048Ki", "15s"],
        ["web", "500000000n", "2048Ki", "15s"],
    ]


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/nodes"),
        ("PUT", "/nodes/one"),
        ("PATCH", "/nodes/one"),
        ("DELETE", "/nodes/one"),
        ("DELETE", "/nodes"),
        ("GET", "/nodes?watch=true"),
    ],
)
async def test_nothing_is_written_or_watched(metrics: Client, method: str, path: str):
    response = await metrics.call(method, PATH + path, {} if method in ("POST", "PUT", "PATCH") else None)
    assert response.code == 405


async def test_discovery_has_it(metrics: Client):
    listed = (await metrics.get(PATH)).body["resources"]
    assert [(each["name"], each["kind"], each["verbs"]) for each in listed] == [
        ("nodes", "NodeMetrics", ["get", "list"]),
        ("pods", "PodMetrics", ["get", "list"]),
    ]
    assert (await metrics.get("/openapi/v3/apis/metrics.k8s.io/v1beta1")).code == 200


async def test_a_namespace_with_measured_pods_can_be_deleted(metrics: Client):
    await metrics.post("/api/v1/namespaces", {"metadata": {"name": "shop"}})
    assert (await metrics.delete("/api/v1/namespaces/shop")).code == 200
    await eventually(metrics.server, lambda: metrics.server.store.get("namespaces", "shop") is None)
