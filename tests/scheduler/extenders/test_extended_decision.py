"""A decision with extenders while the cluster goes on."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, cast

import pytest

from mooring.base.errors import BudgetExceeded
from mooring.engine import Decision, ExtenderScores, Profile, decide
from mooring.engine.time_budget import TimeBudget
from mooring.framework import Plugin, Pod, Point, Rejection
from mooring.scheduler.extenders.client import ExtenderFault
from mooring.scheduler.extenders.extended_decision import OVERTAKEN, ROUNDS, decide_with
from mooring.testing import a_cluster, a_node, a_pod
from mooring.testing.builders import a_node_object

LIMIT_SECONDS = 20
"""A loop that nothing interrupts ends here, and its test fails."""


class Roomy(Plugin):
    """Refuses nodes on which there is a pod already."""

    def filter(self, pod: Pod, node: Any, cycle: Any) -> Rejection | None:
        return Rejection("taken") if node.pods else None


class Requested:
    """Extenders that accept everything, while something happens."""

    def __init__(self, meanwhile: Callable[[int], None] = lambda _: None) -> None:
        self.filtered: list[list[str]] = []
        self.scored: list[list[str]] = []
        self._meanwhile = meanwhile

    def filter_or_prioritize(self, pod: Pod) -> bool:
        return True

    async def filter(self, pod: Pod, names: Sequence[str]) -> dict[str, Rejection]:
        self.filtered.append(list(names))
        self._meanwhile(len(self.filtered))
        return {}

    async def prioritize(self, pod: Pod, names: Sequence[str]) -> tuple[ExtenderScores, ...]:
        self.scored.append(list(names))
        return (ExtenderScores("x", 1, {"b": 9}),)


async def decided(requested: Any, state: Any, pod: Pod | None = None) -> Decision:
    profile = Profile("p", {Point.FILTER: [(Roomy(), 0)]})
    return await decide_with(cast(Any, requested), decide, profile, pod or a_pod(), state, attempt=1, seed=0, start=0)


async def test_nothing_happens_meanwhile():
    requested = Requested()
    decision = await decided(requested, a_cluster(a_node("a"), a_node("b")).state)
    assert (decision.node, requested.filtered, requested.scored) == ("b", [["a", "b"]], [["a", "b"]])


async def test_a_node_that_was_taken_meanwhile_is_not_chosen():
    state = a_cluster(a_node("a"), a_node("b")).state

    def take(_: int) -> None:
        state.assume(a_pod("other", uid="other"), "b", 0.0)

    requested = Requested(take)
    decision = await decided(requested, state)
    assert decision.node == "a"
    assert len(requested.filtered) == 1


async def test_a_node_that_went_meanwhile_is_not_chosen_nor_another_on_its_row():
    state = a_cluster(a_node("a"), a_node("b")).state

    def replace(_: int) -> None:
        state.remove_node("b")
        state.set_node(a_node_object("new"))

    decision = await decided(Requested(replace), state)
    assert decision.node == "a"


async def test_where_only_nodes_are_left_that_were_in_no_request_another_is_sent():
    state = a_cluster(a_node("a")).state

    def replace(time: int) -> None:
        if time == 1:
            state.remove_node("a")
            state.set_node(a_node_object("new"))

    requested = Requested(replace)
    assert (await decided(requested, state)).node == "new"
    assert requested.filtered == [["a"], ["new"]]


async def test_a_cluster_that_never_holds_still_fails_the_attempt():
    state = a_cluster(a_node("0")).state

    def replace(time: int) -> None:
        state.remove_node(str(time - 1))
        state.set_node(a_node_object(str(time)))

    requested = Requested(replace)
    decision = await decided(requested, state)
    assert decision.fault is not None
    assert (decision.message, len(requested.filtered)) == (OVERTAKEN, ROUNDS)


async def test_the_nominated_node_is_sent_alone():
    requested = Requested()
    decision = await decided(requested, a_cluster(a_node("a"), a_node("b")).state, a_pod(nominated="a"))
    assert (decision.node, requested.filtered, requested.scored) == ("a", [["a"]], [])


async def test_a_nominated_node_that_was_taken_meanwhile_is_given_up():
    state = a_cluster(a_node("a"), a_node("b")).state

    def take(time: int) -> None:
        if time == 1:
            state.assume(a_pod("other", uid="other"), "a", 0.0)

    requested = Requested(take)
    assert (await decided(requested, state, a_pod(nominated="a"))).node == "b"
    assert requested.filtered == [["a"], ["b"]]


async def test_an_error_about_the_nominated_node_means_that_all_are_looked_at():
    def fail(time: int) -> None:
        if time == 1:
            raise ExtenderFault("down")

    requested = Requested(fail)
    assert (await decided(requested, a_cluster(a_node("a"), a_node("b")).state, a_pod(nominated="a"))).node == "b"
    assert requested.filtered == [["a"], ["a", "b"]]


@pytest.mark.parametrize("nominated", ["", "a"])
async def test_an_error_fails_the_attempt(nominated):
    def fail(_: int) -> None:
        raise ExtenderFault("down")

    decision = await decided(Requested(fail), a_cluster(a_node("a")).state, a_pod(nominated=nominated))
    assert decision.fault is not None
    assert decision.fault.plugin == "Extender"
    assert decision.message == "down"
    assert decision.rejectors == (frozenset(), frozenset())


class SlowAt(Plugin):
    """Computes for ever when its filters run for the given time."""

    def __init__(self, which: int) -> None:
        self._left = which

    def pre_filter(self, pod: Pod, cycle: Any) -> None:
        self._left -= 1
        end = time.process_time() + LIMIT_SECONDS
        while not self._left and time.process_time() < end:
            pass


EXCEEDING: dict[str, tuple[int, str, int]] = {
    "before extenders are called": (1, "", 0),
    "when the decision is made with their responses": (2, "", 1),
    "after one failed for the nominated node, before it is called for all": (2, "a", 1),
}


@pytest.mark.parametrize(("which", "nominated", "calls"), EXCEEDING.values(), ids=EXCEEDING.keys())
async def test_filters_have_a_time_budget(which, nominated, calls):
    def fail_for_nominated(_: int) -> None:
        if nominated:
            raise ExtenderFault("down")

    requested = Requested(fail_for_nominated)
    profile = Profile("p", {Point.PRE_FILTER: [(SlowAt(which), 0)]})
    state = a_cluster(a_node("a"), a_node("b")).state
    budget, pod = TimeBudget(0.05), a_pod(nominated=nominated)
    decision = await decide_with(
        cast(Any, requested), decide, profile, pod, state, attempt=1, seed=0, start=0, budget=budget
    )
    assert isinstance(decision.fault, BudgetExceeded)
    assert decision.fault.plugin == "SlowAt"
    assert len(requested.filtered) == calls
