"""The contract carries a gang: order, a count of siblings, waiting together, waking each other."""

from __future__ import annotations

from msgspec.structs import force_setattr
from tests.plugins.contract.gang import Gang
from tests.plugins.verdicts import requeues

from mooring.framework import Allow, QueuedPod, Refusal, Skip
from mooring.objects.placed import placed
from mooring.testing import Services, a_cluster, a_cycle, a_node, a_plugin, a_pod

TRIO = {"gang": "trio", "gang-size": "3"}


def members(count: int, **labels: str):
    return [a_pod(f"trio-{number}", labels=TRIO | labels) for number in range(1, count + 1)]


def a_gang_cluster(services: Services):
    gang = a_plugin(Gang, services, wait_seconds=30)
    return gang, a_cluster(a_node("a"), a_node("b"), plugins=[gang], services=services)


def test_a_gang_that_is_not_complete_is_not_tried():
    one, two = members(2)
    gang, cluster = a_gang_cluster(Services(pods=[one, two]))
    assert gang.pre_filter(one, a_cycle(one, cluster)) == Refusal("gang trio has 2 of 3 pods")
    assert cluster.schedule(one).node is None


def test_placed_and_pending_siblings_count_alike_and_other_namespaces_do_not():
    one, two, three = members(3)
    force_setattr(three.metadata, "namespace", "elsewhere")
    services = Services(pods=[one, two, three])
    gang, cluster = a_gang_cluster(services)
    assert isinstance(gang.pre_filter(one, a_cycle(one, cluster)), Refusal)
    services.state.set_pod(placed(a_pod("trio-0", labels=TRIO), "a"))
    assert gang.pre_filter(one, a_cycle(one, cluster)) is None


def test_pods_without_a_gang_are_left_alone():
    gang, cluster = a_gang_cluster(Services())
    pod = a_pod()
    assert gang.pre_filter(pod, a_cycle(pod, cluster)) == Skip()
    assert gang.permit(pod, cluster.node("a"), a_cycle(pod, cluster)) == Allow()


def test_members_wait_for_the_last_one_who_lets_them_all_go():
    pods = members(3)
    services = Services(pods=pods)
    _, cluster = a_gang_cluster(services)
    for pod, waiting in zip(pods, ([1], [1, 2], []), strict=True):
        assert cluster.schedule(pod).node is not None
        assert [each.pod.name for each in services.waiting_pods] == [f"trio-{number}" for number in waiting]
    assert services.waiting_pods.allowed == ["trio-1", "trio-2"]


def test_a_member_that_waits_wakes_its_pending_siblings():
    pods = members(3)
    services = Services(pods=pods)
    _, cluster = a_gang_cluster(services)
    cluster.schedule(pods[0])
    assert sorted(services.queue.activated) == ["trio-2", "trio-3"]


def test_a_gang_that_is_not_complete_in_time_gives_its_places_back():
    pods = members(3)
    services = Services(pods=pods)
    _, cluster = a_gang_cluster(services)
    for pod in pods[:2]:
        cluster.schedule(pod)
    services.clock.advance(30)
    services.waiting_pods.expire()
    late = "rejected due to timeout after waiting 30s at plugin Gang"
    assert services.waiting_pods.rejected == [("trio-1", late), ("trio-2", "gang trio lost pod trio-1")]
    assert not cluster.node("a").pods
    assert not cluster.node("b").pods


def test_a_member_that_loses_its_place_takes_the_waiting_ones_along():
    one, two = members(2)
    services = Services(pods=[one, two])
    gang, cluster = a_gang_cluster(services)
    services.waiting_pods.put(one, "a", "Gang")
    services.waiting_pods.put(a_pod("other", labels={"gang": "other"}), "a", "Gang")
    gang.unreserve(two, cluster.node("b"), a_cycle(two, cluster))
    assert services.waiting_pods.rejected == [("trio-1", "gang trio lost pod trio-2")]


def test_a_gang_stands_together_in_the_queue():
    gang = a_plugin(Gang)
    first, second = members(2)
    queued = [QueuedPod(first, 10.0), QueuedPod(a_pod("between"), 15.0), QueuedPod(second, 20.0)]
    for one in queued:
        gang.sort_key(one)
    in_order = sorted(queued, key=gang.sort_key)
    assert [one.pod.name for one in in_order] == ["trio-1", "trio-2", "between"]


def test_a_placed_sibling_wakes_a_refused_member():
    gang, (one, two) = a_plugin(Gang), members(2)
    assert requeues(gang, one, None, placed(two, "a"))
    assert not requeues(gang, one, None, placed(a_pod(labels={"gang": "other"}), "a"))
