"""NetworkTraffic: less traffic scores higher; silence, outages and wrong responses favour no node and stop nothing."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.plugins.verdicts import normalized

from mooring.base.errors import Fault, OperatorMistake
from mooring.framework import HttpResponse
from mooring.plugins.examples.network_traffic import NetworkTraffic, Traffic
from mooring.testing import Services, a_cluster, a_node, a_plugin, a_pod

ADDRESS = "http://prometheus.example:9090"
URL = f"{ADDRESS}/api/v1/query"
HTML = HttpResponse(200, b"<!DOCTYPE html><html><title>Sign in</title></html>")


def a_query_result(label: str = "kubernetes_node", /, **received: float | str) -> dict[str, Any]:
    """Prometheus' response when these nodes have received so much."""
    result = [{"metric": {label: node}, "value": [1_700_000_000.123, str(n)]} for node, n in received.items()]
    return {"status": "success", "data": {"resultType": "vector", "result": result}}


async def started(services: Services, **arguments: Any) -> NetworkTraffic:
    """The plugin, after its first query."""
    plugin = a_plugin(NetworkTraffic, services, **{"prometheus_address": ADDRESS} | arguments)
    await plugin.start()
    await services.background.step()
    return plugin


def scores(plugin: NetworkTraffic, *nodes: str) -> dict[str, int]:
    decision = a_cluster(*map(a_node, nodes), plugins=[plugin]).decide(a_pod())
    return normalized(decision, "NetworkTraffic")


def warnings(services: Services) -> list[str]:
    return [
        f"{message}: {values.get('err', '')}" for severity, message, values in services.log.lines if severity == "W"
    ]


# The rule


async def test_the_busiest_node_becomes_0_and_the_others_what_they_receive_less():
    services = Services(http={URL: a_query_result(a=1_000_000, b=1_200_000, c=1_400_000)})
    plugin = await started(services)
    assert scores(plugin, "a", "b", "c") == {"a": 29, "b": 15, "c": 0}
    assert a_cluster(a_node("c"), a_node("a"), plugins=[plugin]).decide(a_pod()).node == "a"


async def test_without_any_traffic_every_node_has_100():
    plugin = await started(Services(http={URL: a_query_result(a=0, b=0)}))
    assert scores(plugin, "a", "b") == {"a": 100, "b": 100}


async def test_only_feasible_nodes_are_compared():
    plugin = await started(Services(http={URL: a_query_result(a=100, b=200, c=100_000)}))
    assert scores(plugin, "a", "b") == {"a": 50, "b": 0}


async def test_a_node_without_a_fresh_sample_counts_as_the_median():
    plugin = await started(Services(http={URL: a_query_result(a=100, b=300, c=400)}))
    assert scores(plugin, "a", "b", "c", "silent") == {"a": 75, "b": 25, "c": 0, "silent": 25}


@pytest.mark.parametrize("number", ["NaN", "+Inf", "-Inf"])
async def test_what_is_no_number_is_no_sample(number):
    plugin = await started(Services(http={URL: a_query_result(a=100, b=number, c=300)}))
    assert plugin._traffic.latest == Traffic({"a": 100, "c": 300}, median=200)


async def test_two_jobs_that_scrape_one_node_count_once():
    response = a_query_result(a=100)
    response["data"]["result"] += a_query_result(a=90, b=50)["data"]["result"]
    plugin = await started(Services(http={URL: response}))
    assert plugin._traffic.latest == Traffic({"a": 100, "b": 50}, median=75)


@given(st.dictionaries(st.sampled_from("abcdef"), st.integers(0, 10**30), min_size=1))
async def test_any_traffic_gives_scores_from_0_to_100_in_reverse_order(received):
    plugin = await started(Services(http={URL: a_query_result(**received)}))
    given_scores = scores(plugin, *received, "silent")
    assert all(0 <= score <= 100 for score in given_scores.values())
    ranked = sorted(received, key=lambda node: received[node])
    ordered = [given_scores[node] for node in ranked]
    assert ordered == sorted(ordered, reverse=True)
    if len(received) > 2:
        assert given_scores[ranked[-1]] <= given_scores["silent"] <= given_scores[ranked[0]]


# The query


