"""Nodes in the table: how they come, change and go, and what their rows show."""

from __future__ import annotations

import io
from collections.abc import Callable

import numpy as np
import pytest

from mooring.base import log
from mooring.objects.placed import placed
from mooring.state import State
from mooring.state.table import MOST_LABEL_COLUMNS
from mooring.testing import a_node_object, a_pod


def a_state(*names: str) -> State:
    state = State()
    for name in names:
        state.set_node(a_node_object(name))
    return state


def test_a_new_node_has_no_predecessor_and_a_replaced_one_returns_it() -> None:
    state, old, new = State(), a_node_object("n", cpu="4"), a_node_object("n", cpu="8")
    assert state.set_node(old) is None
    assert state.set_node(new) is old
    assert state.node_count == 1
    view = state.node("n")
    assert view is not None
    assert view.object is new
    assert view.allocatable("cpu") == 8000


def recording(tested: list[str | None]) -> Callable[[str | None], bool]:
    """A test that passes everything and records what it tested."""

    def test(value: str | None) -> bool:
        tested.append(value)
        return True

    return test


def test_there_is_one_view_per_node_as_long_as_it_exists() -> None:
    state = a_state("n")
    view = state.node("n")
    state.set_node(a_node_object("n", labels={"zone": "east"}))
    assert state.node("n") is view
    assert next(iter(state.nodes)) is view


def test_amounts_are_plain_numbers_for_those_who_look_at_one_node() -> None:
    view = a_state("n").node("n")
    assert view is not None
    assert type(view.allocatable("cpu")) is int
    assert type(view.requested("pods")) is int
    assert view.free("memory") == 16 * 2**30
    assert view.allocatable("example.com/unknown") == 0
    assert view.free("example.com/unknown") == 0


def test_the_row_of_a_removed_node_is_used_again() -> None:
    state = a_state("a", "b", "c")
    row = state.node("b").row  # type: ignore[union-attr]
    state.remove_node("b")
    assert list(state.nodes.names) == ["a", "c"]
    state.set_node(a_node_object("d"))
    assert state.node("d").row == row  # type: ignore[union-attr]
    assert list(state.nodes.names) == ["a", "d", "c"]


def test_the_view_of_a_removed_node_does_not_show_its_successor() -> None:
    state = a_state("a")
    view = state.node("a")
    assert view is not None
    state.remove_node("a")
    state.set_node(a_node_object("b", cpu="64"))
    assert view.name == "a"
    assert view.allocatable("cpu") == view.free("cpu") == 0


def test_removing_what_is_not_there_is_nothing() -> None:
    assert State().remove_node("n") is None


def test_the_table_grows_and_keeps_what_it_holds() -> None:
    state = State()
    for number in range(300):
        state.set_node(a_node_object(f"n{number}", cpu=number, labels={"number": str(number)}))
        state.set_pod(placed(a_pod(cpu="1m"), f"n{number}"))
    assert state.nodes.allocatable("cpu").tolist() == [1000 * number for number in range(300)]
    assert state.nodes.requested("cpu").tolist() == [1] * 300
    assert state.nodes.label_numbers("number", lambda number: int(number or 0)).tolist() == list(range(300))


def test_no_one_writes_into_the_table_through_a_column() -> None:
    state = a_state("a", "b")
    state.set_pod(placed(a_pod(), "a"))
    column = state.nodes.requested("pods")
    with pytest.raises(ValueError, match="read-only"):
        column += 1
    state.nodes.free("pods")[0] = 7  # what is computed belongs to the caller
    assert state.nodes.free("pods").tolist() == [109, 110]


def test_a_label_is_judged_once_per_distinct_value() -> None:
    state = State()
    for number in range(50):
        state.set_node(a_node_object(f"n{number}", labels={"zone": "east" if number % 2 else "west"}))
    tested: list[str | None] = []
    state.nodes.where_label("zone", recording(tested))
    assert sorted(tested, key=str) == [None, "east", "west"]


def test_few_rows_of_a_label_with_many_values_test_only_their_values() -> None:
    state = State()
    for number in range(50):
        state.set_node(a_node_object(f"n{number}"))
    tested: list[str | None] = []
    two = state.nodes.take(np.array([3, 4]))
    two.where_label("kubernetes.io/hostname", recording(tested))
    assert sorted(tested, key=str) == ["n3", "n4"]


def test_values_of_nodes_that_are_gone_are_not_tested() -> None:
    state = State()
    for number in range(3):
        state.set_node(a_node_object("n", labels={"number": str(number)}))
        assert state.nodes.where_label("number", lambda value, now=number: value == str(now)).all()  # type: ignore[misc]
    tested: list[str | None] = []
    state.set_node(a_node_object("other", labels={"number": "2"}))
    state.set_node(a_node_object("another", labels={"number": "2"}))
    state.nodes.where_label("number", recording(tested))
    assert set(tested) <= {None, "2"}


def test_label_columns_that_are_not_read_any_more_make_room() -> None:
    state = State()
    state.set_node(a_node_object("n", labels={"zone": "east"}))
    for number in range(2 * MOST_LABEL_COLUMNS):
        state.nodes.where_label(f"key-{number}", bool)
    assert state.nodes.where_label("zone", lambda value: value == "east").tolist() == [True]


@pytest.fixture
def logged():
    stream, before = io.StringIO(), log._settings.stream
    log.configure(stream=stream)
    yield stream
    log._settings.stream = before


def test_an_amount_that_cannot_be_read_counts_as_nothing_and_is_named(logged: io.StringIO) -> None:
    state = State()
    state.set_node(a_node_object("odd", cpu="four", memory="1Gi"))
    view = state.node("odd")
    assert view is not None
    assert (view.allocatable("cpu"), view.allocatable("memory")) == (0, 2**30)
    assert 'node="odd"' in logged.getvalue()
    assert "status.allocatable[cpu]" in logged.getvalue()


def test_an_unreadable_amount_is_named_once_however_often_the_node_reports(logged: io.StringIO) -> None:
    state = State()
    state.set_node(a_node_object("odd", cpu="four"))
    state.set_node(a_node_object("odd", cpu="four", labels={"zone": "east"}))
    assert logged.getvalue().count("invalid quantity") == 1
