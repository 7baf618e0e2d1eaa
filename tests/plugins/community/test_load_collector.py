"""Where loads come from, and that decisions never wait: fresh or not is visible, stale loads are dropped."""

from __future__ import annotations

import pytest

from mooring.base.clock import timestamp
from mooring.base.errors import Fault
from mooring.framework import HttpResponse, NodeUse
from mooring.objects import ObjectMeta
from mooring.plugins.community.trimaran import LoadVariationRiskBalancing
from mooring.plugins.community.trimaran.load_checks import MOST_NODE_PROBLEMS, MOST_PER_NODE
from mooring.plugins.community.trimaran.load_sources import MeasuredNode, MeasuredNodeStatus
from mooring.plugins.community.trimaran.loads import AHEAD_SECONDS, STALE_SECONDS, LoadMeasurement, Loads
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
    "an empty map of nodes": {"data": {"NodeMetricsMap": {}}},
    "nodes without measurements": {"data": {"NodeMetricsMap": {"one": {"metrics": []}, "two": {}}}},
    "stale measurements": report(0, one=30.0),
}


@pytest.mark.parametrize("response", BAD.values(), ids=BAD.keys())
async def test_a_bad_response_is_reported_once_and_every_node_counts_alike(response):
    services = Services()
    assert (await from_watcher(services, response)).nodes == {}
    await services.background.step()
    assert services.metrics.value("load_source_up", **PLUGIN) == 0
    assert services.metrics.value("load_nodes", **PLUGIN) == 0
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
    assert (await started(services, metric_provider=provider)).nodes == {}
    assert "recording rules" in str(services.log.lines)


@pytest.mark.parametrize(("ca_file", "is_advised"), [("", True), ("ca.pem", False)])
async def test_a_certificate_that_is_not_trusted_is_reported_with_what_to_do(ca_file, is_advised):
    services = Services()
    failed = Fault("prometheus.example cannot be reached: [SSL: CERTIFICATE_VERIFY_FAILED] self-signed certificate")
    services.http.responses["https://prometheus.example/api/v1/query"] = failed
    provider = {"type": "Prometheus", "address": "https://prometheus.example", "insecureSkipVerify": True}
    assert (await started(services, metric_provider=provider | {"caFile": ca_file})).nodes == {}
    assert ("name the certificate authority in metricProvider.caFile" in str(services.log.lines)) == is_advised


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
    assert (await started(services, metric_provider=provider)).nodes == {}
    assert "token file" in str(services.log.lines)


def a_node(name: str = "one") -> MeasuredNode:
    status = MeasuredNodeStatus(capacity={"cpu": "4", "memory": "8Gi"})
    return MeasuredNode(metadata=ObjectMeta(name=name), status=status)


def in_use(services: Services, node: str = "one", *, cpu_milli: int = 1000, age: float = 0.0) -> NodeUse:
    return NodeUse(node, cpu_milli, 2 * 2**30, services.clock.now() - age)


async def test_without_an_address_the_metrics_api_of_the_cluster_is_read():
    services = Services(objects={MeasuredNode: [a_node()]})
    services.resource_metrics.used = [in_use(services)]
    loads = await started(services)
    assert loads.nodes["one"][0] == LoadMeasurement("CPU", "Latest", 25.0)
    assert services.http.requests == []
    assert services.published(Loads).about.endswith("from the metrics API of the cluster")


async def test_a_metrics_api_that_is_not_served_is_reported_once():
    services = Services(objects={MeasuredNode: [a_node()]})
    services.resource_metrics.failure = Fault("the cluster has no metrics API; install metrics-server")
    await started(services)
    await services.background.step()
    assert services.published(Loads).about.startswith("no loads: the cluster has no metrics API")
    assert services.metrics.value("load_source_up", **PLUGIN) == 0


async def test_nodes_that_were_measured_long_ago_do_not_count_and_others_do():
    services = Services(objects={MeasuredNode: [a_node("one"), a_node("two")]})
    services.resource_metrics.used = [in_use(services), in_use(services, "two", age=STALE_SECONDS + 1)]
    loads = await started(services)
    assert set(loads.nodes) == {"one"}
    assert loads.problems == "1 stale, such as two"


