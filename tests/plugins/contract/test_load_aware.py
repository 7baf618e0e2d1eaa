"""The contract carries a load-aware score: background refresh, outside data, pods placed since the sample."""

from __future__ import annotations

import pytest
from msgspec.structs import force_setattr
from tests.plugins.contract.load_aware import Load, LoadAware

from mooring.base.clock import timestamp
from mooring.base.errors import Fault
from mooring.framework import HttpResponse, Skip
from mooring.testing import Services, a_cluster, a_cycle, a_node, a_plugin, a_pod

ADDRESS = "http://prometheus:9090"
URL = f"{ADDRESS}/api/v1/query"


def sampled(**used_cpus: float) -> dict[str, object]:
    result = [{"metric": {"node": node}, "value": [0, str(cpus)]} for node, cpus in used_cpus.items()]
    return {"status": "success", "data": {"resultType": "vector", "result": result}}


def two_nodes(services: Services):
    plugin = a_plugin(LoadAware, services, prometheus_address=ADDRESS, refresh_seconds=15)
    return plugin, a_cluster(a_node("a", cpu="4"), a_node("b", cpu="4"), plugins=[plugin], services=services)


async def test_the_node_with_less_load_wins_and_the_decision_records_which_sample_it_used():
    services = Services(http={URL: sampled(a=3, b=1)})
    plugin, cluster = two_nodes(services)
    await plugin.start()
    assert services.background.periods == [15]
    await services.background.step()

    decision = cluster.schedule(a_pod())
    assert decision.node == "b"
    assert decision.scores["LoadAware"].raw == 75
    assert decision.used == {"LoadAware": 1}


async def test_pods_placed_since_the_sample_count_on_top_of_it():
    services = Services(http={URL: sampled(a=2, b=1)})
    plugin, cluster = two_nodes(services)
    await plugin.start()
    await services.background.step()
    placements = [cluster.schedule(a_pod(cpu="1")).node for _ in range(4)]
    assert sorted(placements[:1]) == ["b"]
    assert sorted(placements) == ["a", "b", "b", "b"] or sorted(placements) == ["a", "a", "b", "b"]
    assert placements.count("b") >= 2


async def test_pods_that_the_sample_has_seen_are_not_counted_twice():
    services = Services(http={URL: sampled(node=1)})
    plugin = a_plugin(LoadAware, services, prometheus_address=ADDRESS)
    await plugin.start()
    await services.background.step()
    old, new = a_pod(cpu="1"), a_pod(cpu="1")
    force_setattr(old.status, "start_time", timestamp(services.clock.now() - 60))
    force_setattr(new.status, "start_time", timestamp(services.clock.now() + 60))
    pod = a_pod()
    assert plugin.score(pod, a_node(cpu="4", running=[old, new]), a_cycle(pod)) == 50


def test_without_any_sample_the_plugin_has_no_opinion():
    plugin, cluster = two_nodes(Services())
    pod = a_pod()
    assert plugin.pre_score(pod, cluster.nodes, a_cycle(pod, cluster)) == Skip()
    assert cluster.schedule(a_pod()).node in ("a", "b")


@pytest.mark.parametrize("response", [Fault("prometheus does not respond"), HttpResponse(503, b"")])
async def test_a_refresh_that_fails_is_a_fault_of_the_background_and_keeps_the_last_sample(response):
    services = Services(published={Load: Load({"a": 4000}, 0.0)}, http={URL: response})
    plugin, cluster = two_nodes(services)
    await plugin.start()
    with pytest.raises(Fault, match="prometheus"):
        await services.background.step()
    assert cluster.schedule(a_pod()).node == "b"
