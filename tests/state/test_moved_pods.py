"""What a what-if moves: the counts that are read in it, and no others."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from msgspec.structs import force_setattr

from mooring.framework import PodsWhere
from mooring.objects.placed import placed
from mooring.state import State
from mooring.state.tallies import StandingTally
from mooring.testing import a_node_object, a_pod

WEB = PodsWhere(selectors=((("app", "In", ("web",)),),))


@pytest.fixture
def moved(monkeypatch: pytest.MonkeyPatch) -> list[StandingTally]:
    """The counts that were moved, in order."""
    found: list[StandingTally] = []
    count = StandingTally.count

    def counted(self: StandingTally, row: int, pods: int) -> None:
        found.append(self)
        count(self, row, pods)

    monkeypatch.setattr(StandingTally, "count", counted)
    return found


def a_state() -> State:
    state = State()
    state.set_node(a_node_object("a", labels={"zone": "a"}))
    state.set_pod(placed(a_pod("one", labels={"app": "web"}, uid="1"), "a"))
    state.set_pod(placed(a_pod("two", labels={"app": "web"}, uid="2"), "a"))
    return state


def all_but(number: int) -> PodsWhere:
    return PodsWhere(selectors=((("app", "NotIn", (f"x{number}",)),),))


def test_counts_that_nothing_reads_are_not_moved(moved: list[StandingTally]) -> None:
    state = a_state()
    others = [state.tally(all_but(number), "zone") for number in range(100)]
    read = state.tally(WEB, "zone")
    [one, two] = state.placed(WEB)
    with state.what_if("a", without=[one, two], adding=[placed(a_pod(labels={"app": "web"}), "a")]) as evicted:
        assert read.total == 1
        evicted.reprieve(one)
        assert read.total == 2
        evicted.evict(one)
        evicted.reprieve(one)
    assert set(moved) == {read}
    assert [tally.total for tally in (read, *others)] == [2] * 101


READS: dict[str, Any] = {
    "total": (lambda it: it.tally.total, 1),
    "lowest": (lambda it: it.tally.lowest, 1),
    "without_key": (lambda it: it.state.tally(WEB, "rack").without_key, 1),
    "at": (lambda it: it.tally.at(it.state.node("a")), 1),
    "at_rows": (lambda it: it.tally.at_rows(it.state.nodes).tolist(), [1]),
    "compute": (lambda it: it.tally.compute(it.state.nodes, lambda counts: counts * 10).tolist(), [10]),
    "lowest_at": (lambda it: it.tally.lowest_at(it.state.nodes), 1),
    "total_at": (lambda it: it.tally.total_at(it.state.nodes), 1),
    "on": (lambda it: it.tally.on(it.state.node("a")), 1),
    "on_rows": (lambda it: it.tally.on_rows(it.state.nodes).tolist(), [1]),
    "per_domain": (lambda it: it.tally.per_domain(), {"a": 1}),
    "the pods": (lambda it: [pod.name for pod in it.state.placed(WEB)], ["one"]),
    "a sum of requests": (lambda it: it.state.total(WEB, "pods"), 1),
}


@pytest.mark.parametrize("is_read_before", [True, False])
@pytest.mark.parametrize(("read", "expected"), READS.values(), ids=READS.keys())
def test_what_is_read_is_up_to_date(read: Any, expected: Any, is_read_before: bool) -> None:
    state = a_state()
    it = SimpleNamespace(state=state, tally=state.tally(WEB, "zone"))
    before = read(it) if is_read_before else None
    two = state.placed(WEB)[1]
    with state.what_if("a", without=[two]):
        assert read(it) == expected
    if is_read_before:
        assert read(it) == before


def test_a_count_that_is_made_in_a_what_if_counts_a_terminating_pod_that_was_added() -> None:
    """As in kube-scheduler's dry runs; and nothing of it stays."""
    state = a_state()
    going = a_pod(labels={"app": "web"})
    force_setattr(going.metadata, "deletion_timestamp", "2026-01-01T00:00:00Z")
    where = PodsWhere(selectors=WEB.selectors, terminating=False, what_if_counts_all=True)
    with state.what_if("a", adding=[placed(going, "a")]):
        made, node = state.tally(where, "zone"), next(iter(state.nodes))
        assert (made.total, made.on(node)) == (3, 3)
    assert (made.total, made.on(node)) == (2, 2)


def test_nested_what_ifs_move_what_was_read_between_them() -> None:
    state = a_state()
    first, second = state.tally(WEB, "zone"), state.tally(all_but(1), "zone")
    [one, two] = state.placed(WEB)
    with state.what_if("a", without=[one]):
        assert first.total == 1
        with state.what_if("a", without=[two]):
            assert second.total == 0
        assert (first.total, second.total) == (1, 1)
    assert (first.total, second.total) == (2, 2)
