"""Scoring: raw, normalised, weighted, summed; and which of the best is taken."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
from tests.engine.builders import a_profile, a_state, made, rejecting, scoring

from mooring.base import log
from mooring.engine import Decision, DecisionCache, Score, decide
from mooring.framework import Plugin, Rejection, Skip, ToMax, constant_score
from mooring.testing import a_pod

NODES = ("a", "b", "c")


def decided(*plugins: Plugin | tuple[Plugin, int], seed: int = 0) -> Decision:
    return decide(a_profile(*plugins), a_pod(), a_state(*NODES), seed=seed)


def test_the_highest_sum_of_weighted_scores_wins() -> None:
    """4.3.11: scores are normalized, checked and weighted."""
    decision = decided(
        (scoring("One", {"a": 90, "b": 10, "c": 50}), 1), (scoring("Two", {"a": 0, "b": 50, "c": 10}), 3)
    )
    assert decision.node == "b"
    assert decision.scores == {"One": Score(10, 10, 10, 1), "Two": Score(50, 50, 150, 3)}
    assert decision.total == 160


def test_a_weight_of_zero_means_one() -> None:
    assert decided((scoring("One", {"a": 7, "b": 0, "c": 0}), 0)).total == 7


def test_a_declared_normalizer_scales_by_the_extremes() -> None:
    decision = decided(scoring("One", {"a": 5, "b": 10, "c": 20}, normalizer=ToMax()))
    assert decision.scores == {"One": Score(20, 100, 100, 1)}


def test_a_normalize_method_is_called_once_with_all_scores() -> None:
    def normalize(pod: Any, nodes: Any, scores: Any, cycle: Any) -> Any:
        assert list(nodes.names) == list(NODES)
        return scores.max() - scores

    assert decided(scoring("One", {"a": 500, "b": 480, "c": 450}, normalize=normalize)).scores["One"] == Score(
        450, 50, 50, 1
    )


@pytest.mark.parametrize("highest", [1, 100, 255, 256, 2**31, 2**63 - 1])
@pytest.mark.parametrize("lowest", [0, -1, -(2**63)])
def test_whole_numbers_of_any_size_are_scores_before_they_are_normalized(lowest: int, highest: int) -> None:
    def normalize(pod: Any, nodes: Any, scores: Any, cycle: Any) -> Any:
        assert scores.tolist() == [lowest, highest, 0]
        scores[:] = [0, 100, 50]  # in place: the scores are the plugin's own
        return scores

    assert decided(scoring("One", {"a": lowest, "b": highest, "c": 0}, normalize=normalize)).node == "b"


def test_scores_may_come_all_at_once() -> None:
    assert decided(made("One", score_nodes=lambda _pod, _nodes, _cycle: np.array([1, 2, 3], np.int32))).node == "c"


def small(name: str, scores: list[int], **more: Any) -> Plugin:
    """Returns scores of 32 bits."""
    return made(name, score_nodes=lambda _pod, _nodes, _cycle: np.array(scores, np.int32), **more)


def test_scores_of_32_bits_count_as_any_others() -> None:
    one, two = small("One", [1, 2, 3]), scoring("Two", {"a": 0, "b": 40, "c": 0})
    decision = decided((one, 2), (two, 1))
    assert decision.node == "b"
    assert decision.scores == {"One": Score(2, 2, 4, 2), "Two": Score(40, 40, 40, 1)}
    columns = decision.columns()
    assert columns is not None
    assert columns.total.tolist() == [2, 44, 6]


def test_scores_of_32_bits_are_checked_too() -> None:
    assert "returns an invalid score 101" in decided(small("One", [1, 101, 3])).message
    assert "returns an invalid score -1" in decided(small("One", [1, -1, 3])).message


def test_scores_of_32_bits_do_not_overflow_when_they_are_normalized_or_weighted() -> None:
    billion = 10**9
    scaled = small("Scaled", [billion, 2 * billion, 0], normalizer=ToMax())
    assert decided(scaled).scores["Scaled"] == Score(2 * billion, 100, 100, 1)
    decision = decided((small("Heavy", [50, 60, 40]), billion), (small("Light", [0, 1, 0]), 1))
    assert (decision.node, decision.total) == ("b", 60 * billion + 1)


def test_one_score_for_all_nodes_counts_as_one_each() -> None:
    alike = made("Alike", score_nodes=lambda _pod, nodes, _cycle: constant_score(7, nodes))
    decision = decided((alike, 2), (scoring("One", {"a": 1, "b": 5, "c": 3}), 1))
    assert decision.node == "b"
    assert decision.scores["Alike"] == Score(7, 7, 14, 2)
    assert decision.total == 19
    scaled = made("Scaled", score_nodes=lambda _pod, nodes, _cycle: constant_score(7, nodes), normalizer=ToMax())
    assert decided(scaled).scores["Scaled"] == Score(7, 100, 100, 1)


def test_one_score_for_all_nodes_is_checked_too() -> None:
    decision = decided(made("Alike", score_nodes=lambda _pod, nodes, _cycle: constant_score(101, nodes)))
    assert "returns an invalid score 101" in decision.message


def test_scores_out_of_range_without_normalizing_come_with_a_hint_that_is_not_in_the_message() -> None:
    decision = decided(scoring("Mine", {"a": 900, "b": 1, "c": 2}))
    assert decision.fault is not None
    assert decision.fault.hint == "set `normalizer = ToMax()` in class Mine, or return scores from 0 to 100"
    assert decision.evidence()["fault"]["hint"] == decision.fault.hint
    assert "ToMax" not in decision.message


def test_a_single_feasible_node_is_taken_without_scoring() -> None:
    """4.3.10: a single feasible node is not scored."""
    decision = decided(
        rejecting("Filter", {"a": Rejection("x"), "c": Rejection("x")}),
        made("Broken", pre_score=lambda *_: 1 / 0, score=lambda *_: 1 / 0),
    )
    assert (decision.node, decision.feasible_nodes, decision.evaluated_nodes) == ("b", 1, 3)
    assert decision.scores == {}


def test_without_score_plugins_every_node_is_as_good() -> None:
    """4.3.11: scores are normalized, checked and weighted."""
    assert {decided(seed=seed).node for seed in range(6)} == set(NODES)
    assert decided().total == 1


def test_among_equals_the_seed_decides_and_the_same_seed_decides_the_same() -> None:
    """4.3.12: any node with the highest score may be chosen."""
    scores = scoring("One", {"a": 5, "b": 1, "c": 5})
    assert [decided(scores, seed=seed).node for seed in (0, 1, 2, 1)] == ["a", "c", "a", "c"]


def test_a_plugin_whose_pre_score_skips_does_not_score() -> None:
    """4.3.11: scores are normalized, checked and weighted."""
    decision = decided(
        scoring("Skipping", {}, pre_score=lambda _pod, _nodes, _cycle: Skip()), scoring("One", {"a": 1, "b": 2, "c": 3})
    )
    assert list(decision.scores) == ["One"]


def test_pre_score_sees_the_feasible_nodes_and_leaves_a_state() -> None:
    class Counting(Plugin):
        def pre_score(self, pod: Any, feasible: Any, cycle: Any) -> Any:
            return list(feasible.names)

        def score(self, pod: Any, node: Any, cycle: Any) -> int:
            names: list[str] = cycle.score_state(self)
            return names.index(node.name)

    assert decided(rejecting("Filter", {"a": Rejection("x")}), Counting()).scores["Counting"].raw == 1


def test_columns_can_be_read_until_the_next_decision_and_kept() -> None:
    profile, state = a_profile((scoring("One", {"a": 1, "b": 2, "c": 3}), 2)), a_state(*NODES)
    cache = DecisionCache()
    read = decide(profile, a_pod(), state, cache=cache)
    columns = read.columns()
    assert columns is not None
    assert columns.nodes == NODES
    assert columns.raw["One"].tolist() == [1, 2, 3]
    assert columns.total.tolist() == [2, 4, 6]
    kept = decide(profile, a_pod(), state, cache=cache).keep()
    assert read.columns() is None
    decide(profile, a_pod(), state, cache=cache)
    again = kept.columns()
    assert again is not None
    assert again.total.tolist() == [2, 4, 6]
    assert read.scores["One"].raw == kept.scores["One"].raw == 3


def test_kept_scores_do_not_move_with_the_table() -> None:
    profile = a_profile(made("Pods", score_nodes=lambda _pod, nodes, _cycle: nodes.requested("pods")))
    state, pod = a_state(*NODES), a_pod()
    state.assume(a_pod(), "b", at=1.0)
    kept = decide(profile, pod, state).keep()
    state.assume(pod, "b", at=2.0)
    columns = kept.columns()
    assert columns is not None
    assert columns.raw["Pods"].tolist() == [0, 1, 0]


def test_at_the_highest_verbosity_each_score_is_logged(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    monkeypatch.setattr(log, "_settings", log.LogSettings(verbosity=10, stream=stream))
    decided((scoring("One", {"a": 1, "b": 2, "c": 3}), 2))
    lines = stream.getvalue()
    assert '"Plugin scored node for pod" pod="default/pod" plugin="One" node="c" score=6' in lines
    assert '"Calculated node\'s final score for pod" pod="default/pod" node="a" score=2' in lines
