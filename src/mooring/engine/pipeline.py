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
from mooring.state import State

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
) -> Decision:
    """Choose a node for the pod, or report why it fits none. Pure: no I/O, no clock, no randomness.

    `seed` chooses among nodes of equal score; `start` is where sampling begins (the last decision's `next_start`).
    `cache` makes the next decision faster and never another one; `watch` times the plugins; nothing depends on it.
    Plugins that exceed the `budget` are interrupted, and the decision is a `BudgetExceeded` fault.
    """
    state.trim()
    cycle = EngineCycle(profile, pod, state, attempt, seed, watch=watch, budget=budget)
    cycle.start = start
    if budget is not None:
        budget.cycle = cycle
    cached = None if cache is None else cache.of(profile)
    found: Feasible | None = None
    try:
        with within(budget):
            if extender_results is None:
                found = feasible(cycle, start, cache=cached)
                decision = choose(cycle, found) if len(found.nodes) else refuse(cycle, found)
            else:
                found = feasible(cycle, start, is_nominated_out=extender_results.is_nominated_out)
                is_any_unsent = extender_results.apply(found)
                if len(found.nodes):
                    decision = choose(cycle, found, extender_results.scores)
                else:
                    decision = refuse(cycle, found, is_premature=is_any_unsent)
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


def refuse(cycle: EngineCycle, found: Feasible, *, is_premature: bool = False) -> Decision:
    """Why the pod fits no node, and what PostFilter plugins propose."""
    rejected = found.rejected()
    helped = run_post_filters(cycle, rejected) if len(found.all_nodes) else PostFiltered(nominate=CLEAR)
    return Decision.refused(cycle, found, rejected, helped, is_premature=is_premature)
