"""Host ports in use, as pods come and go, also many on one port."""

from __future__ import annotations

import pytest

from mooring.objects.placed import placed
from mooring.state import State
from mooring.state.row_counts import FEW_ROWS
from mooring.testing import a_node_object, a_pod

PORT = ("0.0.0.0", "TCP", 80)


def a_state(nodes: int) -> State:
    state = State()
    for number in range(nodes):
        state.set_node(a_node_object(f"n{number}"))
    return state


def taken(state: State) -> set[str]:
    mask = state.nodes.where_port_taken([PORT])
    return {name for name, is_taken in zip(state.nodes.names, mask, strict=True) if is_taken}


@pytest.mark.parametrize("count", [1, FEW_ROWS, FEW_ROWS + 1, 3 * FEW_ROWS])
def test_every_holder_is_seen_until_it_goes(count):
    state = a_state(count)
    pods = [placed(a_pod(ports=[80]), f"n{number}") for number in range(count)]
    for at, pod in enumerate(pods):
        state.set_pod(pod)
        assert taken(state) == {f"n{number}" for number in range(at + 1)}
    for number in range(count, 2 * count):  # the table grows under a mask that is kept
        state.set_node(a_node_object(f"n{number}"))
    state.set_pod(placed(a_pod(uid="late", ports=[80]), f"n{2 * count - 1}"))
    assert taken(state) == {*(pod.node for pod in pods), f"n{2 * count - 1}"}
    for uid in [*(pod.uid for pod in pods), "late"]:
        state.remove_pod(uid)
    assert taken(state) == set()


def test_two_pods_on_one_port_hold_it_until_both_are_gone():
    state = a_state(1)
    for uid in ("a", "b"):
        state.set_pod(placed(a_pod(uid=uid, ports=[80]), "n0"))
    state.remove_pod("a")
    assert taken(state) == {"n0"}
    state.remove_pod("b")
    assert taken(state) == set()


def test_pods_of_a_what_if_hold_and_free_ports_only_inside_it():
    state = a_state(2)
    running = placed(a_pod(uid="running", ports=[80]), "n0")
    state.set_pod(running)
    with state.what_if("n0", without=[running]):
        assert taken(state) == set()
    with state.what_if("n1", adding=[placed(a_pod(ports=[80]), "n1")]):
        assert taken(state) == {"n0", "n1"}
    assert taken(state) == {"n0"}


def test_a_node_that_leaves_takes_its_ports_with_it():
    state = a_state(1)
    state.set_pod(placed(a_pod(ports=[80]), "n0"))
    state.remove_node("n0")
    state.set_node(a_node_object("other"))  # on the row that became free
    assert taken(state) == set()
    state.set_node(a_node_object("n0"))
    assert taken(state) == {"n0"}


def test_some_of_the_nodes_can_be_read():
    state = a_state(4)
    state.set_pod(placed(a_pod(ports=[80]), "n2"))
    some = state.nodes.take(state.nodes.rows[[2, 0]])
    assert some.where_port_taken([PORT]).tolist() == [True, False]
