"""NetworkOverhead: what the network to a pod's dependencies costs, and where it costs too much."""

from __future__ import annotations

from typing import Any

import pytest

from mooring.base.errors import Fault
from mooring.objects import ObjectMeta
from mooring.objects.meta import KubeObject
from mooring.plugins.community.network_aware import NetworkOverhead
from mooring.plugins.community.network_aware.app_groups import (
    GROUP_LABEL,
    WORKLOAD_LABEL,
    AppGroup,
    AppGroupDependency,
    AppGroupMember,
    AppGroupSpec,
    AppGroupWorkload,
    NetworkCost,
    NetworkOrigin,
    NetworkTopology,
    NetworkTopologyLevel,
    NetworkTopologySpec,
    NetworkWeights,
)
from mooring.plugins.community.network_aware.network_overhead import REGION, ZONE
from mooring.testing import (
    Services,
    a_cluster,
    a_cycle,
    a_node,
    a_plugin,
    a_pod,
    refused_at_once,
    refused_one_by_one,
)


def a_group(*highest_costs, namespace=""):
    """`web` depends on `db`, once for each highest cost."""
    db = AppGroupWorkload(selector="db", namespace=namespace)
    dependencies = [AppGroupDependency(workload=db, max_network_cost=cost) for cost in highest_costs]
    web = AppGroupMember(workload=AppGroupWorkload(selector="web"), dependencies=dependencies)
    return AppGroup(metadata=ObjectMeta(name="shop", namespace="default"), spec=AppGroupSpec(workloads=[web]))


def level(key, *costs):
    origins = [
        NetworkOrigin(origin=origin, cost_list=[NetworkCost(destination=destination, network_cost=cost)])
        for origin, destination, cost in costs
    ]
    return NetworkTopologyLevel(topology_key=key, origin_list=origins)


def a_topology(*levels, weights="UserDefined"):
    return NetworkTopology(
        metadata=ObjectMeta(name="nt-default", namespace="default"),
        spec=NetworkTopologySpec(weights=[NetworkWeights(name=weights, topology_list=list(levels))]),
    )


TOPOLOGY = a_topology(
    level(ZONE, ("z9", "z1", 1), ("z2", "z1", 7), ("z1", "z2", 7)), level(REGION, ("south", "north", 40))
)


def a_member(workload):
    return a_pod(workload, labels={GROUP_LABEL: "shop", WORKLOAD_LABEL: workload})


def at(name, region="", zone="", running=()):
    labels = {key: value for key, value in ((REGION, region), (ZONE, zone)) if value}
    return a_node(name, labels=labels, running=list(running))


NODES = [
    at("home", "north", "z1", [a_member("db")]),
    at("neighbour", "north", "z1"),
    at("other-zone", "north", "z2"),
    at("other-region", "south", "z3"),
    at("unknown-zone", "north", "z4"),
    at("nowhere"),
]


def overheads(*nodes, highest_costs=(10,), topology=TOPOLOGY, pod=None, groups=None, placed=(), **arguments):
    """Costs and rejections by node. `placed`: pods beside those of the nodes."""
    objects: dict[type[KubeObject], list[Any]] = {
        AppGroup: [a_group(*highest_costs)] if groups is None else groups,
        NetworkTopology: [topology],
    }
    given = {kind: [each for each in some if each] for kind, some in objects.items()}
    services = Services(objects=given, pods=placed)
    cluster = a_cluster(*(nodes or NODES), services=services)
    plugin, pod = a_plugin(NetworkOverhead, services, **arguments), pod or a_member("web")
    refused = refused_one_by_one(plugin, pod, cluster)
    assert refused_at_once(plugin, pod, cluster) == refused
    scores = _scored(plugin, pod, cluster)
    return scores, {name: reasons[0] for name, (_, reasons) in refused.items()}


def _scored(plugin, pod, cluster):
    cycle = a_cycle(pod, cluster)
    cycle.set_filter_state(plugin, plugin.pre_filter(pod, cycle))
    plain = {node.name: plugin.score(pod, node, cycle) for node in cluster.nodes}
    at_once = plugin.score_nodes(pod, cluster.nodes, cycle)
    assert dict(zip(cluster.nodes.names, at_once.tolist(), strict=True)) == plain
    return plain


def test_the_nearer_the_cheaper():
    costs, _ = overheads()
    assert costs == {
        "home": 0,
        "neighbour": 1,
        "other-zone": 7,
        "other-region": 40,
        "unknown-zone": 100,
        "nowhere": 100,
    }


