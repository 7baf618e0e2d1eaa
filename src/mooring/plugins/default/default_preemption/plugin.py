"""Whether a pod may preempt, which nodes are dry-run, and which plan or refusal results.

A node is tried where evicting pods could help. The search begins anywhere and ends when enough candidates are found.
Nothing is evicted here: the plan lists the victims, the scheduler evicts them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Annotated

from mooring.base.errors import PluginFault
from mooring.framework import (
    UNRESOLVABLE,
    Action,
    Args,
    Candidate,
    Diagnosis,
    Hint,
    Meta,
    NodeView,
    Objects,
    PlacedPod,
    Plan,
    Plugin,
    Pod,
    PostFilterRefusal,
    Preemptions,
    Refusal,
    WhatIf,
)
from mooring.framework.preemption import MESSAGE_PREFIX, least_disruptive
from mooring.framework.verdicts import no_node_available
from mooring.objects.policy import PodDisruptionBudget
from mooring.plugins.default.default_preemption.victims import Budgets, DryRun

NEVER = MESSAGE_PREFIX + "not eligible due to preemptionPolicy=Never."
STILL_TERMINATING = MESSAGE_PREFIX + "not eligible due to a terminating pod on the nominated node."
NOT_HELPFUL = "Preemption is not helpful for scheduling"
UNDER_WAY = "waiting for the preemption for this pod to be finished"

FEWEST_AT_ONCE = 64
"""A batch of fewer nodes costs as much."""
_SCATTER = 2_654_435_761
"""Consecutive seeds begin far apart: the golden ratio of 2³²."""


class DefaultPreemptionArgs(Args):
    """Arguments of DefaultPreemption."""

    min_candidate_nodes_percentage: Annotated[
        int,
        Meta(
            ge=0,
            le=100,
            description="After so many percent of the nodes in question are candidates, no more are sought.",
        ),
    ] = 10
    min_candidate_nodes_absolute: Annotated[
        int, Meta(ge=0, description="Nor are more sought than this, where it is more than that share.")
    ] = 100

    def mistakes(self) -> Iterable[tuple[str, str]]:
        if not self.min_candidate_nodes_percentage and not self.min_candidate_nodes_absolute:
            yield (
                "minCandidateNodesPercentage",
                "both minCandidateNodesPercentage and minCandidateNodesAbsolute cannot be zero",
            )


class DefaultPreemption(Plugin):
    """Evict pods of lower priority where that makes room for a pod that fits nowhere."""

    preempts = True

    def __init__(
        self, args: DefaultPreemptionArgs, budgets: Objects[PodDisruptionBudget], preemptions: Preemptions
    ) -> None:
        self._percentage = args.min_candidate_nodes_percentage
        self._at_least = args.min_candidate_nodes_absolute
        self._budgets = budgets.indexed(lambda budget: (budget.namespace,))
        self._preemptions = preemptions

    def events(self) -> Iterable[Hint]:
        # A pod whose preemption was under way is requeued by the hints of what refused it. This hint only makes
        # pre_enqueue run again.
        return [Hint(Pod, Action.DELETE, lambda _pod, _before, _after: False)]

    def pre_enqueue(self, pod: Pod) -> Refusal | None:
        if self._preemptions.is_under_way(pod.uid):
            return Refusal(UNDER_WAY, code=UNRESOLVABLE)
        return None

    def post_filter(self, pod: Pod, refused: Diagnosis, what_if: WhatIf) -> Plan | Refusal:
        if pod.spec.preemption_policy == "Never":
            return Refusal(NEVER)
        if _are_victims_terminating(pod, refused):
            return Refusal(STILL_TERMINATING)
        nodes = list(refused.resolvable_nodes())
        candidates, tried = self._search(pod, nodes, what_if)
        if not candidates:
            counts = Counter(reason for status in tried.values() for reason in status.reasons)
            everywhere = len(refused.cycle.nodes)
            if len(nodes) < everywhere:
                counts[NOT_HELPFUL] += everywhere - len(nodes)
            return PostFilterRefusal(MESSAGE_PREFIX + no_node_available(everywhere, counts), nominate="", tried=tried)
        chosen = least_disruptive(candidates, what_if.seed)
        return Plan(nominate=chosen.node, evict=chosen.victims, candidates=tuple(candidates))

    def _search(
        self, pod: Pod, nodes: Sequence[NodeView], what_if: WhatIf
    ) -> tuple[list[Candidate], dict[str, Refusal]]:
        """Candidates, as many as wanted, one without a budget violation if possible; and why other nodes are none."""
        budgets = Budgets(self._budgets)
        wanted = min(len(nodes), max(len(nodes) * self._percentage // 100, self._at_least))
        begin = what_if.seed * _SCATTER % len(nodes) if nodes else 0
        candidates: list[Candidate] = []
        refused: dict[str, Refusal] = {}
        faults: dict[str, PluginFault] = {}
        unpreemptable = what_if.unpreemptable(pod, nodes)
        is_harmless_found = False
        for run, victims in _runs(pod, (*nodes[begin:], *nodes[:begin]), unpreemptable, what_if, budgets, wanted):
            node = run.node
            try:
                found = run.outcome(unpreemptable.get(node.name), victims)
            except PluginFault as fault:  # a filter that was not reached before: this node is out
                faults.setdefault(str(fault), fault)
                continue
            if isinstance(found, Refusal):
                refused[node.name] = found
                continue
            candidates.append(found)
            is_harmless_found |= not found.budget_violations
            if is_harmless_found and len(candidates) >= wanted:
                break
        if faults and not candidates:
            message = ", ".join(faults) if len(faults) == 1 else f"[{', '.join(faults)}]"
            raise PluginFault(self.name, MESSAGE_PREFIX + message)
        return candidates, refused


def _runs(
    pod: Pod,
    nodes: Sequence[NodeView],
    unpreemptable: Mapping[str, Refusal],
    what_if: WhatIf,
    budgets: Budgets,
    wanted: int,
) -> Iterator[tuple[DryRun, Sequence[PlacedPod] | None]]:
    """A dry run for each node, with its victims where one vectorized pass computes them."""
    left = iter(nodes)
    at_once = max(wanted, FEWEST_AT_ONCE)
    while runs := [DryRun(pod, node, what_if, budgets) for node in islice(left, at_once)]:
        victims = what_if.victims(pod, [(run.node, run.order) for run in runs if run.node.name not in unpreemptable])
        for run in runs:
            yield run, victims.get(run.node.name)
        # Few are still wanted, if any: the first ones were about as many as it takes.
        at_once = FEWEST_AT_ONCE


def _are_victims_terminating(pod: Pod, refused: Diagnosis) -> bool:
    """Whether victims of this pod are still terminating on its nominated node."""
    nominated = pod.status.nominated_node_name
    if not nominated:
        return False
    verdict = refused.rejections.get(nominated)
    if verdict is None or verdict[1].code is UNRESOLVABLE:
        return False  # the node will not do any more: look elsewhere
    node = next(node for node in refused.cycle.nodes if node.name == nominated)
    return any(placed.is_preempted and placed.priority < pod.priority for placed in node.pods)
