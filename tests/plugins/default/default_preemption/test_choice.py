"""DefaultPreemption: which of the nodes is chosen."""

from __future__ import annotations

import numpy as np
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

from mooring.framework.preemption import least_disruptive
from mooring.plugins.default.default_preemption.candidates import Candidates
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
    """4.7.3: how candidates are ranked."""
    nodes = [a_node("better", running=better), a_node("worse", running=worse)]
    cluster = a_preempting_cluster(*(nodes[::-1] if turned else nodes), budgets=[a_budget("web", 0, WEB)])
    assert plan_of(cluster.decide(an_important("4"))).nominate == "better"


A_POD = st.tuples(st.integers(-3, 3), st.one_of(st.none(), st.integers(0, 3).map(float)), st.booleans())
"""Its priority, when it started, and whether it is a victim."""


@given(st.lists(st.lists(A_POD, min_size=1, max_size=5), min_size=2, max_size=6), st.integers(0, 9), st.data())
def test_the_columns_choose_the_candidate_that_is_the_least_disruptive(nodes, seed, data):
    cluster = a_preempting_cluster(
        *(
            a_node(
                f"n{number}",
                running=[
                    a_running(f"p{number}-{place}", priority, started=started)
                    for place, (priority, started, _) in enumerate(pods)
                ],
            )
            for number, pods in enumerate(nodes)
        )
    )
    lower = cluster.state.lower_priority_pods(4, cluster.state.nodes)
    is_victim = np.array([is_victim for pods in nodes for _, _, is_victim in pods])
    has_victims = np.logical_or.reduceat(is_victim, lower.first)
    is_candidate = has_victims & data.draw(masks(len(nodes)))
    violations = np.array(data.draw(st.lists(st.integers(0, 2), min_size=len(nodes), max_size=len(nodes))))

    candidates = Candidates(cluster.state.nodes)
    half = len(nodes) // 2
    for batch in (np.arange(len(nodes)) < half, np.arange(len(nodes)) >= half):
        candidates.add(lower, is_candidate & batch, is_victim, None, violations)

    assert len(candidates) == is_candidate.sum()
    if len(candidates):
        assert candidates.least_disruptive(seed) == least_disruptive(list(candidates), seed)


def masks(count):
    return st.lists(st.booleans(), min_size=count, max_size=count).map(np.array)
