"""Pods that no profile serves: they are named with their schedulerName, and with the flag that helps."""

from __future__ import annotations

import pytest
from msgspec.structs import force_setattr

from mooring.base.errors import OperatorMistake
from mooring.objects import OwnerReference, Pod
from mooring.simulator import Arrival, Cluster, Workload, capacity, drain_check, fit, simulate
from mooring.simulator.planning.drain import NO_CONTROLLER
from mooring.testing import a_node_object, a_pod

NOTE = (
    'No profile serves schedulerName "mooring" (1 pod): the configuration has default-scheduler. Give the '
    "configuration of that scheduler by --config."
)
OTHER = a_pod("other", scheduler="mooring", cpu="1")


def owned(name: str, *, scheduler: str = "default-scheduler", node: str = "a", controlled: bool = True) -> Pod:
    pod = a_pod(name, cpu="1", node=node, scheduler=scheduler)
    if controlled:
        force_setattr(
            pod.metadata, "owner_references", (OwnerReference(kind="ReplicaSet", name="web", uid="w", controller=True),)
        )
    return pod


def a_cluster(*pods: Pod, nodes: int = 2) -> Cluster:
    return Cluster([a_node_object(name, cpu="2") for name in "abc"[:nodes]], pods)


def test_a_simulation_leaves_them_pending_with_the_reason():
    result = simulate(a_cluster(a_pod("waiting", scheduler="x")), [Arrival(0, OTHER), Arrival(0, a_pod("mine"))])
    assert result.pending_reasons == [
        ('no profile serves its schedulerName "x"', 1),
        ('no profile serves its schedulerName "mooring"', 1),
    ]
    assert [pod.name for pod in result.bound] == ["mine"]
    assert result.notes == [NOTE.replace('"mooring" (1 pod)', '"mooring" (1 pod), "x" (1 pod)')]


def test_a_simulation_of_pods_that_are_served_notes_nothing():
    assert simulate(a_cluster(owned("placed", scheduler="x")), [Arrival(0, a_pod("mine"))]).notes == []


REFUSED = {
    "fit": lambda: fit(a_cluster(), OTHER),
    "capacity, of a workload": lambda: capacity(a_cluster(), Workload([Arrival(0, OTHER)]), ["cpu=2,memory=4Gi"]),
    "capacity, of pending pods": lambda: capacity(a_cluster(OTHER), Workload([]), ["cpu=2,memory=4Gi"], pending=True),
}


@pytest.mark.parametrize("call", REFUSED.values(), ids=REFUSED.keys())
def test_a_plan_for_them_alone_is_refused(call):
    with pytest.raises(OperatorMistake) as refused:
        call()
    assert refused.value.summary == NOTE


def test_capacity_leaves_out_pending_pods_of_others_and_notes_it():
    result = capacity(a_cluster(OTHER, a_pod("mine", cpu="1")), Workload([]), ["cpu=2,memory=4Gi"], pending=True)
    assert (result.pods, result.suffices, result.notes) == (1, True, [NOTE])


def test_a_drain_is_neither_possible_nor_impossible_where_it_is_not_known():
    result = drain_check(a_cluster(owned("p"), owned("q", scheduler="mooring")), ["a"])
    assert {pod.pod: (pod.fate, pod.target) for pod in result.pods} == {
        "default/p": ("moves", "b"),
        "default/q": ("unserved", None),
    }
    assert result.unserved[0].message == 'no profile serves its schedulerName "mooring"'
    assert (result.is_possible, result.is_impossible, result.pending) == (False, False, [])
    assert result.notes == [NOTE]


def test_a_drain_is_impossible_for_what_is_known():
    pods = [owned("p"), owned("q", scheduler="mooring"), owned("r", node="b"), owned("s", node="b")]
    result = drain_check(a_cluster(*pods), ["a"])
    assert ([pod.pod for pod in result.pending], result.is_impossible) == (["default/p"], True)


def test_a_pod_of_another_scheduler_is_objected_to_as_any_other():
    result = drain_check(a_cluster(owned("q", scheduler="mooring", controlled=False)), ["a"])
    assert ([pod.objection for pod in result.objections], result.is_impossible) == ([NO_CONTROLLER], True)


def test_one_node_at_a_time_is_not_counted_as_a_problem_for_them():
    pods = [owned("p"), owned("q", scheduler="mooring", node="b"), owned("r", node="c"), owned("s", node="c")]
    result = drain_check(a_cluster(*pods, nodes=3), ["a", "b"])
    assert result.alone == {"a": 0, "b": 0}
