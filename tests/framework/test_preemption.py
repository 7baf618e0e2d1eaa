"""The order of preemption candidates."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from mooring.base.clock import timestamp
from mooring.framework import Candidate
from mooring.framework.preemption import disruption, disruption_columns, least_disruptive
from mooring.objects.placed import PlacedPod, placed
from mooring.state import State
from mooring.testing import a_node_object, a_pod


def a_record(priority: int, started: float | None, name: str = "victim", node: str = "n") -> PlacedPod:
    pod = a_pod(name, priority=priority)
    pod.status.start_time = None if started is None else timestamp(started)
    return placed(pod, node)


RECORDS = st.lists(
    st.builds(a_record, st.integers(-3, 3), st.one_of(st.none(), st.integers(0, 3).map(float))), min_size=1, max_size=4
).map(lambda pods: tuple(sorted(pods, key=lambda pod: -pod.priority)))


@given(st.lists(st.builds(Candidate, st.just("n"), RECORDS, st.integers(0, 2)), min_size=1, max_size=6), st.integers(0))
def test_each_criterion_chooses_among_the_candidates_that_the_one_before_left(candidates, seed):
    """As in kube-scheduler: each criterion keeps the best of those that the one before kept."""
    left = candidates
    for criterion in range(5):
        scores = [disruption(each)[criterion] for each in left]
        left = [each for each, score in zip(left, scores, strict=True) if score == min(scores)]
    assert least_disruptive(candidates, seed) in left


def test_the_seed_breaks_ties():
    equals = [Candidate(name, (a_record(0, None),)) for name in "abc"]
    assert {least_disruptive(equals, seed).node for seed in range(3)} == {"a", "b", "c"}
    assert disruption(equals[0])[-1] == -math.inf


A_POD = st.tuples(st.integers(-3, 3), st.one_of(st.none(), st.integers(0, 3).map(float)), st.booleans())
"""Its priority, when it started, and whether it is a victim."""


@given(st.lists(st.lists(A_POD, min_size=1, max_size=5), min_size=1, max_size=4), st.data())
def test_the_columns_of_many_nodes_hold_the_disruption_of_each(nodes, data):
    state, victims = State(), set()
    for number, pods in enumerate(nodes):
        state.set_node(a_node_object(f"n{number}"))
        for place, (priority, started, is_victim) in enumerate(pods):
            pod = a_record(priority, started, f"p{number}-{place}", f"n{number}")
            state.set_pod(pod)
            if is_victim or place == 0:
                victims.add(pod.uid)
    violations = data.draw(st.lists(st.integers(0, 2), min_size=len(nodes), max_size=len(nodes)))

    lower = state.lower_priority_pods(4, state.nodes)
    every = lower.pods(np.ones(len(lower), np.bool_))
    is_victim = np.array([pod.uid in victims for pod in every])
    columns = disruption_columns(lower, is_victim, np.array(violations))

    for place, node in enumerate(lower.nodes):
        of_node = tuple(pod for pod in every if pod.node == node.name and pod.uid in victims)
        assert tuple(column[place] for column in columns) == disruption(
            Candidate(node.name, of_node, violations[place])
        )
