"""CapacityScheduling: what namespaces may use, what of it they are guaranteed, and who gives way.

PreFilter refuses a pod that would exceed the max of its namespace, or what all namespaces are guaranteed together.
PostFilter makes room: a namespace within its min takes back what others borrow, whatever their priority; one that
borrows itself only from its own pods of lower priority. Pods without a quota preempt each other, as by default.
"""

from __future__ import annotations

from collections.abc import Iterable

from mooring.base.errors import PluginFault
from mooring.framework import (
    UNRESOLVABLE,
    Action,
    Args,
    Cycle,
    Diagnosis,
    Hint,
    NodeView,
    Objects,
    PlacedPod,
    Plan,
    Plugin,
    Pod,
    Pods,
    PostFilterRefusal,
    Preemptions,
    Refusal,
    WhatIf,
)
from mooring.framework.events import POD
from mooring.framework.preemption import MESSAGE_PREFIX, least_disruptive
from mooring.framework.verdicts import no_node_available
from mooring.objects.policy import PodDisruptionBudget
from mooring.plugins.community.capacity_scheduling.quotas import ElasticQuota, Quota, Quotas, shown_amount
from mooring.plugins.community.capacity_scheduling.search import Preemptor, QuotaSearch
from mooring.plugins.community.capacity_scheduling.usage import OurRules, RecordedRules, Rules, Usage, plus
from mooring.plugins.community.compatibility import Compatibility
from mooring.plugins.community.preemption_toleration.search import no_victims
from mooring.plugins.default.default_preemption.plugin import NEVER, NOT_HELPFUL, STILL_TERMINATING, UNDER_WAY
from mooring.plugins.default.default_preemption.search import NO_VICTIMS


class CapacitySchedulingArgs(Args):
    """Arguments of CapacityScheduling; the original has none."""

    compatibility: Compatibility = "mooring"


