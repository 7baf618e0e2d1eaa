"""Whether a pod may preempt, on which nodes it may, and which plan or refusal results.

Nothing is evicted here: the plan lists the victims, the scheduler evicts them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated

from mooring.base.errors import PluginFault
from mooring.framework import (
    UNRESOLVABLE,
    Action,
    Args,
    Diagnosis,
    FeatureGates,
    Hint,
    Meta,
    Objects,
    Plan,
    Plugin,
    Pod,
    PodGroupPlan,
    PodGroups,
    PodGroupTrial,
    PostFilterRefusal,
    Preemptions,
    Refusal,
    WhatIf,
)
from mooring.framework.preemption import MESSAGE_PREFIX
from mooring.framework.verdicts import no_node_available
from mooring.objects.pod_groups import PodGroup
from mooring.objects.policy import PodDisruptionBudget
from mooring.plugins.default.default_preemption.budgets import Budgets
from mooring.plugins.default.default_preemption.group_search import find_victims
from mooring.plugins.default.default_preemption.search import Search

NEVER = MESSAGE_PREFIX + "not eligible due to preemptionPolicy=Never."
STILL_TERMINATING = MESSAGE_PREFIX + "not eligible due to a terminating pod on the nominated node."
NOT_HELPFUL = "Preemption is not helpful for scheduling"
UNDER_WAY = Refusal("waiting for the preemption for this pod to be finished", code=UNRESOLVABLE)
UNDER_WAY_FOR_GROUP = Refusal("waiting for the preemption for this pod group to be finished", code=UNRESOLVABLE)
NO_GROUP = MESSAGE_PREFIX + "pod group for pod not found"
CONSTRAINED = MESSAGE_PREFIX + "not eligible due to placement-based pod group scheduling limitation"
GROUP_PREEMPTS = MESSAGE_PREFIX + "not eligible due to workload aware preemption enabled"
GROUP_NEVER = "not eligible due to preemptionPolicy=Never."


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
        self,
        args: DefaultPreemptionArgs,
        budgets: Objects[PodDisruptionBudget],
        preemptions: Preemptions,
        groups: PodGroups,
        gates: FeatureGates,
    ) -> None:
        self._percentage = args.min_candidate_nodes_percentage
        self._at_least = args.min_candidate_nodes_absolute
        self._budgets = Budgets(budgets)
        self._preemptions = preemptions
        self._groups = groups
        self._has_placements = gates.on("TopologyAwareWorkloadScheduling")
        self._preempts_for_groups = gates.on("WorkloadAwarePreemption")

    def events(self) -> Iterable[Hint]:
        # A pod whose preemption was under way is requeued by the hints of what refused it. This hint only makes
        # pre_enqueue run again.
        return [Hint(Pod, Action.DELETE, lambda _pod, _before, _after: False, per_template=True)]

    def pre_enqueue(self, pod: Pod) -> Refusal | None:
        if self._preempts_for_groups and (name := pod.pod_group_name):
            group = self._groups.get(pod.namespace, name)
            is_under_way = group is not None and self._preemptions.is_under_way(group.uid)
            return UNDER_WAY_FOR_GROUP if is_under_way else None
        if self._preemptions.is_under_way(pod.uid):
            return UNDER_WAY
        return None

    def post_filter(self, pod: Pod, refused: Diagnosis, what_if: WhatIf) -> Plan | Refusal:
        if (name := pod.pod_group_name) and (refusal := self._refusal_of_member(pod.namespace, name)) is not None:
            return refusal
        if pod.spec.preemption_policy == "Never":
            return Refusal(NEVER)
        if _are_victims_terminating(pod, refused):
            return Refusal(STILL_TERMINATING)
        every_node, nodes = refused.cycle.nodes, refused.resolvable_nodes()
        search = Search(pod, what_if, self._budgets, every_node)
        search.run(nodes, min(len(nodes), max(len(nodes) * self._percentage // 100, self._at_least)))
        if not search.candidates:
            return self._refusal(search, len(nodes), len(every_node))
        chosen = search.candidates.least_disruptive(what_if.seed)
        return Plan(nominate=chosen.node, evict=chosen.victims, candidates=search.candidates)

    def _refusal_of_member(self, namespace: str, name: str) -> Refusal | None:
        """Why a member of this group does not preempt by itself."""
        if self._has_placements:
            group = self._groups.get(namespace, name)
            if group is None:
                return Refusal(NO_GROUP)
            if group.spec.scheduling_constraints is not None:
                return Refusal(CONSTRAINED)
        return Refusal(GROUP_PREEMPTS) if self._preempts_for_groups else None

    async def pod_group_post_filter(
        self, group: PodGroup, pods: Sequence[Pod], trial: PodGroupTrial
    ) -> PodGroupPlan | Refusal:
        if any(pod.spec.preemption_policy == "Never" for pod in pods):
            return Refusal(GROUP_NEVER)
        return await find_victims(group.priority, trial, self._groups, self._budgets)

    def _refusal(self, search: Search, tried: int, nodes: int) -> Refusal:
        if faults := search.faults:
            message = ", ".join(faults) if len(faults) == 1 else f"[{', '.join(faults)}]"
            raise PluginFault(self.name, MESSAGE_PREFIX + message)
        refused = search.refused()
        reasons = refused.reasons()
        if tried < nodes:
            reasons[NOT_HELPFUL] = nodes - tried
        message = MESSAGE_PREFIX + no_node_available(nodes, reasons)
        return PostFilterRefusal(message, nominate="", tried=refused)


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
