"""What a notebook shows of results, and the errors for arguments that are mixed up."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from mooring.base.errors import OperatorMistake
from mooring.simulator import Arrival, Cluster, Workload, capacity, drain_check, fit, simulate, simulate_each
from mooring.testing import a_node_object, a_pod

CLUSTER = Cluster([a_node_object("a", cpu="2")], [a_pod("placed", node="a")])
PODS: Any = Workload([Arrival(0.0, a_pod(f"p-{number}", cpu="1")) for number in range(3)])
NODES: Any = CLUSTER

MIXED_UP: dict[str, tuple[Callable[[], Any], str]] = {
    "simulate": (lambda: simulate(PODS, NODES), r"simulate\(cluster, workload\): .* must be a Cluster, got a Workload"),
    "simulate_each": (lambda: simulate_each(PODS, NODES, {"a": None}), r"simulate\(cluster, workload\)"),
    "fit": (lambda: fit(PODS, NODES), r"fit\(cluster, pod\)"),
    "capacity": (lambda: capacity(PODS, NODES, ["cpu=1,memory=1Gi"]), r"capacity\(cluster, workload, kinds\)"),
    "drain_check": (lambda: drain_check(PODS, ["a"]), r"drain_check\(cluster, nodes\)"),
    "a negative number of nodes": (lambda: Cluster.of_nodes(-1), "A cluster cannot have -1 nodes"),
    "a frame where a file is read": (
        lambda: Workload.read({"arrival": [0]}),  # type: ignore[arg-type]
        "Workload.read reads a file, got a dict; Workload.from_frame reads a data frame",
    ),
    "something else where a cluster is read": (lambda: Cluster.read(3), "reads a file, got a int"),  # type: ignore[arg-type]
}


@pytest.mark.parametrize(("call", "message"), MIXED_UP.values(), ids=MIXED_UP.keys())
def test_arguments_that_are_mixed_up_are_named(call: Callable[[], Any], message: str):
    with pytest.raises(OperatorMistake, match=message):
        call()


def test_one_node_can_be_named_without_a_list():
    assert drain_check(CLUSTER, "a").nodes == ["a"]


def test_results_are_shown_in_a_line():
    result = simulate(CLUSTER, PODS)
    assert repr(result) == "<simulation of 3 pods: 2 bound, 1 pending, 0 preempted>"
    assert repr(simulate_each(CLUSTER, PODS, {"now": None})) == f"<comparison of now: {result!r}>"
    assert repr(CLUSTER) == "<cluster of 1 nodes and 1 pods>"
