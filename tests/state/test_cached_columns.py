"""A kept column says what its judge would say now, and asks it only about what moved."""

from __future__ import annotations

from typing import Any

import numpy as np

from mooring.objects.placed import placed
from mooring.state import State
from mooring.testing import a_node_object, a_pod

NODES = [f"node-{number}" for number in range(5)]


class Judge:
    """Counts a node's pods, and notes whom it was asked about."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def all(self, nodes: Any) -> Any:
        self.asked.extend(nodes.names)
        return np.array([len(node.pods) for node in nodes], np.int64)

    def one(self, node: Any) -> int:
        self.asked.append(node.name)
        return len(node.pods)


def a_state() -> State:
    state = State()
    for name in NODES:
        state.set_node(a_node_object(name))
    return state


def read(state: State, judge: Judge, nodes: Any = None) -> list[int]:
    judge.asked.clear()
    counts: list[int] = (nodes or state.nodes).cached("pods", judge.all, judge.one).tolist()
    return counts


def test_only_nodes_whose_pods_moved_are_judged_again():
    state, judge = a_state(), Judge()
    assert read(state, judge) == [0, 0, 0, 0, 0]
    assert judge.asked == NODES
    state.set_pod(placed(a_pod("web"), "node-2"))
    assert read(state, judge) == [0, 0, 1, 0, 0]
    assert judge.asked == ["node-2"]
    assert read(state, judge) == [0, 0, 1, 0, 0]
    assert judge.asked == []


def test_a_node_that_comes_late_is_judged_too():
    state, judge = a_state(), Judge()
    read(state, judge)
    state.set_node(a_node_object("node-5"))
    state.set_pod(placed(a_pod("web"), "node-5"))
    assert read(state, judge) == [0, 0, 0, 0, 0, 1]
    assert set(judge.asked) == {"node-5"}


def test_a_row_that_is_used_again_forgets_the_node_that_was_there():
    state, judge = a_state(), Judge()
    state.set_pod(placed(a_pod("web", uid="1"), "node-1"))
    read(state, judge)
    state.remove_pod("1")
    state.remove_node("node-1")
    assert read(state, judge) == [0, 0, 0, 0]
    state.set_node(a_node_object("other"))
    assert dict(zip(state.nodes.names, read(state, judge), strict=True))["other"] == 0


def test_some_of_the_nodes_can_be_read():
    state, judge = a_state(), Judge()
    state.set_pod(placed(a_pod("web"), "node-3"))
    assert read(state, judge, state.nodes.take(np.array([3, 1]))) == [1, 0]


def test_more_nodes_than_a_table_begins_with_are_kept():
    state, judge = a_state(), Judge()
    read(state, judge)
    for number in range(5, 200):
        state.set_node(a_node_object(f"node-{number}"))
    state.set_pod(placed(a_pod("web"), "node-150"))
    assert sum(read(state, judge)) == 1


def test_what_a_what_if_moves_is_not_kept():
    state, judge = a_state(), Judge()
    read(state, judge)
    with state.what_if("node-0", adding=[placed(a_pod("supposed"), "node-0")]):
        assert read(state, judge) == [1, 0, 0, 0, 0]
    assert read(state, judge) == [0, 0, 0, 0, 0]


def test_a_kept_column_cannot_be_written_to():
    state, judge = a_state(), Judge()
    assert not state.nodes.cached("pods", judge.all, judge.one).flags.writeable