def test_a_node_beyond_the_highest_cost_is_refused():
    _, refused = overheads()
    reason = "node(s) do not meet network requirements from workload dependencies: Satisfied: 0 Violated: 1"
    assert refused == {"other-region": reason}


def test_as_many_satisfied_as_violated_are_enough():
    _, refused = overheads(highest_costs=(10, 50))
    assert refused == {}


def test_the_reason_of_scheduler_plugins_names_the_node():
    _, refused = overheads(compatibility="scheduler-plugins")
    assert refused == {
        "other-region": "Node other-region does not meet several network requirements from Workload dependencies: "
        "Satisfied: 0 Violated: 1"
    }


def test_a_dependency_on_a_node_without_labels_is_far_from_all_others():
    costs, refused = overheads(at("bare", running=[a_member("db")]), at("other"))
    assert costs == {"bare": 0, "other": 100}
    assert list(refused) == ["other"]


ALIKE = {
    "a pod without a group": {"pod": a_pod()},
    "a workload without dependencies": {"pod": a_member("db")},
    "no dependency runs yet": {"nodes": (at("one"), at("two"))},
    "no such AppGroup": {"groups": []},
    "no such NetworkTopology": {"topology": None},
}


@pytest.mark.parametrize("given", ALIKE.values(), ids=ALIKE.keys())
@pytest.mark.parametrize("compatibility", ["mooring", "scheduler-plugins"])
def test_all_nodes_are_alike(given, compatibility):
    given = dict(given)
    costs, refused = overheads(*given.pop("nodes", ()), compatibility=compatibility, **given)
    assert set(costs.values()) == {0}
    assert refused == {}


def test_costs_that_are_not_sorted_are_found():
    measured = a_topology(level(ZONE, ("z9", "z1", 1), ("z2", "z1", 7)), weights="NetperfCosts")
    costs, _ = overheads(topology=measured, weights_name="NetperfCosts")
    assert costs["other-zone"] == 7


def test_scheduler_plugins_misses_measured_costs_that_are_not_sorted():
    measured = a_topology(level(ZONE, ("z9", "z1", 1), ("z8", "z1", 1), ("z2", "z1", 7)), weights="NetperfCosts")
    costs, _ = overheads(topology=measured, weights_name="NetperfCosts", compatibility="scheduler-plugins")
    assert costs["other-zone"] == 100


GONE = a_pod("db", labels={GROUP_LABEL: "shop", WORKLOAD_LABEL: "db"}, node="gone")


def test_a_dependency_on_a_node_that_is_gone_is_left_out():
    assert overheads(*NODES, placed=[GONE]) == overheads(*NODES)


def test_in_scheduler_plugins_a_dependency_on_a_node_that_is_gone_is_an_error():
    with pytest.raises(Fault, match='nodeinfo not found for node name "gone"'):
        overheads(*NODES, placed=[GONE], compatibility="scheduler-plugins")


FOREIGN = {
    "a pod of another namespace does not count": ({}, 1),
    "but where the AppGroup names its namespace": ({"groups": [a_group(10, namespace="other")]}, 2),
    "and in scheduler-plugins": ({"compatibility": "scheduler-plugins"}, 2),
}


@pytest.mark.parametrize(("given", "times"), FOREIGN.values(), ids=FOREIGN.keys())
def test_labels_in_another_namespace(given, times):
    foreign = a_pod("db", namespace="other", labels={GROUP_LABEL: "shop", WORKLOAD_LABEL: "db"}, node="home")
    costs, _ = overheads(*NODES, placed=[foreign], **given)
    alone, _ = overheads(*NODES)
    assert costs == {name: times * cost for name, cost in alone.items()}


def test_what_is_missing_is_logged_once():
    services = Services()
    cluster = a_cluster(*NODES, services=services)
    plugin = a_plugin(NetworkOverhead, services)
    for _ in range(3):
        refused_one_by_one(plugin, a_member("web"), cluster)
    assert len(services.log.messages) == 2


def test_the_cheapest_node_wins():
    services = Services(objects={AppGroup: [a_group(10)], NetworkTopology: [TOPOLOGY]})
    cluster = a_cluster(*NODES, plugins=[a_plugin(NetworkOverhead, services)], services=services)
    decision = cluster.schedule(a_member("web"))
    assert (decision.node, decision.scores["NetworkOverhead"].normalized) == ("home", 100)