async def test_a_node_whose_clock_is_ahead_does_not_count_and_others_do():
    services = Services(objects={MeasuredNode: [a_node("one"), a_node("two")]})
    services.resource_metrics.used = [in_use(services), in_use(services, "two", age=-2 * AHEAD_SECONDS)]
    loads = await started(services)
    assert set(loads.nodes) == {"one"}
    assert loads.problems == "1 from the future, such as two"
    assert events(services) == [("two", "Warning", "FutureNodeLoad")]


LIES = {
    "not a number": '"NaN"',
    "infinite": '"+Inf"',
    "negative": '"-0.5"',
    "larger than any load": '"1e308"',
    "text": '"much"',
}


@pytest.mark.parametrize("value", LIES.values(), ids=LIES.keys())
async def test_an_impossible_measurement_does_not_count_and_others_do(value):
    services = Services(objects={MeasuredNode: [a_node("one"), a_node("two")]})
    url = "http://prometheus.example/api/v1/query"
    right = '{"metric":{"instance":"one"},"value":[0,"0.25"]}'
    lie = right.replace("one", "two").replace('"0.25"', value)
    body = f'{{"status":"success","data":{{"result":[{right},{lie}]}}}}'.encode()
    services.http.responses[url] = HttpResponse(200, body)
    provider = {"type": "Prometheus", "address": "http://prometheus.example"}
    loads = await started(services, metric_provider=provider)
    assert set(loads.nodes) == {"one"}
    assert loads.problems.startswith("4 impossible, such as two: CPU AVG")
    assert services.metrics.value("load_source_has_rejected_measurements", **PLUGIN) == 1
    assert "Some measurements of node loads do not count" in services.log.messages


async def test_nodes_that_do_not_exist_are_named():
    services = Services(objects={MeasuredNode: [a_node()]})
    loads = await from_watcher(services, report(services.clock.now(), one=30.0, other=40.0))
    assert set(loads.nodes) == {"one"}
    assert loads.problems == "1 of nodes that do not exist, such as other"
    await from_watcher(services, report(services.clock.now(), one=30.0))
    assert "All measurements of node loads count again" in services.log.messages


async def test_a_source_that_knows_none_of_the_nodes_has_failed():
    services = Services(objects={MeasuredNode: [a_node()]})
    assert (await from_watcher(services, report(services.clock.now(), ip_10_0_0_1=30.0))).nodes == {}
    assert "no measurement that counts: 1 of nodes that do not exist, such as ip_10_0_0_1" in str(services.log.lines)


async def test_a_source_from_the_future_has_failed():
    services = Services(objects={MeasuredNode: [a_node()]})
    assert (await from_watcher(services, report(services.clock.now() + 3600, one=30.0))).nodes == {}
    assert "check its clock" in str(services.log.lines)


async def test_a_node_with_a_thousand_measurements_has_few():
    services = Services(objects={MeasuredNode: [a_node()]})
    measured = [{"type": "CPU", "operator": "AVG", "value": 1.0}] * 1000
    content = {"window": {"end": int(services.clock.now())}, "data": {"NodeMetricsMap": {"one": {"metrics": measured}}}}
    loads = await from_watcher(services, content)
    assert len(loads.nodes["one"]) == MOST_PER_NODE


def events(services: Services) -> list[tuple[str, str, str]]:
    """Node (empty: the scheduler), type and reason."""
    return [recorded[:3] for recorded in services.problems.recorded]


FAILED, UNKNOWN = ("", "Warning", "LoadSourceFailed"), ("", "Warning", "LoadSourceHasUnknownNodes")
RECOVERED = ("", "Normal", "LoadSourceRecovered")
LIES_ABOUT_ONE = ("one", "Warning", "ImpossibleNodeLoad")
GOOD, LYING, GHOST = {"one": 30.0, "two": 30.0}, {"one": -1.0, "two": 30.0}, {"one": 30.0, "two": 30.0, "ghost": 5.0}
HANGING, DOWN = Fault("load-watcher.example did not respond within 10 s"), HttpResponse(500, b"oops")

