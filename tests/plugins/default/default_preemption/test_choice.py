"""DefaultPreemption: which of the nodes is chosen."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.plugins.default.default_preemption.made import (
    a_budget,
    a_preempting_cluster,
    a_running,
    an_important,
    plan_of,
)

from mooring.framework import Candidate
from mooring.objects.placed import PlacedPod, placed
from mooring.plugins.default.default_preemption.choice import best, harm
from mooring.testing import a_node

WEB = {"app": "web"}
BETTER = {
    "fewest violated budgets, whatever else": (
        [a_running("x", 9, cpu="4")],
        [a_running("y", 0, cpu="4", labels=WEB)],
    ),
    "lowest highest priority": (
        [a_running("x", 1, cpu="2"), a_running("x2", 1, cpu="2")],
        [a_running("y", 2, cpu="4")],
    ),
    "smallest sum of priorities": (
        [a_running("x", 2, cpu="2"), a_running("x2", 0, cpu="2")],
        [a_running("y", 2, cpu="2"), a_running("y2", 1, cpu="2")],
    ),
    "negative priorities do not make more victims better": (
        [a_running("x", -5, cpu="4")],
        [a_running("y", -5, cpu="2"), a_running("y2", -5, cpu="2")],
    ),
    "the latest start of the most important": (
        [a_running("x", 2, started=9, cpu="2"), a_running("x2", 1, started=0, cpu="2")],
        [a_running("y", 2, started=8, cpu="2"), a_running("y2", 1, started=8, cpu="2")],
    ),
    "one that has not started is the latest": (
        [a_running("x", started=None, cpu="4")],
        [a_running("y", started=8, cpu="4")],
    ),
}


@pytest.mark.parametrize(("better", "worse"), BETTER.values(), ids=BETTER.keys())
@pytest.mark.parametrize("turned", [False, True], ids=["first", "second"])
def test_the_better_node_is_chosen_by(better, worse, turned):
    """4.7.3"""
    nodes = [a_node("better", running=better), a_node("worse", running=worse)]
    cluster = a_preempting_cluster(*(nodes[::-1] if turned else nodes), budgets=[a_budget("web", 0, WEB)])
    assert plan_of(cluster.decide(an_important("4"))).nominate == "better"


def a_record(priority: int, started: float | None) -> PlacedPod:
    return placed(a_running("v", priority, started=started), "n")


RECORDS = st.lists(
    st.builds(a_record, st.integers(-3, 3), st.one_of(st.none(), st.integers(0, 3).map(float))), min_size=1, max_size=4
).map(lambda pods: tuple(sorted(pods, key=lambda pod: -pod.priority)))


@given(st.lists(st.builds(Candidate, st.just("n"), RECORDS, st.integers(0, 2)), min_size=1, max_size=6), st.integers(0))
def test_criteria_are_asked_in_turn_of_those_that_are_left(candidates, seed):
    """As kube-scheduler asks: each criterion keeps the best of those that the one before kept."""
    left = candidates
    for criterion in range(5):
        scores = [harm(each)[criterion] for each in left]
        left = [each for each, score in zip(left, scores, strict=True) if score == min(scores)]
    assert best(candidates, seed) in left


def test_among_equals_the_seed_says_which():
    equals = [Candidate(name, (a_record(0, None),)) for name in "abc"]
    assert {best(equals, seed).node for seed in range(3)} == {"a", "b", "c"}
    assert harm(equals[0])[-1] == -math.inf
