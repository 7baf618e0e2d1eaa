from __future__ import annotations

from mooring.framework import Pod
from mooring.testing import Cluster, Services, a_cluster, a_cycle, a_node, a_plugin, a_pod

from .gang import Gang
from .labels import GANG, GANG_SIZE

TRIO = {GANG: "trio", GANG_SIZE: "3"}


def a_gang_cluster(cpu: str = "4") -> tuple[Cluster, Services]:
    services = Services()
    gang = a_plugin(Gang, services, wait_seconds=30)
    return a_cluster(a_node(cpu=cpu), plugins=[gang], services=services), services


def members(count: int) -> list[Pod]:
    return [a_pod(f"trio-{number}", labels=TRIO, cpu="1") for number in range(1, count + 1)]


def test_a_gang_waits_until_all_members_are_there_then_until_all_have_a_place():
    cluster, services = a_gang_cluster()
    one, two, three = members(3)
    assert "1 of 3 pods of gang trio are there" in cluster.schedule(one).message
    assert "2 of 3 pods of gang trio are there" in cluster.schedule(two).message

    assert cluster.schedule(three).node == "node"
    assert services.queue.activated == ["trio-1", "trio-2"]
    assert [waiting.pod.name for waiting in services.waiting_pods] == ["trio-3"]

    assert cluster.schedule(one).node == "node"
    assert cluster.schedule(two).node == "node"
    assert services.waiting_pods.allowed == ["trio-3", "trio-1"]


def test_a_gang_that_is_not_complete_in_time_gives_its_places_back():
    cluster, services = a_gang_cluster()
    one, two, three = members(3)
    cluster.schedule(one)
    cluster.schedule(two)
    cluster.schedule(three)
    cluster.schedule(one)
    services.clock.advance(30)
    services.waiting_pods.expire()
    assert services.waiting_pods.rejected == [
        ("trio-3", "rejected due to timeout after waiting 30s at plugin Gang"),
        ("trio-1", "gang trio lost pod trio-3"),
    ]
    assert not cluster.node("node").pods


def test_pods_without_a_gang_are_left_alone():
    cluster, services = a_gang_cluster()
    assert cluster.schedule(a_pod()).node == "node"
    assert list(services.waiting_pods) == []


def test_a_size_that_is_no_number_is_refused():
    cluster, _ = a_gang_cluster()
    assert "must be a whole number" in cluster.schedule(a_pod(labels={GANG: "x", GANG_SIZE: "many"})).message


def test_a_refused_member_is_woken_by_another_of_its_gang():
    [hint] = a_plugin(Gang).events()
    one, two = members(2)
    assert hint.test is not None
    assert hint.test(one, None, two)
    assert not hint.test(one, None, a_pod(labels={GANG: "other"}))


def test_pods_of_another_namespace_are_no_members():
    cluster, _ = a_gang_cluster()
    one, two = members(2)
    cluster.schedule(a_pod("trio-3", namespace="elsewhere", labels=TRIO))
    cluster.schedule(one)
    assert "2 of 3 pods" in cluster.schedule(two).message
    assert a_cycle(one).attempt == 1