HISTORIES = {
    "a source that is well": ([GOOD, GOOD], []),
    "one that fails at first": ([DOWN, GOOD, GOOD], [FAILED, RECOVERED]),
    "one that hangs for long": ([GOOD, HANGING, HANGING, DOWN, HANGING], [FAILED]),
    "one that knows nodes no more": ([GOOD, {}, {}, GOOD], [FAILED, RECOVERED]),
    "one that fails twice": ([DOWN, GOOD, HANGING, GOOD], [FAILED, RECOVERED, FAILED, RECOVERED]),
    "one that lies about a node for long": ([GOOD, LYING, {"one": -2.0, "two": 1.0}, LYING], [LIES_ABOUT_ONE]),
    "one that lies again": ([LYING, GOOD, LYING], [LIES_ABOUT_ONE, LIES_ABOUT_ONE]),
    "a lie before and after an outage is one": ([LYING, DOWN, LYING], [LIES_ABOUT_ONE, FAILED, RECOVERED]),
    "one of which nothing counts": ([{"one": -1.0}, {"one": -1.0}, GOOD], [LIES_ABOUT_ONE, FAILED, RECOVERED]),
    "one that reports a node of another cluster": ([GHOST, GHOST, GOOD], [UNKNOWN, RECOVERED]),
    "one that reports another cluster": ([{"ghost": 5.0}, {"ghost": 5.0}, GHOST, GOOD], [FAILED, UNKNOWN, RECOVERED]),
}


@pytest.mark.parametrize(("responses", "expected"), HISTORIES.values(), ids=HISTORIES.keys())
async def test_an_event_is_written_when_a_problem_begins_and_when_the_source_recovers(responses, expected):
    services = Services(objects={MeasuredNode: [a_node("one"), a_node("two")]})
    plugin = a_plugin(LoadVariationRiskBalancing, services, watcher_address="http://load-watcher.example")
    await plugin.start()
    for response in responses:
        now = services.clock.now()
        services.http.responses[WATCHER] = report(now, **response) if isinstance(response, dict) else response
        await services.background.step()
        services.clock.advance(30)
    assert events(services) == expected


async def test_loads_that_turn_stale_during_an_outage_are_no_second_event():
    services = Services(objects={MeasuredNode: [a_node()]})
    await from_watcher(services, report(services.clock.now(), one=30.0))
    services.http.responses[WATCHER] = HANGING
    await services.background.step()
    services.clock.advance(STALE_SECONDS + 1)
    await services.background.step()
    assert latest(services).nodes == {}
    assert events(services) == [FAILED]


async def test_a_source_that_lies_about_all_nodes_has_events_on_few():
    names = [f"node-{number:03}" for number in range(100)]
    services = Services(objects={MeasuredNode: [a_node(name) for name in names]})
    await from_watcher(services, report(services.clock.now(), **dict.fromkeys(reversed(names), -1.0)))
    warned = [(name, "Warning", "ImpossibleNodeLoad") for name in names[:MOST_NODE_PROBLEMS]]
    assert events(services) == [*warned, FAILED]


async def test_a_node_that_was_measured_long_ago_has_an_event_and_one_that_is_gone_has_none():
    services = Services(objects={MeasuredNode: [a_node("one"), a_node("two")]})
    old = STALE_SECONDS + 1
    services.resource_metrics.used = [
        in_use(services),
        in_use(services, "two", age=old),
        in_use(services, "gone", age=old),
    ]
    await started(services)
    assert events(services) == [("two", "Warning", "StaleNodeLoad"), UNKNOWN]
    notes = [note for _, _, _, note in services.problems.recorded]
    assert notes == [
        "LoadVariationRiskBalancing: the metrics API of the cluster has measured this node more than 5 minutes ago;"
        " that does not count",
        "LoadVariationRiskBalancing: the metrics API of the cluster reports nodes that do not exist, such as gone;"
        " others count",
    ]
