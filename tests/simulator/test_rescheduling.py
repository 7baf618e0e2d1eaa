"""The pods of a cluster scheduled once more: all but those that belong to one node."""

from __future__ import annotations

import msgspec
from tests.simulator.scenarios import a_cluster_of

from mooring.objects import Pod
from mooring.objects.meta import OwnerReference
from mooring.simulator import simulate
from mooring.simulator.rescheduling import MIRROR, unplaced
from mooring.testing import a_pod


def owned(pod: Pod, kind: str) -> Pod:
    owner = OwnerReference(kind=kind, name="owner", uid="owner", controller=True)
    return Pod(metadata=msgspec.structs.replace(pod.metadata, owner_references=(owner,)), spec=pod.spec)


def test_running_pods_are_taken_off_their_nodes_in_the_order_of_their_creation():
    late, early = a_pod("late", node="a", created=20.0), a_pod("early", node="b", created=10.0)
    waiting = a_pod("waiting", created=15.0)
    pods = unplaced(a_cluster_of("a", "b", pods=(late, early, waiting))).pods
    assert [(pod.name, pod.spec.node_name) for pod in pods] == [("early", ""), ("waiting", ""), ("late", "")]


def test_pods_that_belong_to_a_node_stay():
    daemon = owned(a_pod("daemon", node="a"), "DaemonSet")
    static = a_pod("static", node="a", annotations={MIRROR: "1"})
    replica = owned(a_pod("replica", node="a"), "ReplicaSet")
    pods = unplaced(a_cluster_of("a", pods=(daemon, static, replica))).pods
    assert {pod.name: pod.spec.node_name for pod in pods} == {"daemon": "a", "static": "a", "replica": ""}


def test_they_are_scheduled_like_pods_that_wait():
    pods = tuple(a_pod(f"pod-{number}", node="a", cpu="1") for number in range(2))
    outcome = simulate(unplaced(a_cluster_of("a", "b", pods=pods)), [])
    assert sorted(str(pod.node) for pod in outcome.pods) == ["a", "b"]
