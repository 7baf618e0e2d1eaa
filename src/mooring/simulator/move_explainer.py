"""Why a pod goes to another node with another configuration.

Two runs are alike until the first pod that goes elsewhere. From then on the clusters differ, and pods may go elsewhere
only because others did before. So each decision of the second run that differs from the first run is taken once more,
by the first configuration on the state that the second run has at that moment:

- It takes the same node (or none either): the move follows from **earlier placements**.
- It takes another node, which a filter of the second configuration rejects, or the chosen node is rejected by a filter
  of the first: that **filter** moved the pod.
- Both nodes passed both: the **score** plugin moved it whose weighted score shifted the most in favour of the chosen
  node, from the first configuration to the second.
- No score shifted: a **tie**, of which each configuration takes one.

The decision of the first configuration is not carried out. Plugins that both configurations have with the same
arguments are the same instances; others see the objects of the cluster, but their Reserve and PostBind do not run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import msgspec

from mooring.config import Configuration
from mooring.engine import Decision, DecisionCache, Profile, Score, decide
from mooring.engine.time_budget import TimeBudget
from mooring.framework import Pod
from mooring.framework.registry import Registry
from mooring.simulator.moves import EARLIER, FAULT, FILTER, SCORE, TIE, Move
from mooring.simulator.outcome import PodOutcome
from mooring.state import RowView

NodeOf: TypeAlias = Mapping[str, str | None]
"""By pod."""


class Baseline(msgspec.Struct, frozen=True):
    """The run that another is compared with: its pods, and the configuration that it had."""

    pods: Sequence[PodOutcome]
    configuration: Configuration
    registry: Registry


class MoveExplainer:
    """Takes the decisions that differ once more, with the configuration of the baseline."""

    def __init__(self, baseline: Baseline, profiles: Mapping[str, Profile], budget_seconds: float) -> None:
        """`profiles` are those of the baseline, built for the cluster of this run."""
        self._node_of: NodeOf = {pod.key: pod.node for pod in baseline.pods}
        self._profiles = profiles
        self._cache = DecisionCache()
        self._budget = TimeBudget(budget_seconds) if budget_seconds else None
        self._starts: dict[str, int] = {}
        """Per profile: where its next search for feasible nodes begins."""
        self._moves: dict[str, Move] = {}

    def add(self, pod: Pod, decision: Decision, at: float) -> None:
        """A decision that was just taken, before it is carried out."""
        start = self._starts.get(decision.profile, 0)
        self._starts[decision.profile] = decision.next_start
        before = self._node_of.get(pod.key)
        if decision.node == before or pod.key not in self._node_of:
            self._moves.pop(pod.key, None)
        elif decision.node is not None or pod.key not in self._moves:
            self._moves[pod.key] = self._explained(pod, decision, before, at, start)

    def moves(self, pods: Sequence[PodOutcome]) -> list[Move]:
        """Those of pods whose nodes differ at the end, in the order of their decisions."""
        nodes = {pod.key: pod.node for pod in pods}
        kept = [
            msgspec.structs.replace(move, after=nodes[key])
            for key, move in self._moves.items()
            if key in nodes and nodes[key] != self._node_of[key]
        ]
        return sorted(kept, key=lambda move: move.at)

    def _explained(self, pod: Pod, decision: Decision, before: str | None, at: float, start: int) -> Move:
        if decision.fault is None and (profile := self._profiles.get(decision.profile)) is None:
            reason = f"the baseline has no profile {decision.profile}"
            return Move(pod.key, at, before, decision.node, FILTER, "schedulerName", reason=reason)
        if decision.fault is not None:
            return Move(pod.key, at, before, decision.node, FAULT, decision.fault.plugin, reason=str(decision.fault))
        assert profile is not None
        cycle = decision.cycle
        if self._budget is not None:
            self._budget.renew()
        theirs = decide(
            profile,
            pod,
            cycle.state,
            attempt=cycle.attempt,
            seed=cycle.seed,
            start=start,
            cache=self._cache,
            budget=self._budget,
        )
        return explained_move(decision, theirs, before, at)


def explained_move(decision: Decision, theirs: Decision, before: str | None, at: float) -> Move:
    """Why a decision differs from that of the baseline's configuration, `theirs`, on the same state."""

    def move(cause: str, plugin: str = "", **more: object) -> Move:
        return Move(decision.pod.key, at, before, decision.node, cause, plugin, **more)  # type: ignore[arg-type]

    instead = theirs.node
    if decision.fault is not None:
        return move(FAULT, decision.fault.plugin, reason=str(decision.fault))
    if theirs.fault is not None:
        return move(FAULT, theirs.fault.plugin, reason=f"{theirs.fault} (with the baseline's configuration)")
    if instead == decision.node:
        return move(EARLIER)
    if theirs.view is not None:
        if decision.refusal is not None:
            plugin, refusal = decision.refusal
            return move(FILTER, plugin, instead=instead, reason=", ".join(refusal.reasons))
        if (verdict := decision.verdict_on(theirs.view)) is not None:
            reason = f"rejects {instead}: {', '.join(verdict.refusal.reasons)}"
            return move(FILTER, verdict.plugin, instead=instead, reason=reason)
    if decision.view is not None:
        if theirs.refusal is not None:
            plugin, refusal = theirs.refusal
            reason = f"{', '.join(refusal.reasons)} (with the baseline's configuration)"
            return move(FILTER, plugin, instead=instead, reason=reason)
        if (verdict := theirs.verdict_on(decision.view)) is not None:
            reason = f"does not reject {decision.node} any more: {', '.join(verdict.refusal.reasons)}"
            return move(FILTER, verdict.plugin, instead=instead, reason=reason)
    if decision.view is None or theirs.view is None:
        return move(EARLIER)
    shifts = _shifts(decision, theirs, decision.view, theirs.view)
    if not shifts:
        return move(TIE, instead=instead)
    plugin = min(shifts, key=lambda name: (-shifts[name], name))
    return move(SCORE, plugin, instead=instead, points=shifts[plugin])


def _shifts(ours: Decision, theirs: Decision, chosen: RowView, instead: RowView) -> dict[str, int]:
    """Per plugin how much more its scores favour the chosen node in our decision than in theirs, if at all."""
    our_lead = _lead(ours.scores_of(chosen), ours.scores_of(instead))
    their_lead = _lead(theirs.scores_of(chosen), theirs.scores_of(instead))
    shifts = {
        plugin: our_lead.get(plugin, 0) - their_lead.get(plugin, 0)
        for plugin in dict.fromkeys([*our_lead, *their_lead])
    }
    return {plugin: points for plugin, points in shifts.items() if points > 0}


def _lead(chosen: Mapping[str, Score] | None, instead: Mapping[str, Score] | None) -> dict[str, int]:
    if chosen is None or instead is None:  # one of the two was not scored: it was not among the nodes that were sampled
        return {}
    return {plugin: score.weighted - instead[plugin].weighted for plugin, score in chosen.items()}
