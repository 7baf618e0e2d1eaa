"""A cached column has the values of now, and computes only rows that changed."""

from __future__ import annotations

from typing import Any

import numpy as np

from mooring.objects.placed import placed
from mooring.state import State
from mooring.testing import a_node_object, a_pod

NODES = [f"node-{number}" for number in range(5)]


class Counter:
    """Counts a node's pods, and records which nodes."""

    def __init__(self) -> None:
        self.computed: list[str] = []

    def all(self, nodes: Any) -> Any:
        self.computed.extend(nodes.names)
        return np.array([len(node.pods) for node in nodes], np.int64)

    def one(self, node: Any) -> int:
        self.computed.append(node.name)
        return len(node.pods)


def a_state() -> State:
    state = State()
    for name in NODES:
        state.set_node(a_node_object(name))
    return state


def read(state: State, counter: Counter, nodes: Any = None) -> list[int]:
    counter.computed.clear()
    counts: list[int] = (nodes or state.nodes).cached("pods", counter.all, counter.one).tolist()
    return counts


def test_only_nodes_whose_pods_moved_are_judged_again():
    state, counter = a_state(), Counter()
    assert read(state, counter) == [0, 0, 0, 0, 0]
    assert counter.computed == NODES
    state.set_pod(placed(a_pod("web"), "node-2"))
    assert read(state, counter) == [0, 0, 1, 0, 0]
    assert counter.computed == ["node-2"]
    assert read(state, counter) == [0, 0, 1, 0, 0]
    assert counter.computed == []


def test_a_node_that_comes_late_is_judged_too():
    state, counter = a_state(), Counter()
    read(state, counter)
    state.set_node(a_node_object("node-5"))
    state.set_pod(placed(a_pod("web"), "node-5"))
    assert read(state, counter) == [0, 0, 0, 0, 0, 1]
    assert set(counter.computed) == {"node-5"}


def test_a_row_that_is_used_again_forgets_the_node_that_was_there():
    state, counter = a_state(), Counter()
    state.set_pod(placed(a_pod("web", uid="1"), "node-1"))
    read(state, counter)
    state.remove_pod("1")
    state.remove_node("node-1")
    assert read(state, counter) == [0, 0, 0, 0]
    state.set_node(a_node_object("other"))
    assert dict(zip(state.nodes.names, read(state, counter), strict=True))["other"] == 0


def test_some_of_the_nodes_can_be_read():
    state, counter = a_state(), Counter()
    state.set_pod(placed(a_pod("web"), "node-3"))
    assert read(state, counter, state.nodes.take(np.array([3, 1]))) == [1, 0]


def test_more_nodes_than_a_table_begins_with_are_kept():
    state, counter = a_state(), Counter()
    read(state, counter)
    for number in range(5, 200):
        state.set_node(a_node_object(f"node-{number}"))
    state.set_pod(placed(a_pod("web"), "node-150"))
    assert sum(read(state, counter)) == 1


def test_what_a_what_if_moves_is_not_kept():
    state, counter = a_state(), Counter()
    read(state, counter)
    with state.what_if("node-0", adding=[placed(a_pod("what-if"), "node-0")]):
        assert read(state, counter) == [1, 0, 0, 0, 0]
    assert read(state, counter) == [0, 0, 0, 0, 0]


def test_a_kept_column_cannot_be_written_to():
    state, counter = a_state(), Counter()
    assert not state.nodes.cached("pods", counter.all, counter.one).flags.writeable


def test_a_node_may_have_a_row_of_values():
    state = a_state()
    state.set_pod(placed(a_pod("web"), "node-3"))

    def one(node: Any) -> list[int]:
        return [node.row, len(node.pods)]

    def many(nodes: Any) -> Any:
        return np.array([one(node) for node in nodes])

    def pairs(nodes: Any) -> list[list[int]]:
        read: list[list[int]] = nodes.cached("pairs", many, one).tolist()
        return read

    assert pairs(state.nodes) == [[0, 0], [1, 0], [2, 0], [3, 1], [4, 0]]
    state.set_pod(placed(a_pod("api"), "node-1"))  # one row is computed again
    assert pairs(state.nodes.take(np.array([3, 1]))) == [[3, 1], [1, 1]]
    for number in range(5, 200):  # the table grows
        state.set_node(a_node_object(f"node-{number}"))
    assert pairs(state.nodes.take(np.array([3, 199]))) == [[3, 1], [199, 0]]
