"""A decision in which extenders take part.

Filters, then the extenders, then the decision: on the state as it is by then. The cluster changes while extenders are
called; nodes may be added, deleted and filled. So their results are kept by name, the filters run again with the
results at hand, and only a node that passed both is taken, in the same step that assumes the pod on it. Where all
nodes that were sent are rejected by then but others pass, the extenders are called once more.
"""

from __future__ import annotations

from dataclasses import replace

from mooring.base.errors import PluginFault
from mooring.base.log import Log
from mooring.engine import Decide, Decision, DecisionCache, EngineCycle, ExtenderResults, Profile, fail, feasible
from mooring.engine.stopwatch import Stopwatch
from mooring.engine.time_budget import TimeBudget, within
from mooring.framework import Plan, Pod, Refusal
from mooring.framework.preemption import MESSAGE_PREFIX, least_disruptive
from mooring.scheduler.extenders.chain import Extenders
from mooring.scheduler.extenders.client import ExtenderFault
from mooring.state import Rows, State

ROUNDS = 3
"""So often the cluster may change during the calls before the attempt fails."""

NO_CANDIDATE = MESSAGE_PREFIX + "no candidate node for preemption"
OVERTAKEN = "the nodes sent to extenders changed before they responded, repeatedly"

_log = Log("scheduler")


async def decide_with(
    extenders: Extenders,
    decide: Decide,
    profile: Profile,
    pod: Pod,
    state: State,
    *,
    attempt: int,
    seed: int,
    start: int,
    cache: DecisionCache | None = None,
    watch: Stopwatch | None = None,
    budget: TimeBudget | None = None,
    among: Rows | None = None,
    runs_post_filters: bool = True,
) -> Decision:
    """`decide`, or what stands in for it, with extenders. Nothing waits between the choice of a node and the return."""
    for _ in range(ROUNDS):
        try:
            cycle = EngineCycle(profile, pod, state, attempt, seed, budget=budget)
            results = await _results(extenders, cycle, start, among)
        except PluginFault as fault:
            return fail(profile, pod, state, fault, attempt=attempt, start=start)
        decision = decide(
            profile,
            pod,
            state,
            attempt=attempt,
            seed=seed,
            start=start,
            extender_results=results,
            cache=cache,
            watch=watch,
            budget=budget,
            among=among,
            runs_post_filters=runs_post_filters,
        )
        if not decision.is_premature:
            break
    else:
        return fail(profile, pod, state, ExtenderFault(OVERTAKEN), attempt=attempt, start=start)
    if decision.plan is not None and decision.plan.candidates:
        await _make_room(extenders, decision, decision.plan, state)
    return decision


async def _results(extenders: Extenders, cycle: EngineCycle, start: int, among: Rows | None) -> ExtenderResults | None:
    """Their results for the nodes that pass the filters now; None where they take no part in this."""
    pod = cycle.pod
    if not extenders.filter_or_prioritize(pod):
        return None
    with within(cycle.budget):
        found = feasible(cycle, start, among=among)
    is_nominated_out = False
    if found.is_nominated:
        name = found.nodes.at(0).name
        if await _accept(extenders, pod, name):
            return ExtenderResults(frozenset((name,)))
        is_nominated_out = True
        again = EngineCycle(cycle.profile, pod, cycle.state, cycle.attempt, cycle.seed, budget=cycle.budget)
        with within(cycle.budget):
            found = feasible(again, start, is_nominated_out=True, among=among)
    names = tuple(found.nodes.names)
    refused = await extenders.filter(pod, names)
    left = [name for name in names if name not in refused]
    scores = await extenders.prioritize(pod, left) if len(left) > 1 else ()
    return ExtenderResults(frozenset(names), refused, scores, is_nominated_out)


async def _accept(extenders: Extenders, pod: Pod, nominated: str) -> bool:
    """Whether the nominated node passes; after an error all nodes are evaluated."""
    try:
        return not await extenders.filter(pod, [nominated])
    except PluginFault as fault:
        _log.error("Evaluation failed on nominated node", pod=pod, node=nominated, err=fault)
        return False


async def _make_room(extenders: Extenders, decision: Decision, plan: Plan, state: State) -> None:
    """They may remove candidates or change victims; then the least disruptive candidate is chosen again."""
    helped = decision.post_filtered
    try:
        candidates = await extenders.preempt(decision.pod, plan.candidates, state)
    except PluginFault as fault:
        decision.help(replace(helped, plan=None, nominate=None, message=f"{MESSAGE_PREFIX}{fault}"))
        return
    if not candidates:
        # A rejection follows the reasons of the plugins before it. An error replaces them.
        reasons = [reason for _, result in helped.results if isinstance(result, Refusal) for reason in result.reasons]
        decision.help(replace(helped, plan=None, nominate=None, message=", ".join([*reasons, NO_CANDIDATE])))
    elif candidates != list(plan.candidates):
        chosen = least_disruptive(candidates, decision.cycle.seed)
        made = replace(plan, nominate=chosen.node, evict=chosen.victims, candidates=tuple(candidates))
        decision.help(replace(helped, plan=made, nominate=chosen.node))