async def test_one_query_serves_all_nodes_and_selects_fresh_ones_alone():
    services = Services(http={URL: a_query_result(a=1, b=2, c=3)})
    plugin = await started(services)
    for _ in range(3):
        scores(plugin, "a", "b", "c")
    series = 'node_network_receive_bytes_total{kubernetes_node!="",device="ens192"}'
    query = f"sum_over_time({series}[5m]) and (timestamp({series}) >= time() - 90)"
    assert services.http.requests == [(URL, {"query": query})]
    assert 30 in services.background.periods


async def test_the_query_follows_the_arguments():
    services = Services(http={f"{ADDRESS}/prom/api/v1/query": a_query_result("node", a=1)})
    plugin = await started(
        services,
        prometheus_address=f"{ADDRESS}/prom/",
        network_interface='et"h0',
        time_range_in_minutes=3,
        node_label="node",
        refresh_seconds=0.5,
    )
    series = 'node_network_receive_bytes_total{node!="",device="et\\"h0"}'
    query = f"sum_over_time({series}[3m]) and (timestamp({series}) >= time() - 1.5)"
    assert services.http.requests[0][1] == {"query": query}
    assert plugin._traffic.latest == Traffic({"a": 1}, median=1)


async def test_the_decision_records_which_query_result_it_used():
    services = Services(http={URL: a_query_result(a=1)})
    plugin = await started(services)
    await services.background.step()
    assert a_cluster(a_node("a"), a_node("b"), plugins=[plugin]).decide(a_pod()).used == {"NetworkTraffic": 2}


async def test_each_node_is_logged_when_a_query_result_is_first_used_for_it():
    services = Services(http={URL: a_query_result(a=100, b=300)}, verbosity=0)
    plugin = await started(services)
    services.log.lines.clear()
    scores(plugin, "a", "b", "silent")
    scores(plugin, "a", "b")
    assert services.log.messages == [
        "[NetworkTraffic] node 'a' bandwidth: 100",
        "[NetworkTraffic] node 'b' bandwidth: 300",
        "[NetworkTraffic] node 'silent' bandwidth: 200",
    ]
    assert services.log.lines[-1][2] == {"source": "no fresh sample: the median"}
    await services.background.step()
    scores(plugin, "a", "b")
    assert len(services.log.lines) == 5


# Trouble

TROUBLE = {
    "connection refused": (Fault(f"{ADDRESS} cannot be reached: refused"), "cannot be reached: refused"),
    "no response in time": (Fault(f"{ADDRESS} did not respond within 10 s"), "did not respond within 10 s"),
    "not allowed": (HttpResponse(401, b"Unauthorized\n"), f"{ADDRESS} responded 401"),
    "sent elsewhere": (HttpResponse(302, b""), f"{ADDRESS} responded 302"),
    "a page": (HTML, f"{ADDRESS} returned HTML, which is not a Prometheus query result"),
    "text": (HttpResponse(200, b"ok"), "returned something else, which is not a Prometheus"),
    "no text at all": (HttpResponse(200, b"\xff\xfe"), "returned something else, which is not a Prometheus"),
    "other JSON": ([1, 2], "returned something else, which is not a Prometheus"),
    "another kind of result": (
        {"status": "success", "data": {"resultType": "scalar", "result": [1, "2"]}},
        "returned something else",
    ),
    "a query it refuses": (
        HttpResponse(422, b'{"status":"error","errorType":"execution","error":"query timed out"}'),
        f"{ADDRESS} responded 422 query timed out",
    ),
    "a sample that is no number": (a_query_result(a="much"), "could not convert"),
    "no sample at all": (a_query_result(), 'with the label "kubernetes_node" and device="ens192"'),
    "samples of other labels": (a_query_result("instance", a=1), 'with the label "kubernetes_node"'),
}


@pytest.mark.parametrize(("response", "message"), TROUBLE.values(), ids=TROUBLE.keys())
async def test_trouble_at_the_start_is_logged_and_every_node_counts_alike(response, message):
    services = Services(http={URL: response})
    plugin = await started(services)
    (warning,) = warnings(services)
    assert "every node counts alike" in warning
    assert message in warning
    assert scores(plugin, "a", "b") == {"a": 100, "b": 100}


