"""DefaultPreemption: which of the nodes is chosen."""

from __future__ import annotations

import pytest
from tests.plugins.default.default_preemption.made import (
    a_budget,
    a_preempting_cluster,
    a_running,
    an_important,
    plan_of,
)

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
