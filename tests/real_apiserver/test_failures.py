"""What breaks in production: dead schedulers, two active ones, rejected bindings. No pod is lost or bound twice.

What a bad network and an API server that goes away do, `test_faults` shows.

The nodes have room for exactly the pods that come: a pod counted twice, or not at all, leaves one without place.
"""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Callable, Iterator

import pytest
from tests.real_apiserver.cluster import LEASES, Cluster

QUICK = (
    "--leader-elect=true",
    "--leader-elect-lease-duration=8s",
    "--leader-elect-renew-deadline=6s",
    "--leader-elect-retry-period=500ms",
)
ROLE = "/apis/rbac.authorization.k8s.io/v1/clusterroles/system:kube-scheduler"
REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
PER_NODE = 20
CPU = "200m"  # a twentieth of a node


def create(cluster: Cluster, numbers: range) -> Iterator[str]:
    """Create pods of these numbers; gives the UID of each."""
    for number in numbers:
        yield cluster.pod(f"pod-{number}", cpu=CPU)["metadata"]["uid"]


def check_full(cluster: Cluster, uids: list[str]) -> None:
    """Every pod that was created is there and has a node, and every node is exactly full."""
    pods = cluster.all_bound(len(uids))
    assert {pod["metadata"]["uid"] for pod in pods} == set(uids)
    counts = Counter(pod["spec"]["nodeName"] for pod in pods)
    assert set(counts.values()) == {PER_NODE}, counts
    # A scheduler that is too late writes nothing else about a bound pod.
    for pod in pods:
        scheduled = [each["status"] for each in pod["status"]["conditions"] if each["type"] == "PodScheduled"]
        assert scheduled == ["True"], pod["metadata"]["name"]


def test_the_scheduler_is_killed_in_the_middle_of_a_thousand_pods_and_another_goes_on(cluster: Cluster):
    cluster.nodes(50)
    first = cluster.scheduler()
    uids = list(create(cluster, range(500)))
    first.process.kill()
    bound_by_the_first = sum("nodeName" in pod["spec"] for pod in cluster.pods())
    assert bound_by_the_first > 0
    uids += create(cluster, range(500, 1000))
    assert first.ended() == -signal.SIGKILL
    second = cluster.scheduler()
    check_full(cluster, uids)
    assert second.end() == 0, second.written()
    assert "Traceback" not in second.written()


def test_a_leader_that_dies_is_followed_by_the_one_that_stands_by(cluster: Cluster):
    cluster.nodes(2)
    leader = cluster.scheduler(*QUICK)
    holder = cluster.api.get(f"{LEASES}/kube-scheduler")["spec"]["holderIdentity"]
    second = cluster.starting_scheduler(*QUICK)
    assert f"{holder} leads" in second.mentions("Standing by")
    uids = list(create(cluster, range(20)))
    leader.process.kill()
    uids += create(cluster, range(20, 40))
    second.ready()
    check_full(cluster, uids)
    assert cluster.api.get(f"{LEASES}/kube-scheduler")["spec"]["holderIdentity"] not in ("", holder)
    assert second.end() == 0, second.written()
    assert cluster.api.get(f"{LEASES}/kube-scheduler")["spec"]["holderIdentity"] == ""


def test_two_schedulers_that_do_not_know_of_each_other_bind_every_pod_once(cluster: Cluster):
    cluster.nodes(4)  # more room than is needed: two schedulers may fill a node before either observes it
    schedulers = [cluster.scheduler(), cluster.scheduler()]
    uids = list(create(cluster, range(40)))
    pods = cluster.all_bound(40)
    assert {pod["metadata"]["uid"] for pod in pods} == set(uids)
    for pod in pods:
        scheduled = [each["status"] for each in pod["status"]["conditions"] if each["type"] == "PodScheduled"]
        assert scheduled == ["True"], pod["metadata"]["name"]
    for scheduler in schedulers:
        assert scheduler.end() == 0, scheduler.written()
        assert "Traceback" not in scheduler.written()


@pytest.fixture
def no_right_to_bind(cluster: Cluster) -> Iterator[Callable[[], None]]:
    """Schedulers may not bind, until the function that is given is called."""
    role = cluster.api.get(ROLE)
    rules = [rule for rule in role["rules"] if not {"bindings", "pods/binding"} & set(rule["resources"])]
    assert len(rules) < len(role["rules"])

    def may_bind() -> bool:
        attributes = {
            "verb": "create",
            "group": "",
            "resource": "pods",
            "subresource": "binding",
            "namespace": "default",
        }
        review = {"spec": {"user": "system:kube-scheduler", "resourceAttributes": attributes}}
        allowed: bool = cluster.api.create(REVIEWS, review)["status"]["allowed"]
        return allowed

    def give_back() -> None:
        cluster.api.merge(ROLE, {"rules": role["rules"]})
        cluster.until(may_bind, what="the right to bind")

    cluster.api.merge(ROLE, {"rules": rules})
    cluster.until(lambda: not may_bind(), what="the right to bind to be gone")
    yield give_back
    give_back()


def test_a_pod_whose_binding_is_refused_gives_its_place_back_and_is_tried_again(
    cluster: Cluster, no_right_to_bind: Callable[[], None]
):
    cluster.nodes(1)
    scheduler = cluster.scheduler()
    cluster.pod("web", cpu="4")
    condition = cluster.refused("web", "SchedulerError")
    assert condition["message"].startswith('running Bind plugin "DefaultBinder": pods "web" is forbidden')
    assert 'cannot create resource "pods/binding"' in condition["message"]
    event = cluster.event("web", "FailedScheduling")
    assert (event["type"], event["message"]) == ("Warning", condition["message"])
    no_right_to_bind()
    assert cluster.bound("web") == "node-1"
    assert scheduler.end() == 0, scheduler.written()
    assert "Traceback" not in scheduler.written()