async def test_an_outage_goes_on_with_the_last_values_and_then_neutrally_and_is_logged_once():
    services = Services(http={URL: a_query_result(a=100, b=400)}, verbosity=0)
    plugin = await started(services)
    services.http.responses[URL] = HTML
    for _ in range(3):
        services.clock.advance(30)
        await services.background.step()
        assert scores(plugin, "a", "b") == {"a": 75, "b": 0}
    assert [line.partition(":")[0] for line in warnings(services)] == [
        "[NetworkTraffic] No traffic from Prometheus; the last values count"
    ]

    services.clock.advance(1)
    await services.background.step()
    assert scores(plugin, "a", "b") == {"a": 100, "b": 100}
    assert warnings(services)[1:] == ["[NetworkTraffic] the last values are stale; every node counts alike: "]
    services.clock.advance(1000)
    await services.background.step()
    assert len(warnings(services)) == 2


async def test_when_prometheus_is_back_its_values_count_and_the_log_reports_it():
    services = Services(http={URL: Fault("down")})
    plugin = await started(services)
    services.http.responses[URL] = a_query_result(a=100, b=400)
    await services.background.step()
    assert scores(plugin, "a", "b") == {"a": 75, "b": 0}
    assert services.log.messages.count("[NetworkTraffic] Prometheus responds") == 1
    services.http.responses[URL] = Fault("down again")
    await services.background.step()
    assert len(warnings(services)) == 2


async def test_an_outage_shows_in_the_metrics():
    services = Services(http={URL: a_query_result(a=100, b=400)})
    await started(services)
    shown = services.metrics.value
    assert (shown("networktraffic_prometheus_up"), shown("networktraffic_nodes")) == (1, 2)
    services.http.responses[URL] = Fault("down")
    services.clock.advance(30)
    await services.background.step()
    assert (shown("networktraffic_prometheus_up"), shown("networktraffic_nodes")) == (0, 2)
    services.clock.advance(1000)
    await services.background.step()
    assert (shown("networktraffic_prometheus_up"), shown("networktraffic_nodes")) == (0, 0)
    assert shown("networktraffic_refreshes_total", result="success") == 1
    assert shown("networktraffic_refreshes_total", result="failure") == 2


def test_before_the_first_response_every_node_counts_alike():
    plugin = a_plugin(NetworkTraffic, prometheus_address=ADDRESS)
    assert scores(plugin, "a", "b") == {"a": 100, "b": 100}


async def test_a_token_that_cannot_be_read_is_trouble_and_no_more(tmp_path):
    services = Services(http={URL: a_query_result(a=1)})
    await started(services, bearer_token_file=str(tmp_path / "none"))
    assert "No such file" in warnings(services)[0]
    assert services.http.requests == []


# The arguments

MISTAKES = {
    "no address": ({}, "prometheusAddress"),
    "text": ({"prometheus_address": "prometheus"}, 'must be a URL, such as "http://prometheus.monitoring:9090", got'),
    "an empty address": ({"prometheus_address": ""}, "must be a URL"),
    "a host and port": ({"prometheus_address": "prometheus:9090"}, "must be a URL"),
    "no host": ({"prometheus_address": "http:///api"}, "must be a URL"),
    "a port that is none": ({"prometheus_address": "http://prometheus:http"}, "must be a URL"),
    "another protocol": ({"prometheus_address": "ftp://prometheus"}, "must be a URL"),
    "a space": ({"prometheus_address": "http://pro metheus"}, "must be a URL"),
    "a query": ({"prometheus_address": f"{URL}?query=up"}, "must end before the path of the API"),
    "no such label": ({"prometheus_address": ADDRESS, "node_label": "a-b"}, 'a Prometheus label, such as "node", got'),
    "no time": ({"prometheus_address": ADDRESS, "time_range_in_minutes": 0}, ">= 1"),
    "no refresh": ({"prometheus_address": ADDRESS, "refresh_seconds": 0}, "> 0"),
    "no interface": ({"prometheus_address": ADDRESS, "network_interface": ""}, "length >= 1"),
}


@pytest.mark.parametrize(("arguments", "message"), MISTAKES.values(), ids=MISTAKES.keys())
def test_wrong_arguments_are_refused_when_the_file_is_loaded(arguments, message):
    with pytest.raises(OperatorMistake, match=r"NetworkTrafficArgs") as refused:
        a_plugin(NetworkTraffic, **arguments)
    assert message in str(refused.value)


def test_a_password_in_the_address_is_refused_without_repeating_it():
    with pytest.raises(OperatorMistake, match="use bearerTokenFile") as refused:
        a_plugin(NetworkTraffic, prometheus_address="http://me:secret@prometheus")
    assert "secret" not in str(refused.value)
