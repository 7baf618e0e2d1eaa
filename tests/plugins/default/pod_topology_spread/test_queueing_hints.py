"""PodTopologySpread: which changes of pods and nodes make a refused pod worth another try."""

from __future__ import annotations

import pytest
from tests.plugins.verdicts import requeues

from mooring.framework import Action, Node, Pod
from mooring.framework.events import Hint
from mooring.objects.placed import placed
from mooring.plugins.default.pod_topology_spread import PodTopologySpread
from mooring.testing import a_constraint, a_node_object, a_plugin, a_pod, a_taint, a_toleration

WEB, DB = {"app": "web"}, {"app": "db"}
BY_ZONE = a_constraint("zone", labels=WEB)
BY_RACK = a_constraint("rack", labels=DB)


def refused(*constraints, **more):
    return a_pod(uid="me", labels=WEB, spread=constraints or (BY_ZONE,), **more)


def running(labels=WEB, namespace="default", uid="other"):
    return placed(a_pod(uid=uid, labels=labels, namespace=namespace), "node-1")


def waiting(labels=WEB, nominated="", uid="other", **more):
    return a_pod(uid=uid, labels=labels, nominated=nominated, **more)


POD = refused()
PODS = {
    "a pod came that counts": (POD, (None, running()), True),
    "one that does not": (POD, (None, running(DB)), False),
    "one that counts for any of the constraints": (refused(BY_ZONE, BY_RACK), (None, running(DB)), True),
    "a pod that counts went": (POD, (running(), None), True),
    "one of another namespace": (POD, (running(namespace="shop"), None), False),
    "a nominated pod went": (POD, (waiting(nominated="node-1"), None), True),
    "a pod that was on no node": (POD, (waiting(), None), False),
    "a pod began to count": (POD, (running(DB), running()), True),
    "or does no longer": (POD, (running(), running(DB)), True),
    "labels changed, and it counts as before": (POD, (running(), running(WEB | {"more": "yes"})), False),
    "its own labels changed whether it counts itself": (POD, (waiting(DB, uid="me"), waiting(uid="me")), True),
    "its own tolerations, and no constraint minds taints":
        (POD, (waiting(uid="me"), waiting(uid="me", tolerations=[a_toleration("*")])), False),
    "its own tolerations, and one does":
        (refused(a_constraint("zone", labels=WEB, node_taints="Honor")),
         (waiting(uid="me"), waiting(uid="me", tolerations=[a_toleration("*")])), True),
    "without hard constraints nothing helps": (refused(a_constraint(soft=True, labels=WEB)), (None, running()), False),
}  # fmt: skip


@pytest.mark.parametrize(("pod", "change", "expected"), PODS.values(), ids=PODS.keys())
def test_pods_that_wake(pod, change, expected):
    assert requeues(a_plugin(PodTopologySpread), pod, *change) is expected


def node(*taints, **labels):
    return a_node_object(labels=labels, taints=[a_taint(text) for text in taints])


BOTH = refused(BY_ZONE, BY_RACK)
NODES = {
    "a new node with the keys of all constraints": (BOTH, (None, node(zone="a", rack="1")), True),
    "one that lacks a key": (BOTH, (None, node(zone="a")), False),
    "a node with all keys went": (BOTH, (node(zone="a", rack="1"), None), True),
    "one that lacked a key": (BOTH, (node(zone="a"), None), False),
    "a node got the last key": (BOTH, (node(zone="a"), node(zone="a", rack="1")), True),
    "or lost one": (BOTH, (node(zone="a", rack="1"), node(rack="1")), True),
    "a key has another value": (BOTH, (node(zone="a", rack="1"), node(zone="b", rack="1")), True),
    "another label changed": (BOTH, (node(zone="a", rack="1"), node(zone="a", rack="1", pool="x")), False),
    "a node that lacks a key has another value for the other": (BOTH, (node(zone="a"), node(zone="b")), False),
    "taints changed": (POD, (node("gpu:NoSchedule", zone="a"), node(zone="a")), True),
    "taints of a node that lacks a key": (POD, (node("gpu:NoSchedule"), node()), False),
}


@pytest.mark.parametrize(("pod", "change", "expected"), NODES.values(), ids=NODES.keys())
def test_nodes_that_wake(pod, change, expected):
    assert requeues(a_plugin(PodTopologySpread), pod, *change) is expected


def test_the_events_are_those_of_kube_scheduler():
    events = [(hint.resource, hint.action) for hint in a_plugin(PodTopologySpread).events()]
    pods, nodes = Hint(Pod).resource, Hint(Node).resource
    assert events == [
        (pods, Action.ADD | Action.UPDATE_POD_LABEL | Action.UPDATE_POD_TOLERATION | Action.DELETE),
        (nodes, Action.ADD | Action.DELETE | Action.UPDATE_NODE_LABEL | Action.UPDATE_NODE_TAINT),
    ]