class CapacityScheduling(Plugin):
    """Keep namespaces within elastic quotas, and give back what is guaranteed by preemption."""

    preempts = True
    pre_filter_reads_pods = False

    def __init__(
        self,
        args: CapacitySchedulingArgs,
        quotas: Objects[ElasticQuota],
        budgets: Objects[PodDisruptionBudget],
        pods: Pods,
        preemptions: Preemptions,
    ) -> None:
        self._is_compatible = args.compatibility == "scheduler-plugins"
        self._rules: Rules = RecordedRules(pods) if self._is_compatible else OurRules()
        # Pods that are being deleted make room for the pod that preempted them, which counts already.
        self._quotas = Quotas(quotas, counts_terminating=self._is_compatible)
        self._budgets, self._pods, self._preemptions = budgets, pods, preemptions

    def events(self) -> Iterable[Hint]:
        if self._is_compatible:
            return [Hint(POD, Action.DELETE), Hint(ElasticQuota)]
        return [Hint(POD, Action.DELETE | Action.UPDATE_POD_SCALE_DOWN), Hint(ElasticQuota)]

    def pre_enqueue(self, pod: Pod) -> Refusal | None:
        return UNDER_WAY if self._preemptions.is_under_way(pod.uid) else None

    def pre_filter(self, pod: Pod, cycle: Cycle) -> Preemptor | Refusal:
        quotas = self._quotas.refresh()
        quota, usage = quotas.get(pod.namespace), Usage(cycle, self._quotas, self._rules)
        state = Preemptor(pod, quota, quotas, usage, self._rules)
        cycle.set_filter_state(self, state)
        if quota is None:
            return state
        if quota.problem and not self._is_compatible:
            return Refusal(f"ElasticQuota {quota.key} is invalid: {quota.problem}", code=UNRESOLVABLE)
        self._count_nominated(state)
        if usage.exceeds_max(quota, state.with_nominated):
            return self._refused(pod, f"ElasticQuota {pod.namespace} is more than Max")
        if usage.exceeds_total(state.with_all_nominated):
            return self._refused(pod, "total ElasticQuota used is more than min")
        return state

    def _refused(self, pod: Pod, why: str) -> Refusal:
        return Refusal(f"Pod {pod.key} is rejected in PreFilter because {why}")

    def _count_nominated(self, state: Preemptor) -> None:
        """Pods that preemption made room for come first."""
        pod = state.pod
        for nominated in self._pods.nominated().values():
            for each in nominated:
                quota = state.quotas.get(each.namespace)
                if each.uid == pod.uid or quota is None:
                    continue
                if not self._is_compatible and self._preemptions.is_under_way(each.uid):
                    continue  # its victims count in its place
                requested = self._rules.requested(each)
                if each.namespace == pod.namespace:
                    if each.priority >= pod.priority:
                        state.with_nominated = plus(state.with_nominated, requested)
                        state.with_all_nominated = plus(state.with_all_nominated, requested)
                elif not state.usage.borrowing(quota, requested, {}):
                    state.with_all_nominated = plus(state.with_all_nominated, requested)

    def post_filter(self, pod: Pod, refused: Diagnosis, what_if: WhatIf) -> Plan | Refusal:
        state: Preemptor = refused.cycle.filter_state(self)
        if pod.spec.preemption_policy == "Never":
            return Refusal(NEVER.removeprefix(MESSAGE_PREFIX))
        if self._preemptions.is_under_way(pod.uid) or self._are_victims_terminating(pod, refused, state):
            return Refusal(STILL_TERMINATING.removeprefix(MESSAGE_PREFIX))
        every_node, nodes = refused.cycle.nodes, refused.resolvable_nodes()
        without_victims = no_victims if self._is_compatible else lambda _node, _pod: NO_VICTIMS
        search = QuotaSearch(
            state, what_if, self._budgets, every_node, without_victims, is_compatible=self._is_compatible
        )
        search.run_all(nodes)
        if search.candidates:
            chosen = least_disruptive(search.candidates, what_if.seed)
            return Plan(nominate=chosen.node, evict=chosen.victims, candidates=search.candidates)
        if faults := search.faults:
            raise PluginFault(self.name, ", ".join(faults) if len(faults) == 1 else f"[{', '.join(faults)}]")
        tried = search.refused()
        reasons = tried.reasons()
        if len(nodes) < len(every_node):
            reasons[NOT_HELPFUL] = len(every_node) - len(nodes)
        return PostFilterRefusal(no_node_available(len(every_node), reasons), nominate="", tried=tried)

    def _are_victims_terminating(self, pod: Pod, refused: Diagnosis, state: Preemptor) -> bool:
        nominated = pod.status.nominated_node_name
        verdict = refused.rejections.get(nominated) if nominated else None
        if verdict is None or verdict[1].code is UNRESOLVABLE:
            return False
        node = next(node for node in refused.cycle.nodes if node.name == nominated)
        return any(placed.is_terminating and self._makes_room(placed, state) for placed in node.pods)

    def _makes_room(self, placed: PlacedPod, state: Preemptor) -> bool:
        quota = state.quotas.get(placed.namespace)
        if state.quota is None or quota is None:
            return state.quota is None and quota is None and placed.priority < state.pod.priority
        if placed.namespace == state.pod.namespace:
            return placed.priority < state.pod.priority
        return not state.borrows and state.usage.borrowing(quota, state.own, {})

    def reserve(self, pod: Pod, node: NodeView, cycle: Cycle) -> None:
        """Nothing: an assumed pod counts in the sums of its namespace."""

    def unreserve(self, pod: Pod, node: NodeView, cycle: Cycle) -> None:
        """Nothing: a pod that is forgotten does not count any more."""

    def explain(self, pod: Pod) -> Iterable[str]:
        quotas = self._quotas.refresh()
        quota = quotas.get(pod.namespace)
        if quota is None:
            return
        if quota.problem:
            yield f"quota {quota.key} is invalid: {quota.problem}"
            return
        used = self._used(quota)
        for resource in {**(quota.min or {}), **(quota.max or {})}:
            yield self._sentence(quota, resource, used.get(resource, 0))
        for other in self._quotas.ignored(pod.namespace):
            yield f"quota {pod.namespace}/{other} does not count: the namespace has an older one"

    def _used(self, quota: Quota) -> dict[str, int]:
        used: dict[str, int] = {}
        for placed in self._pods.placed(quota.pods):
            used = plus(used, self._rules.requested(placed))
        return used

    def _sentence(self, quota: Quota, resource: str, used: int) -> str:
        least, most = (quota.min or {}).get(resource, 0), (quota.max or {}).get(resource)
        text = f"quota {quota.key}: {shown_amount(resource, used)} of {shown_amount(resource, least)} {resource} in use"
        if used > least:
            text += f", {shown_amount(resource, used - least)} borrowed"
        return text + (f", {shown_amount(resource, most)} at most" if most is not None else "")
