"""One action of the other scheduler against one decision of ours."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.engine.builders import a_profile, a_state, made, rejecting, scoring

from mooring.engine import Decision, decide
from mooring.framework import Candidate, Plan, Plugin, Refusal, Rejection
from mooring.objects.placed import PlacedPod, placed
from mooring.scheduler.shadow.judging import (
    Cause,
    Judgement,
    Result,
    is_looked_at,
    judge_binding,
    judge_nomination,
    judge_refusal,
)
from mooring.testing import a_pod

EVERYTHING = 1_000_000
NODES = ("a", "b", "c")


def decided(*plugins: Plugin | tuple[Plugin, int], nodes: tuple[str, ...] = NODES, nominated: str = "") -> Decision:
    profile = a_profile(*plugins)
    return decide(profile, a_pod("web", nominated=nominated), a_state(*nodes)).keep()


def judged(node: str, *plugins: Plugin | tuple[Plugin, int]) -> Judgement:
    return judge_binding(decided(*plugins), node, EVERYTHING)


def test_the_best_node_agrees():
    judgement = judged("b", scoring("Taste", {"a": 1, "b": 9, "c": 3}))
    assert (judgement.result, judgement.why) == (Result.AGREE, "best")


def test_a_tie_agrees_whichever_they_took():
    for node in ("a", "c"):
        judgement = judged(node, scoring("Taste", {"a": 9, "b": 1, "c": 9}))
        assert (judgement.result, judgement.why) == (Result.AGREE, "one of 2 equally good")


def test_a_lesser_node_differs_and_names_the_plugin_with_the_largest_gap():
    judgement = judged(
        "a", (scoring("Light", {"a": 20, "b": 10, "c": 0}), 1), (scoring("Heavy", {"a": 0, "b": 9, "c": 3}), 3)
    )
    assert (judgement.result, judgement.cause, judgement.plugin) == (Result.DIFFER, Cause.SCORE, "Heavy")
    assert judgement.why == "a is worth 20, b 37: Heavy gives 0 against 27"
    assert judgement.evidence["rank"] == 2
    assert [(row["plugin"], row["weight"], row["gap"]) for row in judgement.evidence["scores"]] == [
        ("Heavy", 3, 27),
        ("Light", 1, -10),
    ]


def test_a_node_that_a_filter_refuses_differs_with_its_words():
    judgement = judged(
        "a", rejecting("Wall", {"a": Rejection("node(s) behind a wall")}), scoring("Taste", dict.fromkeys(NODES, 1))
    )
    assert (judgement.result, judgement.cause, judgement.plugin) == (Result.DIFFER, Cause.VERDICT, "Wall")
    assert judgement.why == "Wall refuses a: node(s) behind a wall"
    assert judgement.evidence["rejection"]["reasons"] == ["node(s) behind a wall"]


def test_a_pod_that_a_pre_filter_refuses_as_a_whole_differs():
    refusing = made("Never", pre_filter=lambda _pod, _cycle: Refusal("not today"))
    judgement = judged("a", refusing)
    assert (judgement.cause, judgement.plugin, judgement.why) == (
        Cause.VERDICT,
        "Never",
        "Never refuses the pod: not today",
    )


def test_the_only_feasible_node_agrees():
    walls = {"a": Rejection("wall"), "b": Rejection("wall")}
    assert judged("c", rejecting("Wall", walls)).result is Result.AGREE
    assert judged("b", rejecting("Wall", walls)).plugin == "Wall"


def test_a_plugin_of_ours_that_fails_is_a_difference_that_names_it():
    def broken(_pod: Any, _node: Any, _cycle: Any) -> Any:
        raise RuntimeError("out of order")

    judgement = judged("a", made("Broken", filter=broken))
    assert (judgement.result, judgement.cause, judgement.plugin) == (Result.DIFFER, Cause.FAULT, "Broken")


def test_a_decision_for_the_nominated_node_has_no_verdict_on_others():
    decision = decided(scoring("Taste", {"a": 1, "b": 2, "c": 3}), nominated="a")
    assert is_looked_at(decision, "a")
    assert not is_looked_at(decision, "b")
    assert judge_binding(decision, "b", EVERYTHING).result is Result.NOT_COMPARABLE


@given(st.lists(st.integers(0, 100), min_size=1, max_size=40), st.data(), st.integers(1, 50))
def test_they_agree_exactly_where_no_node_is_worth_more(scores: list[int], data: st.DataObject, looked_at: int):
    by_node = {f"n{number}": score for number, score in enumerate(scores)}
    node = data.draw(st.sampled_from(sorted(by_node)))
    judgement = judge_binding(decided(scoring("Taste", by_node), nodes=tuple(by_node)), node, looked_at)
    assert (judgement.result is Result.AGREE) == (by_node[node] == max(scores))
    if judgement.result is Result.AGREE:
        return
    # The best of a sample of that size has so many nodes, itself among them, that are no better.
    could_be_best = looked_at < len(scores) and sum(score <= by_node[node] for score in scores) >= looked_at
    assert (judgement.result is Result.SAMPLED) == could_be_best
    assert judgement.plugin == "Taste"
    table = judgement.evidence["scores"]
    assert sum(row["gap"] for row in table) == max(scores) - by_node[node]


# Refusals


def nowhere(reason: str = "node(s) behind a wall") -> Plugin:
    return rejecting("Wall", {name: Rejection(reason) for name in NODES})


@pytest.mark.parametrize(
    ("message", "result"),
    [
        ("0/3 nodes are available: 3 node(s) behind a wall.", Result.AGREE),
        ("0/3 nodes are available: 3 Insufficient cpu.", Result.WORDS),
    ],
)
def test_both_refuse(message: str, result: Result):
    judgement = judge_refusal(decided(nowhere()), message)
    assert judgement.result is result
    assert (message in judgement.why) == (result is Result.WORDS)


def test_they_refuse_what_we_would_place():
    judgement = judge_refusal(decided(rejecting("Wall", {"a": Rejection("w"), "b": Rejection("w")})), "0/3 nodes")
    assert (judgement.result, judgement.cause) == (Result.DIFFER, Cause.PLACED)
    assert judgement.why == "this scheduler chooses c; theirs: 0/3 nodes"


# Room


def victim(name: str, priority: int = 1) -> PlacedPod:
    return placed(a_pod(name, node="a", priority=priority))


def making_room(nominate: str, candidates: Mapping[str, tuple[PlacedPod, ...]]) -> Plugin:
    plan = Plan(
        nominate, candidates[nominate], candidates=tuple(Candidate(node, who) for node, who in candidates.items())
    )
    return made("Mover", post_filter=lambda _pod, _evidence, _what_if: plan)


@pytest.mark.parametrize(
    ("node", "result", "why"),
    [
        ("a", Result.AGREE, "room is made on a"),
        ("b", Result.AGREE, "room is made on b, which hurts no more than others"),
        ("c", Result.DIFFER, "they make room on c (2 would go), we on a (1)"),
        ("d", Result.DIFFER, "they make room on d, where evicting pods would not help by our rules; we on a"),
    ],
)
def test_where_room_is_made(node: str, result: Result, why: str):
    plugins = nowhere(), making_room("a", {"a": (victim("x"),), "b": (victim("y"),), "c": (victim("z"), victim("u"))})
    judgement = judge_nomination(decided(*plugins), node, None)
    assert (judgement.result, judgement.why) == (result, why)


def test_room_where_we_would_make_none_names_the_plugin_that_saw_no_way():
    helpless = made("Helpless", post_filter=lambda _pod, _evidence, _what_if: Refusal("no way"))
    judgement = judge_nomination(decided(nowhere(), helpless), "a", None)
    assert (judgement.result, judgement.cause, judgement.plugin) == (Result.DIFFER, Cause.ROOM, "Helpless")


def test_room_for_a_pod_that_we_would_place():
    judgement = judge_nomination(decided(), "a", None)
    assert (judgement.result, judgement.cause) == (Result.DIFFER, Cause.PLACED)


def test_the_same_room_in_other_words():
    decision = decided(nowhere(), making_room("a", {"a": (victim("x"),)}))
    assert judge_nomination(decision, "a", decision.message).result is Result.AGREE
    assert judge_nomination(decision, "a", "something else").result is Result.WORDS
