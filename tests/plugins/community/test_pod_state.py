"""PodState: terminating pods attract, nominated ones repel."""

from __future__ import annotations

from msgspec.structs import force_setattr

from mooring.plugins.community.pod_state import PodState
from mooring.testing import Services, a_cluster, a_node, a_plugin, a_pod, scored_at_once, scored_one_by_one


def scores(cluster, services, pod=None):
    plugin = a_plugin(PodState, services)
    plain = scored_one_by_one(plugin, pod or a_pod(), cluster)
    assert scored_at_once(plugin, pod or a_pod(), cluster) == plain
    return plain


def leaving(name):
    pod = a_pod(name)
    force_setattr(pod.metadata, "deletion_timestamp", "2024-01-01T00:00:00Z")
    return pod


def nominate(services, node, *names):
    for name in names:
        services.state.nominations.set(a_pod(name), node)


def test_terminating_pods_count_for_the_node():
    pods = [leaving("one"), leaving("two"), a_pod("stays")]
    services = Services()
    cluster = a_cluster(a_node("idle"), a_node("emptying", running=pods), services=services)
    assert scores(cluster, services) == {"idle": 0, "emptying": 2}


def test_nominated_pods_count_against_it():
    services = Services()
    cluster = a_cluster(a_node("free"), a_node("wanted"), services=services)
    nominate(services, "wanted", "one", "two")
    assert scores(cluster, services) == {"free": 0, "wanted": -2}


def test_the_own_nomination_counts():
    services, pod = Services(), a_pod("web")
    cluster = a_cluster(a_node("free"), a_node("wanted"), services=services)
    services.state.nominations.set(pod, "wanted")
    assert scores(cluster, services, pod) == {"free": 0, "wanted": -1}


def test_a_nomination_to_a_node_that_is_gone_does_not_matter():
    services = Services()
    cluster = a_cluster(a_node("here"), services=services)
    nominate(services, "gone", "one")
    assert scores(cluster, services) == {"here": 0}


def test_the_extremes_become_0_and_100():
    services = Services()
    nodes = [a_node("idle"), a_node("emptying", running=[leaving("one")])]
    cluster = a_cluster(*nodes, plugins=[a_plugin(PodState, services)], services=services)
    decision = cluster.schedule(a_pod())
    assert (decision.node, decision.scores["PodState"].normalized) == ("emptying", 100)
