"""Which pods a sync of a ReplicaSet creates and deletes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.simulated.builders import NOW, a_pod, a_replica_set

from mooring.simulated.controllers.replica_sets import (
    BURST,
    DELETION_COST,
    deletion_order,
    is_available,
    plan_replicas,
    replica_set_status,
    seconds_until_available,
)

pods = st.lists(
    st.tuples(
        st.sampled_from(["", "node-1", "node-2"]),
        st.sampled_from(["Pending", "Running", "Unknown"]),
        st.booleans(),
        st.integers(-3, 3),
    ),
    max_size=30,
)


@given(pods, st.integers(0, 40))
def test_one_plan_reaches_the_wanted_number_from_any_start(drawn, wanted):
    active = [
        a_pod(f"pod-{index}", node=node, phase=phase, ready=ready, annotations={DELETION_COST: str(cost)})
        for index, (node, phase, ready, cost) in enumerate(drawn)
    ]

    plan = plan_replicas(wanted, active)

    assert not (plan.create and plan.delete)
    assert len(active) + plan.create - len(plan.delete) == wanted


def test_a_large_step_is_taken_in_bursts():
    assert plan_replicas(10_000, []).create == BURST


GOES_FIRST = {
    "a pod without a node before one with": (a_pod("b"), a_pod("a", node="node-1")),
    "a pending pod before a running one": (
        a_pod("b", node="node-1", phase="Pending"),
        a_pod("a", node="node-1", phase="Running"),
    ),
    "a pod that is not ready before one that is": (
        a_pod("b", node="node-1", phase="Running", ready=False),
        a_pod("a", node="node-1", phase="Running", ready=True),
    ),
    "a low deletion cost before a high one": (
        a_pod("b", node="node-1", phase="Running", ready=True, annotations={DELETION_COST: "-5"}),
        a_pod("a", node="node-1", phase="Running", ready=True),
    ),
    "a younger pod before an older one": (
        a_pod("b", node="node-1", phase="Running", ready=True, ready_at=NOW + 60),
        a_pod("a", node="node-1", phase="Running", ready=True),
    ),
}


@pytest.mark.parametrize(("first", "second"), GOES_FIRST.values(), ids=GOES_FIRST.keys())
def test_who_goes_first(first, second):
    assert [pod.name for pod in deletion_order([second, first])] == [first.name, second.name]


def test_a_crowded_node_gives_a_pod_before_a_lonely_one():
    lonely = a_pod("a", node="node-1", phase="Running", ready=True)
    crowd = [a_pod(name, node="node-2", phase="Running", ready=True) for name in ("b", "c")]

    assert deletion_order([lonely, *crowd])[-1] is lonely


def test_the_status_counts_what_is_there():
    owner = a_replica_set(replicas=3, min_ready_seconds=10)
    status = replica_set_status(
        owner,
        [
            a_pod("pending"),
            a_pod("just-ready", ready=True, ready_at=NOW),
            a_pod("available", ready=True, ready_at=NOW - 10),
        ],
        NOW,
    )

    assert status == {
        "replicas": 3,
        "fullyLabeledReplicas": 3,
        "readyReplicas": 2,
        "availableReplicas": 1,
        "observedGeneration": 1,
    }


def test_a_pod_becomes_available_when_it_has_been_ready_for_long_enough():
    pod = a_pod(ready=True, ready_at=NOW)

    assert not is_available(pod, 10, NOW + 9)
    assert seconds_until_available([pod], 10, NOW + 4) == 6
    assert is_available(pod, 10, NOW + 10)
    assert seconds_until_available([pod], 10, NOW + 10) is None
