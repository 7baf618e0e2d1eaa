"""RandomChoice: half of the nodes, a number from 0 to 99 each, all of it drawn from what the decision is given."""

from __future__ import annotations

import pytest
from tests.plugins.verdicts import normalized, requeues, verdict

from mooring.base.errors import OperatorMistake
from mooring.framework import UNRESOLVABLE
from mooring.plugins.examples.random_choice import NOT_DRAWN, RandomChoice
from mooring.testing import a_cluster, a_cycle, a_node, a_node_object, a_plugin, a_pod

NODES = [a_node(f"node-{number}") for number in range(400)]


def drawn(plugin: RandomChoice, *, pod=None, attempt: int = 1) -> set[str]:
    """The names of the nodes that pass."""
    pod = pod or a_pod("web", uid="1")
    return {node.name for node in NODES if plugin.filter(pod, node, a_cycle(pod, attempt=attempt)) is None}


def scores(plugin: RandomChoice, *, attempt: int = 1) -> list[int]:
    pod = a_pod("web", uid="1")
    return [plugin.score(pod, node, a_cycle(pod, attempt=attempt)) for node in NODES]


def test_about_half_of_the_nodes_pass():
    assert 160 < len(drawn(a_plugin(RandomChoice))) < 240


def test_a_node_that_is_not_drawn_is_refused_and_eviction_cannot_help():
    plugin, pod = a_plugin(RandomChoice), a_pod("web", uid="1")
    missed = next(node for node in NODES if node.name not in drawn(plugin))
    assert verdict(plugin.filter(pod, missed, a_cycle(pod))) == (UNRESOLVABLE, (NOT_DRAWN,))


def test_scores_are_spread_from_0_to_99():
    found = scores(a_plugin(RandomChoice))
    assert min(found) >= 0
    assert max(found) <= 99
    assert len(set(found)) > 80


def test_whether_a_node_passes_is_independent_of_its_score():
    plugin = a_plugin(RandomChoice)
    passing = drawn(plugin)
    odd = [score % 2 for node, score in zip(NODES, scores(plugin), strict=True) if node.name in passing]
    assert 0.35 < sum(odd) / len(odd) < 0.65


def test_the_same_seed_pod_and_attempt_draw_the_same():
    assert drawn(a_plugin(RandomChoice, seed=7)) == drawn(a_plugin(RandomChoice, seed=7))
    assert scores(a_plugin(RandomChoice, seed=7)) == scores(a_plugin(RandomChoice, seed=7))


def test_another_seed_another_pod_or_another_attempt_draws_again():
    plugin = a_plugin(RandomChoice)
    first = drawn(plugin)
    assert drawn(a_plugin(RandomChoice, seed=1)) != first
    assert drawn(plugin, pod=a_pod("web", uid="2")) != first
    assert drawn(plugin, attempt=2) != first
    assert scores(plugin, attempt=2) != scores(plugin)


def test_the_pod_goes_to_the_drawn_node_with_the_highest_number():
    decision = a_cluster(*(a_node(f"node-{n}") for n in range(20)), plugins=[a_plugin(RandomChoice)]).decide(a_pod())
    final = normalized(decision, "RandomChoice")
    assert 1 < len(final) < 20
    assert final[decision.node or ""] == max(final.values())


def refused_everywhere() -> str:
    """A uid for which the only node is not drawn at the first attempt."""
    plugin, node = a_plugin(RandomChoice), a_node("node-1")
    uids = (str(number) for number in range(1000))
    return next(uid for uid in uids if plugin.filter(pod := a_pod("web", uid=uid), node, a_cycle(pod)) is not None)


def test_a_pod_without_a_node_is_rejected_with_a_retry_time():
    cluster = a_cluster(a_node("node-1"), plugins=[a_plugin(RandomChoice, retry_seconds=2.5)])
    decision = cluster.schedule(a_pod("web", uid=refused_everywhere()))
    assert decision.node is None
    assert decision.message.startswith("0/1 nodes are available: 1 node(s) were not drawn.")
    assert [remedy.retry_after for remedy in decision.post_filtered.remedies] == [2.5]


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [(None, a_node_object(), True), (a_node_object(), a_node_object(labels={"a": "b"}), False)],
    ids=["a new node is another draw", "a label changes no draw"],
)
def test_what_wakes_a_refused_pod(before, after, expected):
    assert requeues(a_plugin(RandomChoice), a_pod(), before, after) is expected


@pytest.mark.parametrize("wrong", [{"seed": "seven"}, {"retry_seconds": 0}])
def test_arguments_that_are_wrong_are_refused(wrong):
    with pytest.raises(OperatorMistake):
        a_plugin(RandomChoice, **wrong)
