"""What extenders returned is applied to the state as it is when the decision is taken."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import force_setattr

from mooring.engine import ExtenderResults, ExtenderScores, Profile, decide
from mooring.framework import UNRESOLVABLE, Plan, Plugin, Point, Rejection
from mooring.testing import a_cluster, a_node, a_pod

TOO_HOT = Rejection("too hot")
LEAKS = Rejection("leaks", code=UNRESOLVABLE)


class NoC(Plugin):
    """Refuses node c."""

    def filter(self, pod: Any, node: Any, cycle: Any) -> Rejection | None:
        return Rejection("is c") if node.name == "c" else None


class PrefersA(Plugin):
    """Node a has 50 points."""

    def score(self, pod: Any, node: Any, cycle: Any) -> int:
        return 50 if node.name == "a" else 0


class MakesRoom(Plugin):
    """Would evict wherever that could help."""

    def post_filter(self, pod: Any, refused: Any, what_if: Any) -> Plan:
        return Plan(message=" ".join(sorted(node.name for node in refused.resolvable_nodes())))


def a_profile(percentage: int | None = None, **options: Any) -> Profile:
    points: dict[Point, list[tuple[Plugin, int]]] = {
        Point.FILTER: [(NoC(), 0)],
        Point.SCORE: [(PrefersA(), 2)],
        Point.POST_FILTER: [(MakesRoom(), 0)],
    }
    return Profile("p", points, percentage, **options)


def state() -> Any:
    return a_cluster(a_node("a"), a_node("b"), a_node("c")).state


def results(*sent: str, **fields: Any) -> ExtenderResults:
    return ExtenderResults(frozenset(sent), **fields)


CHOICES: dict[str, tuple[ExtenderResults, str | None, int]] = {
    "nodes that were not refused are judged by plugins": (results("a", "b"), "a", 100),
    "a refused node is out, and a single one left is not scored": (results("a", "b", rejected={"a": TOO_HOT}), "b", 0),
    "a score counts ten times its weight": (results("a", "b", scores=(ExtenderScores("x", 3, {"b": 4}),)), "b", 120),
    "scores of several extenders and of plugins add up": (
        results("a", "b", scores=(ExtenderScores("x", 1, {"b": 6}), ExtenderScores("y", 1, {"b": 3, "a": 1}))),
        "a",
        110,
    ),
    "a score for a node that is out is of no use": (
        results("a", "b", scores=(ExtenderScores("x", 9, {"c": 9}),)),
        "a",
        100,
    ),
    "a node that was not sent is not taken": (results("b"), "b", 0),
    "what filters refuse stays refused": (results("a", "b", "c", rejected={"a": LEAKS, "b": LEAKS}), None, 0),
}


@pytest.mark.parametrize(("returned", "node", "total"), CHOICES.values(), ids=CHOICES.keys())
def test_the_choice(returned, node, total):
    """4.3.8: extenders filter the remaining nodes in order."""
    decision = decide(a_profile(), a_pod(), state(), extender_results=returned)
    assert (decision.node, decision.total) == (node, total)


def test_the_winners_scores_name_the_extender():
    returned = results("a", "b", scores=(ExtenderScores("http://x", 3, {"b": 4}),))
    score = decide(a_profile(), a_pod(), state(), extender_results=returned).scores["http://x"]
    assert (score.raw, score.normalized, score.weight, score.weighted) == (4, 40, 3, 120)


def test_refusals_are_counted_with_those_of_filters_and_all_are_named():
    """4.3.8: extenders filter the remaining nodes in order."""
    decision = decide(
        a_profile(), a_pod(), state(), extender_results=results("a", "b", rejected={"a": TOO_HOT, "b": TOO_HOT})
    )
    assert decision.message.startswith("0/3 nodes are available: 1 is c, 2 too hot.")
    assert decision.rejectors == (frozenset({"NoC", "Extender"}), frozenset())
    assert decision.rejections["a"] == ("Extender", TOO_HOT)
    assert not decision.is_premature


def test_only_where_the_extender_sees_a_way_is_room_sought():
    decision = decide(
        a_profile(), a_pod(), state(), extender_results=results("a", "b", rejected={"a": TOO_HOT, "b": LEAKS})
    )
    assert decision.post_filtered.message == "a c"


def test_a_node_dropped_without_a_word_has_no_reason():
    silent = Rejection(code=UNRESOLVABLE)
    decision = decide(
        a_profile(), a_pod(), state(), extender_results=results("a", "b", rejected={"a": silent, "b": silent})
    )
    assert decision.message.startswith("0/3 nodes are available: 1 is c.")
    assert "Extender" in decision.rejectors[0]


def test_a_refusal_is_premature_where_a_node_passed_that_was_not_sent():
    decision = decide(a_profile(), a_pod(), state(), extender_results=results("a", rejected={"a": TOO_HOT}))
    assert decision.is_refused
    assert decision.is_premature


def test_the_nominated_node_is_taken_alone_unless_it_was_refused():
    pod = a_pod()
    force_setattr(pod.status, "nominated_node_name", "b")
    assert decide(a_profile(), pod, state(), extender_results=results("b")).node == "b"
    out = results("a", "b", rejected={"b": TOO_HOT}, is_nominated_out=True)
    assert decide(a_profile(), pod, state(), extender_results=out).node == "a"


def test_where_extenders_choose_one_feasible_node_is_not_enough():
    points = {Point.FILTER: [(NoC(), 0)]}
    assert decide(Profile("p", points, 100), a_pod(), state()).feasible_nodes == 1
    assert decide(Profile("p", points, 100, is_extended=True), a_pod(), state()).feasible_nodes == 2
