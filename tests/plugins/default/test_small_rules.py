"""The rules that fit in a sentence: PrioritySort, SchedulingGates, NodeName, NodeUnschedulable, DefaultBinder."""

from __future__ import annotations

import pytest
from tests.plugins.verdicts import requeues, verdict

from mooring.framework import UNRESOLVABLE, Bound, QueuedPod
from mooring.plugins.default.default_binder import DefaultBinder
from mooring.plugins.default.node_name import OTHER_NODE, NodeName
from mooring.plugins.default.node_unschedulable import CORDONED, NodeUnschedulable
from mooring.plugins.default.priority_sort import PrioritySort
from mooring.plugins.default.scheduling_gates import SchedulingGates
from mooring.testing import Services, a_cycle, a_node, a_node_object, a_plugin, a_pod, a_toleration

TOLERANT = a_pod("tolerant", tolerations=[a_toleration("node.kubernetes.io/unschedulable:NoSchedule")])


def test_higher_priority_goes_first_then_the_pod_that_waits_longer():
    queued = [
        QueuedPod(a_pod("later"), 20.0),
        QueuedPod(a_pod("earlier"), 10.0),
        QueuedPod(a_pod("urgent", priority=5), 30.0),
        QueuedPod(a_pod("humble", priority=-5), 0.0),
    ]
    in_order = sorted(queued, key=a_plugin(PrioritySort).sort_key)
    assert [one.pod.name for one in in_order] == ["urgent", "earlier", "later", "humble"]


def test_a_gated_pod_stays_out_of_the_queue_and_names_the_gates():
    gates = a_plugin(SchedulingGates)
    assert verdict(gates.pre_enqueue(a_pod(gates=["a", "b"]))) == (
        UNRESOLVABLE,
        ("waiting for scheduling gates: [a b]",),
    )
    assert gates.pre_enqueue(a_pod()) is None


def test_removing_the_last_gate_wakes_that_pod_and_no_other():
    gated, open_ = a_pod(uid="me", gates=["a"]), a_pod(uid="me")
    assert requeues(a_plugin(SchedulingGates), gated, gated, open_)
    assert not requeues(a_plugin(SchedulingGates), a_pod(gates=["a"]), gated, open_)


@pytest.mark.parametrize(("wanted", "refusal"), [("", None), ("here", None), ("there", (UNRESOLVABLE, (OTHER_NODE,)))])
def test_a_pod_that_names_its_node_runs_there_or_nowhere(wanted, refusal):
    pod = a_pod(node=wanted)
    assert verdict(a_plugin(NodeName).filter(pod, a_node("here"), a_cycle(pod))) == refusal


@pytest.mark.parametrize(
    ("pod", "is_cordoned", "refusal"),
    [(a_pod(), False, None), (a_pod(), True, (UNRESOLVABLE, (CORDONED,))), (TOLERANT, True, None)],
)
def test_a_cordoned_node_takes_only_pods_that_tolerate_it(pod, is_cordoned, refusal):
    node = a_node(unschedulable=is_cordoned)
    assert verdict(a_plugin(NodeUnschedulable).filter(pod, node, a_cycle(pod))) == refusal


CORDONED_NODE, OPEN_NODE = a_node_object(unschedulable=True), a_node_object()
WAKING = {
    "a new open node": (None, OPEN_NODE, True),
    "a new cordoned node": (None, CORDONED_NODE, False),
    "an uncordoned node": (CORDONED_NODE, OPEN_NODE, True),
    "its own new toleration": (a_pod(uid="me"), a_pod(uid="me", tolerations=TOLERANT.spec.tolerations), True),
    "another toleration": (a_pod(uid="me"), a_pod(uid="me", tolerations=[a_toleration("gpu")]), False),
}


@pytest.mark.parametrize(("before", "after", "expected"), WAKING.values(), ids=WAKING.keys())
def test_what_wakes_a_pod_refused_by_cordoned_nodes(before, after, expected):
    assert requeues(a_plugin(NodeUnschedulable), a_pod(uid="me"), before, after) is expected


async def test_the_binder_writes_the_binding_and_logs_it():
    services = Services()
    pod = a_pod("web", namespace="shop")
    assert await a_plugin(DefaultBinder, services).bind(pod, a_node("node-1"), a_cycle(pod)) == Bound()
    assert services.binder.bound == [("shop/web", "node-1")]
    assert services.log.messages == ["Attempting to bind pod to node"]


async def test_a_binding_that_fails_is_a_fault():
    services = Services()
    services.binder.failure = ConnectionError("gone")
    pod = a_pod()
    with pytest.raises(ConnectionError):
        await a_plugin(DefaultBinder, services).bind(pod, a_node(), a_cycle(pod))
