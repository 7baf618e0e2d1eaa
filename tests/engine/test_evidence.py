"""A decision explains itself: where the pod went and why, and which outside data was used."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from tests.engine.builders import a_profile, a_state, made, rejecting, scoring

from mooring.base.clock import ManualClock
from mooring.engine import DecisionCache, decide
from mooring.engine.cycle import EngineCycle
from mooring.engine.filtering import feasible
from mooring.framework import Published, Rejection, Rejections
from mooring.testing import a_pod


def test_a_placement_has_scores_per_plugin_and_the_rejected_nodes() -> None:
    profile = a_profile(rejecting("Full", {"c": Rejection("full")}), (scoring("Best", {"a": 10, "b": 20}), 3))
    decision = decide(profile, a_pod("web", uid="u1"), a_state("a", "b", "c"), attempt=2)
    evidence = decision.evidence()
    assert evidence == {
        "pod": "default/web",
        "uid": "u1",
        "profile": "test",
        "attempt": 2,
        "node": "b",
        "nodes": 3,
        "evaluatedNodes": 3,
        "feasibleNodes": 2,
        "total": 60,
        "scores": [{"plugin": "Best", "raw": 20, "normalized": 20, "weight": 3, "weighted": 60}],
        "rejections": [{"plugin": "Full", "reasons": ["full"], "code": "Unschedulable", "count": 1, "nodes": ["c"]}],
    }
    assert json.loads(json.dumps(evidence)) == evidence


def test_rejections_of_a_placed_pod_are_released_by_the_next_decision_unless_kept() -> None:
    profile, state = a_profile(rejecting("Full", {"b": Rejection("full")})), a_state("a", "b")
    cache = DecisionCache()
    released = decide(profile, a_pod(), state, cache=cache)
    kept = decide(profile, a_pod(), state, cache=cache).keep()
    decide(profile, a_pod(), state, cache=cache)
    assert released.rejections == {}
    assert dict(kept.rejections) == {"b": ("Full", Rejection("full"))}


def test_the_versions_of_outside_data_are_recorded_and_do_not_move_within_a_cycle() -> None:
    load: Published[dict[str, int]] = Published(ManualClock())
    other: Published[int] = Published(ManualClock())
    load.publish({"a": 1, "b": 9})
    load.publish({"a": 10, "b": 2})

    def pre_filter(pod: Any, cycle: Any) -> Any:
        cycle.value(other)
        return None

    def score(pod: Any, node: Any, cycle: Any) -> Any:
        return cycle.value(load)[node.name]

    decision = decide(a_profile(made("Load", pre_filter=pre_filter, score=score)), a_pod(), a_state("a", "b"))
    assert decision.node == "a"
    assert decision.used == {"Load": 0, "Load#2": 2}
    load.publish({})
    assert decision.cycle.shown.value(load) == {"a": 10, "b": 2}
    assert decision.evidence()["used"] == {"Load": 0, "Load#2": 2}


def test_a_reason_for_every_node_does_not_make_the_evidence_endless() -> None:
    chatty = made("Chatty", filter=lambda _pod, node, _cycle: Rejection(f"{node.name} is busy"))
    decision = decide(a_profile(chatty), a_pod(), a_state(*(f"n{number}" for number in range(150))))
    evidence = decision.evidence()
    assert (len(evidence["rejections"]), evidence["rejectionsLeftOut"]) == (100, 50)
    assert len(decision.rejections) == 150


@pytest.mark.parametrize(
    "rejected", [{}, {"Full": "bd"}, {"Full": "c", "Tainted": "abd"}, {"Full": "abe", "Tainted": "cd"}]
)
def test_groups_read_off_masks_equal_those_of_a_verdict_per_node(rejected: dict[str, str]) -> None:
    def filter_nodes(plugin: str) -> Any:
        def reject(_pod: Any, nodes: Any, _cycle: Any) -> Any:
            mask = np.array([name in rejected.get(plugin, "") for name in nodes.names])
            yield Rejections(mask, f"{plugin} is why", unresolvable=plugin == "Tainted")

        return reject

    plugins = [made(name, filter_nodes=filter_nodes(name)) for name in ("Full", "Tainted")]
    found = feasible(EngineCycle(a_profile(*plugins), a_pod(), a_state(*"abcdef")))
    groups = found.groups_of_whole_steps(named=2)
    assert groups == found.rejected().groups(most=10, named=2)
    assert sum(group.node_count for group in groups) == sum(map(len, rejected.values()))
