"""Where loads come from, and that decisions never wait: fresh or not is visible, stale loads are dropped."""

from __future__ import annotations

import pytest

from mooring.base.clock import timestamp
from mooring.framework import HttpResponse
from mooring.objects import ObjectMeta
from mooring.plugins.community.trimaran import LoadVariationRiskBalancing
from mooring.plugins.community.trimaran.load_collector import STALE_SECONDS
from mooring.plugins.community.trimaran.load_sources import MeasuredNode, MeasuredNodeStatus
from mooring.plugins.community.trimaran.loads import LoadMeasurement, Loads
from mooring.testing import Services, a_plugin

WATCHER = "http://load-watcher.example/watcher"
PLUGIN = {"plugin": "LoadVariationRiskBalancing"}


def report(end, **nodes):
    metrics = {name: {"metrics": [{"type": "CPU", "operator": "AVG", "value": load}]} for name, load in nodes.items()}
    return {"window": {"end": int(end)}, "data": {"NodeMetricsMap": metrics}}


async def started(services, **arguments):
    plugin = a_plugin(LoadVariationRiskBalancing, services, **arguments)
    await plugin.start()
    await services.background.step()
    return services.published(Loads).latest


async def from_watcher(services, response, **arguments):
    services.http.responses[WATCHER] = response
    return await started(services, watcher_address="http://load-watcher.example", **arguments)


async def test_a_load_watcher_is_read():
    services = Services()
    loads = await from_watcher(services, report(services.clock.now(), one=30.0))
    assert loads.nodes == {"one": (LoadMeasurement("CPU", "AVG", 30.0),)}
    assert services.metrics.value("load_source_up", **PLUGIN) == 1
    assert services.metrics.value("load_nodes", **PLUGIN) == 1


BAD = {
    "an error": HttpResponse(500, b"oops"),
    "no JSON": HttpResponse(200, b"<html>"),
    "another document": {"kind": "Status"},
    "no nodes": {"data": {}},
    "stale measurements": report(0, one=30.0),
}


@pytest.mark.parametrize("response", BAD.values(), ids=BAD.keys())
async def test_a_bad_response_is_reported_once_and_every_node_counts_alike(response):
    services = Services()
    assert await from_watcher(services, response) is None
    await services.background.step()
    assert services.metrics.value("load_source_up", **PLUGIN) == 0
    assert services.metrics.value("load_refreshes_total", result="failure", **PLUGIN) == 2
    warnings = [message for severity, message, _ in services.log.lines if severity == "W"]
    assert "Node loads cannot be fetched; every node counts alike" in services.log.messages
    assert len(warnings) <= 2


def latest(services: Services) -> Loads:
    found = services.published(Loads).latest
    assert found is not None
    return found


async def test_the_last_loads_count_until_they_are_stale():
    services = Services()
    await from_watcher(services, report(services.clock.now(), one=30.0))
    services.http.responses[WATCHER] = HttpResponse(500, b"")
    await services.background.step()
    assert latest(services).nodes
    services.clock.advance(STALE_SECONDS + 1)
    await services.background.step()
    assert latest(services).nodes == {}
    assert services.metrics.value("load_nodes", **PLUGIN) == 0
    services.http.responses[WATCHER] = report(services.clock.now(), one=40.0)
    await services.background.step()
    assert latest(services).nodes


async def test_in_scheduler_plugins_they_count_for_ever():
    services = Services()
    await from_watcher(services, report(services.clock.now(), one=30.0), compatibility="scheduler-plugins")
    services.http.responses[WATCHER] = HttpResponse(500, b"")
    services.clock.advance(10 * STALE_SECONDS)
    await services.background.step()
    assert latest(services).nodes


async def test_prometheus_is_queried_for_averages_and_deviations():
    services = Services()
    url = "http://prometheus.example/api/v1/query"
    series = [{"metric": {"instance": "one:9100"}, "value": [0, "0.25"]}]
    services.http.responses[url] = {"status": "success", "data": {"result": series}}
    provider = {"type": "Prometheus", "address": "http://prometheus.example"}
    loads = await started(services, metric_provider=provider)
    assert [(each.type, each.operator, each.value) for each in loads.nodes["one"]] == [
        ("CPU", "AVG", 25.0),
        ("Memory", "AVG", 25.0),
        ("CPU", "STD", 25.0),
        ("Memory", "STD", 25.0),
    ]
    assert services.http.requests[0][1] == {"query": "avg_over_time(instance:node_cpu:ratio[15m])"}


async def test_prometheus_without_the_recording_rules_is_reported():
    services = Services()
    services.http.responses["http://prometheus.example/api/v1/query"] = {"status": "success", "data": {"result": []}}
    provider = {"type": "Prometheus", "address": "http://prometheus.example"}
    assert await started(services, metric_provider=provider) is None
    assert "recording rules" in str(services.log.lines)


async def test_the_metrics_api_is_read_as_a_share_of_capacity():
    services = Services()
    node = MeasuredNode(
        metadata=ObjectMeta(name="one"), status=MeasuredNodeStatus(capacity={"cpu": "4", "memory": "8Gi"})
    )
    services.objects(MeasuredNode).put(node)
    usage = {"cpu": "1000m", "memory": "2Gi"}
    item = {"metadata": {"name": "one"}, "usage": usage, "timestamp": timestamp(services.clock.now())}
    services.http.responses["http://127.0.0.1:8001/apis/metrics.k8s.io/v1beta1/nodes"] = {"items": [item]}
    loads = await started(services, metric_provider={"address": "http://127.0.0.1:8001"})
    assert [(each.type, each.operator, each.value) for each in loads.nodes["one"]] == [
        ("CPU", "Latest", 25.0),
        ("Memory", "Latest", 25.0),
    ]


async def test_a_token_file_that_is_missing_is_named(tmp_path):
    services = Services()
    provider = {"type": "Prometheus", "tokenFile": str(tmp_path / "none")}
    assert await started(services, metric_provider=provider) is None
    assert "token file" in str(services.log.lines)
