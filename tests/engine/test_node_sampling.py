"""Every node by default; a share of them, round robin, where it is configured; the nominated one first."""

from __future__ import annotations

from typing import Any

import pytest
from tests.engine.builders import a_profile, a_state, made, rejecting, scoring

from mooring.engine import decide
from mooring.engine.filtering import nodes_to_find
from mooring.framework import OnlyNodes, Rejection
from mooring.testing import a_pod

EVEN = scoring("Even", dict.fromkeys([f"n{number}" for number in range(6_000)], 1))

SHARES = {
    "without a share every node": (None, 5_000, 5_000),
    "below a hundred nodes every one, whatever the share": (10, 99, 99),
    "never fewer than a hundred": (10, 500, 100),
    "a share of many": (30, 1_000, 300),
    "the adaptive share falls with the number of nodes": (0, 5_000, 500),
    "rounded down": (0, 1_000, 420),
    "to five percent at least": (0, 6_000, 300),
    "all of them": (100, 1_000, 1_000),
}


@pytest.mark.parametrize(("share", "count", "expected"), SHARES.values(), ids=SHARES.keys())
def test_how_many_feasible_nodes_are_enough(share: int | None, count: int, expected: int) -> None:
    """4.3.7: filtering stops at enough feasible nodes."""
    assert nodes_to_find(a_profile(EVEN, percentage=share), count) == expected


def test_one_node_is_enough_where_nothing_scores_and_a_share_is_set() -> None:
    """4.3.7: filtering stops at enough feasible nodes."""
    assert nodes_to_find(a_profile(percentage=100), 500) == 1
    assert nodes_to_find(a_profile(), 500) == 500


def names(count: int) -> list[str]:
    return [f"n{number}" for number in range(count)]


def test_sampling_goes_on_where_the_last_decision_ended() -> None:
    """4.3.7: filtering stops at enough feasible nodes."""
    profile, state = a_profile(EVEN, percentage=10), a_state(*names(250))
    first = decide(profile, a_pod(), state).keep()
    assert (first.evaluated_nodes, first.feasible_nodes, first.next_start) == (100, 100, 100)
    second = decide(profile, a_pod(), state, start=first.next_start).keep()
    third = decide(profile, a_pod(), state, start=second.next_start).keep()
    assert third.next_start == 50
    looked_at = [decision.columns().nodes for decision in (first, second, third)]  # type: ignore[union-attr]
    assert list(looked_at[0]) == names(250)[:100]
    assert list(looked_at[1]) == names(250)[100:200]
    assert list(looked_at[2]) == names(250)[200:] + names(250)[:50]


def test_rejected_nodes_are_passed_until_enough_are_feasible() -> None:
    """4.3.7: filtering stops at enough feasible nodes."""
    every_second = rejecting("Odd", {f"n{number}": Rejection("odd") for number in range(1, 400, 2)})
    profile, state = a_profile(EVEN, every_second, percentage=10), a_state(*names(400))
    decision = decide(profile, a_pod(), state, start=300)
    assert (decision.feasible_nodes, decision.evaluated_nodes, decision.next_start) == (100, 199, 99)
    rejected = decision.rejections
    assert len(rejected) == 99
    assert "n97" in rejected
    assert "n99" not in rejected, "it comes after the last one needed"


def test_where_too_few_are_feasible_every_node_is_evaluated() -> None:
    nearly_all = rejecting("Most", {name: Rejection("no") for name in names(300)[1:]})
    decision = decide(a_profile(EVEN, nearly_all, percentage=10), a_pod(), a_state(*names(300)), start=7)
    assert (decision.node, decision.evaluated_nodes, decision.next_start) == ("n0", 300, 7)


def test_sampling_among_named_nodes() -> None:
    local = made("Local", pre_filter=lambda _pod, _cycle: OnlyNodes(names(300)[:150]))
    decision = decide(a_profile(EVEN, local, percentage=10), a_pod(), a_state(*names(300)), start=290)
    assert (decision.evaluated_nodes, decision.next_start) == (100, 90)
    assert len(decision.rejections) == 150, "those that were not named"


def looking(evaluated: list[str], rejections: dict[str, Rejection] | None = None) -> Any:
    def filter(pod: Any, node: Any, cycle: Any) -> Any:
        evaluated.append(node.name)
        return (rejections or {}).get(node.name)

    return made("Looking", filter=filter)


def test_a_nominated_node_that_passes_is_taken_without_a_look_at_others() -> None:
    """4.3.6: the nominated node is evaluated first."""
    evaluated: list[str] = []
    decision = decide(
        a_profile(looking(evaluated), scoring("Score", {})), a_pod(nominated="b"), a_state("a", "b", "c"), start=2
    )
    assert evaluated == ["b"]
    assert (decision.node, decision.evaluated_nodes, decision.feasible_nodes, decision.next_start) == ("b", 1, 1, 2)


def test_a_nominated_node_that_does_not_pass_is_one_among_all() -> None:
    """4.3.6: the nominated node is evaluated first."""
    evaluated: list[str] = []
    profile = a_profile(looking(evaluated, {"b": Rejection("full")}))
    decision = decide(profile, a_pod(nominated="b"), a_state("a", "b", "c"))
    assert evaluated == ["b", "a", "b", "c"]
    assert decision.node in ("a", "c")
    assert dict(decision.rejections) == {"b": ("Looking", Rejection("full"))}


def test_a_nominated_node_that_is_gone_is_forgotten() -> None:
    assert decide(a_profile(), a_pod(nominated="gone"), a_state("a")).node == "a"


def test_a_fault_on_the_nominated_node_is_passed_over() -> None:
    """4.3.6: the nominated node is evaluated first."""
    once = iter([True])

    def filter(pod: Any, node: Any, cycle: Any) -> None:
        if next(once, False):
            raise ValueError("only the first time")

    assert decide(a_profile(made("X", filter=filter)), a_pod(nominated="b"), a_state("a", "b")).fault is None


def test_a_nominated_node_that_pre_filter_does_not_name_is_not_tried() -> None:
    local = made("Local", pre_filter=lambda _pod, _cycle: OnlyNodes({"a"}))
    assert decide(a_profile(local), a_pod(nominated="b"), a_state("a", "b")).node == "a"
