"""An amount column shows the same sums as whole numbers, as floating point and as a bound."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mooring.state import State
from mooring.state.columns import AmountColumn
from mooring.testing import a_node_object, a_pod

ROWS = 8
steps = st.lists(
    st.tuples(st.sampled_from(["add", "put", "grow", "read"]), st.integers(0, ROWS - 2), st.integers(-50, 50)),
    max_size=60,
)


@given(steps)
def test_whatever_is_added_sums_floats_and_bound_agree(history):
    column, capacity = AmountColumn(ROWS), ROWS
    sums = [0] * ROWS
    for what, row, amount in history:
        if what == "add":
            column.add(row, amount)
            sums[row] += amount
        elif what == "put":
            column.put(row, amount)
            sums[row] = amount
        elif what == "grow":
            capacity += 1
            column.grow(capacity)
            sums.append(0)
        else:
            assert column.stays_within(amount) == (max(sums) <= amount)
            assert column.floats().data.tolist() == sums
    assert column.data.tolist() == sums
    assert column.floats().data.tolist() == sums
    assert column.stays_within(max(sums))
    assert not column.stays_within(max(sums) - 1) or max(sums) <= 0


def test_there_is_room_everywhere_until_one_node_lacks_it():
    state = State()
    for name in ("small", "large"):
        state.set_node(a_node_object(name, cpu="2" if name == "small" else "8"))
    assert state.nodes.is_room_everywhere("cpu", 2000)
    assert not state.nodes.is_room_everywhere("cpu", 2001)
    state.assume(a_pod("web", uid="1", cpu="1"), "small", 0.0)
    assert state.nodes.is_room_everywhere("cpu", 1000)
    assert not state.nodes.is_room_everywhere("cpu", 1001)
    state.forget("1")
    assert state.nodes.is_room_everywhere("cpu", 2000)


def test_no_node_has_room_for_what_no_node_offers():
    state = State()
    state.set_node(a_node_object("one"))
    assert not state.nodes.is_room_everywhere("example.com/widgets", 1)
