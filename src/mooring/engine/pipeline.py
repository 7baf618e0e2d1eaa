"""`decide`: the one function that live scheduler, simulator, explain, benchmark and conformance tests call.

PreFilter and Filter find the feasible nodes; then PreScore and Score choose one, or PostFilter tries to make room.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from mooring.base.errors import PluginFault
from mooring.engine.cycle import EngineCycle
from mooring.engine.decision import Decision
from mooring.engine.decision_cache import DecisionCache
from mooring.engine.extender_results import ExtenderResults, ExtenderScores
from mooring.engine.filtering import Feasible, feasible
from mooring.engine.post_filter import CLEAR, PostFiltered, run_post_filters
from mooring.engine.profile import Profile
from mooring.engine.scoring import best
from mooring.engine.stopwatch import Stopwatch
from mooring.engine.time_budget import TimeBudget, within
from mooring.framework import Pod
from mooring.state import Rows, State

Decide: TypeAlias = Callable[..., Decision]
"""`decide`, or what stands in for it."""


def decide(
    profile: Profile,
    pod: Pod,
    state: State,
    *,
    attempt: int = 1,
    seed: int = 0,
    start: int = 0,
    extender_results: ExtenderResults | None = None,
    cache: DecisionCache | None = None,
    watch: Stopwatch | None = None,
    budget: TimeBudget | None = None,
    among: Rows | None = None,
    runs_post_filters: bool = True,
) -> Decision:
    """Choose a node for the pod, or report why it fits none. Pure: no I/O, no clock, no randomness.

    `seed` chooses among nodes of equal score; `start` is where sampling begins (the last decision's `next_start`).
    `cache` makes the next decision faster and never another one; `watch` times the plugins; nothing depends on it.
    Plugins that exceed the `budget` are interrupted, and the decision is a `BudgetExceeded` fault.
    Only nodes `among` these are candidates; plugins still count pods on all nodes.
    """
    state.trim()
    cycle = EngineCycle(profile, pod, state, attempt, seed, watch=watch, budget=budget)
    cycle.start = start
    if budget is not None:
        budget.cycle = cycle
    # What is cached is about all nodes.
    cached = None if cache is None or among is not None else cache.of(profile)
    found: Feasible | None = None
    try:
        with within(budget):
            if extender_results is None:
                found = feasible(cycle, start, cache=cached, among=among)
                if len(found.nodes):
                    decision = choose(cycle, found)
                else:
                    decision = refuse(cycle, found, runs_post_filters=runs_post_filters)
            else:
                found = feasible(cycle, start, is_nominated_out=extender_results.is_nominated_out, among=among)
                is_any_unsent = extender_results.apply(found)
                if len(found.nodes):
                    decision = choose(cycle, found, extender_results.scores)
                else:
                    decision = refuse(cycle, found, is_premature=is_any_unsent, runs_post_filters=runs_post_filters)
    except PluginFault as fault:
        decision = Decision.failed(cycle, found, fault, start)
    cycle.end()
    if cached is not None:
        cached.set_latest(decision)
    return decision


def fail(profile: Profile, pod: Pod, state: State, fault: PluginFault, *, attempt: int = 1, start: int = 0) -> Decision:
    """The attempt failed before a node was chosen or ruled out."""
    return Decision.failed(EngineCycle(profile, pod, state, attempt), None, fault, start)


def choose(
    cycle: EngineCycle,
    found: Feasible,
    extender_scores: Sequence[ExtenderScores] = (),
) -> Decision:
    """The best of the feasible nodes."""
    return Decision.placed(cycle, found, best(cycle, found, extender_scores))


def refuse(
    cycle: EngineCycle, found: Feasible, *, is_premature: bool = False, runs_post_filters: bool = True
) -> Decision:
    """Why the pod fits no node, and what PostFilter plugins propose."""
    rejected = found.rejected()
    helped = PostFiltered(nominate=CLEAR)
    if runs_post_filters and len(found.all_nodes):
        helped = run_post_filters(cycle, rejected)
    return Decision.refused(cycle, found, rejected, helped, is_premature=is_premature)
