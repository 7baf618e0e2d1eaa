"""`--verify-every N`: every Nth decision is taken again without the cache, and compared.

A difference is a plugin that reads more than it declares, or a mistake in the cache. Neither may cost a wrong placement
twice: the cache is dropped, and the pod goes where the decision from scratch puts it.
"""

from __future__ import annotations

from typing import Any

from mooring.base.clock import Clock
from mooring.base.errors import BudgetExceeded
from mooring.base.log import Log
from mooring.engine import Decision, DecisionCache, Profile, decide
from mooring.engine.stopwatch import Stopwatch
from mooring.engine.time_budget import TimeBudget
from mooring.engine.verification import Difference, first_difference
from mooring.framework import Metrics, Pod
from mooring.state import State

VERIFIED, DIFFERENCES = "mooring_verified_decisions_total", "mooring_decision_differences_total"
REPORTS_APART_SECONDS = 60.0
"""Of differences of one plugin: those in between are only counted."""
OF_PLUGIN = (
    "its score or verdict depends on more than its `reads` and `sign` declare, or differs for equal input: correct "
    "them, or take both out (docs/writing-plugins.md, Declare what you read)"
)
OF_MOORING = "a mistake in Mooring: report this line with your configuration and version to its developers"

_log = Log("scheduler")


class VerifiedDecisions:
    """`decide`, where every Nth decision is compared with one from scratch."""

    def __init__(self, every: int, clock: Clock, metrics: Metrics) -> None:
        self._every = every
        self._clock = clock
        self._since_last = 0
        self._reported_at: dict[str, float] = {}
        self._verified = metrics.counter(VERIFIED, "Decisions compared with one from scratch.", "profile")
        self._differences = metrics.counter(
            DIFFERENCES, "Decisions that differed from one from scratch.", "profile", "plugin"
        )

    def decide(
        self,
        profile: Profile,
        pod: Pod,
        state: State,
        *,
        cache: DecisionCache,
        watch: Stopwatch | None = None,
        budget: TimeBudget | None = None,
        **inputs: Any,
    ) -> Decision:
        """Nothing changes the state between the two decisions."""
        decision = decide(profile, pod, state, cache=cache, watch=watch, budget=budget, **inputs)
        self._since_last += 1
        if self._since_last < self._every:
            return decision
        self._since_last = 0
        # With time of its own, and not timed: the attempt's figures are those of the decision that is verified.
        own_budget = None if budget is None else TimeBudget(budget.seconds)
        fresh = decide(profile, pod, state, budget=own_budget, **inputs)
        if isinstance(decision.fault, BudgetExceeded) or isinstance(fresh.fault, BudgetExceeded):
            return decision  # where they were interrupted is chance
        self._verified.inc(profile=profile.name)
        difference = first_difference(decision, fresh)
        if difference is None:
            return decision
        self._report(pod, profile, difference)
        cache.drop(profile)
        fresh.cycle.watch = watch
        return fresh

    def _report(self, pod: Pod, profile: Profile, difference: Difference) -> None:
        self._differences.inc(profile=profile.name, plugin=difference.plugin)
        now = self._clock.monotonic()
        if now < self._reported_at.get(difference.plugin, float("-inf")) + REPORTS_APART_SECONDS:
            return
        self._reported_at[difference.plugin] = now
        plugin = next((each for each in profile.plugins if each.name == difference.plugin), None)
        is_own = plugin is None or type(plugin).__module__.startswith("mooring.plugins.")
        _log.error(
            "A cached decision differs from one from scratch; the cache is dropped, and the latter is used",
            pod=pod,
            **difference._asdict(),
            reason=OF_MOORING if is_own else OF_PLUGIN,
        )
