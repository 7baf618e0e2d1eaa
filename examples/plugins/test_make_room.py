from __future__ import annotations

from mooring.framework import Pod
from mooring.plugins.default.node_resources_fit import NodeResourcesFit
from mooring.testing import Cluster, Services, a_cluster, a_node, a_plugin, a_pod

from .labels import EXPENDABLE
from .make_room import MakeRoom


def expendable(name: str, cpu: str) -> Pod:
    return a_pod(name, cpu=cpu, labels={EXPENDABLE: ""})


def a_full_cluster(services: Services | None = None) -> Cluster:
    return a_cluster(
        a_node("three-small", cpu="3", running=[expendable(f"small-{number}", "1") for number in range(3)]),
        a_node("one-large", cpu="3", running=[expendable("large", "2"), expendable("little", "1")]),
        a_node("important", cpu="3", running=[a_pod("important", cpu="3")]),
        plugins=[a_plugin(NodeResourcesFit), a_plugin(MakeRoom, services)],
    )


def test_the_node_that_loses_the_fewest_is_kept_for_the_pod():
    decision = a_full_cluster().schedule(a_pod(cpu="2"))
    assert decision.node is None
    assert decision.plan is not None
    assert decision.plan.nominate == "one-large"
    assert [victim.name for victim in decision.plan.evict] == ["large"]
    assert sorted(candidate.node for candidate in decision.plan.candidates) == ["one-large", "three-small"]


def test_expendable_pods_that_are_too_small_are_not_evicted():
    decision = a_full_cluster().schedule(a_pod(cpu="4"))
    assert decision.plan is None
    assert "evicting expendable pods makes no room" in decision.message


def test_an_expendable_pod_evicts_no_others():
    assert a_full_cluster().schedule(expendable("another", "1")).plan is None


def test_nothing_more_is_evicted_while_room_is_being_made():
    services, pod = Services(), a_pod(cpu="2")
    services.preemptions.under_way.add(pod.uid)
    assert "room is being made" in a_full_cluster(services).schedule(pod).message
