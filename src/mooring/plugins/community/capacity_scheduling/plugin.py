"""CapacityScheduling: what namespaces may use, what of it they are guaranteed, and who gives way.

PreFilter refuses a pod that would exceed the max of its namespace, or what all namespaces are guaranteed together.
PostFilter makes room: a namespace within its min takes back what others borrow, whatever their priority; one that
borrows itself only from its own pods of lower priority. Pods without a quota preempt each other, as by default.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from mooring.base.errors import PluginFault, StateMissing
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
from mooring.objects.requests import Amounts
from mooring.plugins.community.capacity_scheduling.quotas import ElasticQuota, Quota, Quotas, shown_amount
from mooring.plugins.community.capacity_scheduling.search import Preemptor, QuotaSearch
from mooring.plugins.community.capacity_scheduling.usage import (
    UNLIMITED,
    Limits,
    OurRules,
    RecordedRules,
    Rules,
    Usage,
    plus,
)
from mooring.plugins.community.compatibility import Compatibility
from mooring.plugins.community.preemption_toleration.search import no_victims
from mooring.plugins.default.default_preemption.budgets import Budgets
from mooring.plugins.default.default_preemption.plugin import NEVER, NOT_HELPFUL, STILL_TERMINATING, UNDER_WAY
from mooring.plugins.default.default_preemption.search import NO_VICTIMS

BEING_EVICTED = "not eligible due to pods that are being evicted: there is room within the quotas without them."
LATER = None
"""PreFilter's state of a pod within its quota: what preemption needs is computed if it comes to that."""
RETRY_SECONDS = 1.0
"""Evictions that have begun take less, or they fail."""


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
        self._quotas = Quotas(quotas, is_compatible=self._is_compatible)
        self._limits = Limits(self._quotas, self._rules)
        self._budgets, self._pods, self._preemptions = Budgets(budgets), pods, preemptions

    def events(self) -> Iterable[Hint]:
        if self._is_compatible:
            return [Hint(POD, Action.DELETE), Hint(ElasticQuota)]
        return [
            Hint(POD, Action.DELETE | Action.UPDATE_POD_SCALE_DOWN),
            Hint(ElasticQuota, Action.ALL, _changes_limits, per_template=True),
        ]

    def pre_enqueue(self, pod: Pod) -> Refusal | None:
        return UNDER_WAY if self._preemptions.is_under_way(pod.uid) else None

    def pre_filter(self, pod: Pod, cycle: Cycle) -> Preemptor | Refusal | None:
        quota = self._quotas.refresh().get(pod.namespace)
        if not self._is_compatible:
            if quota is None:
                return LATER
            if quota.problem:
                cycle.set_filter_state(self, LATER)
                return Refusal(f"ElasticQuota {quota.key} is invalid: {quota.problem}", code=UNRESOLVABLE)
            if self._is_plainly_within(pod, quota, cycle):
                return LATER
        state = self._preemptor(pod, cycle)
        cycle.set_filter_state(self, state)
        return state if quota is None else self._refusal(state, quota) or state

    def _is_plainly_within(self, pod: Pod, quota: Quota, cycle: Cycle) -> bool:
        """Whether there is room for the pod, and no preemption makes it necessary to look closer."""
        if self._preemptions.being_evicted() or self._pods.nominated():
            return False
        total = cycle.total
        for pods, resource, most in self._limits.of(quota, pod):  # noqa: SIM110  # runs for every pod
            if total(pods, resource) > most:
                return False
        return True

    def _preemptor(self, pod: Pod, cycle: Cycle) -> Preemptor:
        quotas = self._quotas.refresh()
        quota, usage = quotas.get(pod.namespace), Usage(cycle, self._quotas, self._rules)
        state = Preemptor(pod, quota, quotas, usage, self._rules, is_compatible=self._is_compatible)
        if not self._is_compatible:
            state.leave_out(self._preemptions.being_evicted())
        if quota is not None:
            self._count_nominated(state)
        return state

    def _refusal(self, state: Preemptor, quota: Quota) -> Refusal | None:
        usage = state.usage
        refusal = _refusal(state, quota, state.with_nominated, state.with_all_nominated)
        if refusal is None and usage.is_any_left_out:
            # Their eviction may fail: until they terminate, there is no room for both.
            usage.leave_out(())
            refusal = _refusal(state, quota, state.own, state.own)
            state.only_evictions_are_missing = refusal is not None
        return refusal

    def _count_nominated(self, state: Preemptor) -> None:
        """Pods that preemption made room for come first."""
        pod, others = state.pod, []
        for nominated in self._pods.nominated().values():
            for each in nominated:
                quota = state.quotas.get(each.namespace)
                if each.uid == pod.uid or quota is None or (quota.problem and not self._is_compatible):
                    continue
                if each.namespace != pod.namespace:
                    others.append(each)
                elif each.priority >= pod.priority:
                    requested = self._rules.requested(each)
                    state.with_nominated = plus(state.with_nominated, requested)
                    state.with_all_nominated = plus(state.with_all_nominated, requested)
        if not others:
            return
        # A namespace within its min comes before others that borrow. One that borrows itself does not.
        counts_borrowers = not self._is_compatible and state.borrows
        for each in others:
            requested, quota = self._rules.requested(each), state.quotas[each.namespace]
            if counts_borrowers or not state.usage.borrowing(quota, requested, {}):
                state.with_all_nominated = plus(state.with_all_nominated, requested)

    def _state(self, pod: Pod, cycle: Cycle) -> Preemptor:
        """Of pre_filter, which does not run where that of another plugin refused the pod first."""
        try:
            found: Preemptor | None = cycle.filter_state(self)
        except StateMissing:
            if self._is_compatible:
                raise
            found = None
        return found or self._preemptor(pod, cycle)

    def post_filter(self, pod: Pod, refused: Diagnosis, what_if: WhatIf) -> Plan | Refusal:
        state = self._state(pod, refused.cycle)
        if pod.spec.preemption_policy == "Never":
            return Refusal(NEVER.removeprefix(MESSAGE_PREFIX))
        if self._preemptions.is_under_way(pod.uid) or (
            self._is_compatible and self._are_victims_terminating(pod, refused, state)
        ):
            return Refusal(STILL_TERMINATING.removeprefix(MESSAGE_PREFIX))
        if not self._is_compatible:
            state.leave_out(self._preemptions.being_evicted())
            if state.only_evictions_are_missing:
                return PostFilterRefusal(BEING_EVICTED, nominate=self._nominated_node(pod), retry_after=RETRY_SECONDS)
        every_node, nodes = refused.cycle.nodes, refused.resolvable_nodes()
        without_victims = no_victims if self._is_compatible else lambda _node, _pod: NO_VICTIMS
        search = QuotaSearch(
            state, what_if, self._budgets, every_node, without_victims, is_compatible=self._is_compatible
        )
        search.run_all(nodes)
        if not search.candidates and not self._is_compatible:
            search.run_across(lambda quota: self._pods.placed(quota.pods))
        if waiting := [candidate.node for candidate in search.candidates if not candidate.victims]:
            return self._waits_at(waiting, pod, state, what_if.seed)
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

    def _waits_at(self, nodes: Sequence[str], pod: Pod, state: Preemptor, seed: int) -> Refusal:
        """On each of these nodes there is room once the pods that leave it are gone: no victim is needed."""
        nominated = self._nominated_node(pod)
        node = nominated if nominated is not None and nominated in nodes else nodes[seed % len(nodes)]
        # The end of a pod requeues this one; an eviction that fails does not.
        seconds = RETRY_SECONDS if any(victim.node == node for victim in state.being_evicted) else None
        return PostFilterRefusal(STILL_TERMINATING.removeprefix(MESSAGE_PREFIX), nominate=node, retry_after=seconds)

    def _nominated_node(self, pod: Pod) -> str | None:
        """As of now: its status may not show it yet."""
        for node, pods in self._pods.nominated().items():
            if any(each.uid == pod.uid for each in pods):
                return node
        return None

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
        if not pod.spec.node_name:
            yield from self._lacking(quota, used, pod)
        for other in self._quotas.ignored(pod.namespace):
            yield f"quota {pod.namespace}/{other} does not count: the namespace has an older one"

    def _lacking(self, quota: Quota, used: Mapping[str, int], pod: Pod) -> Iterator[str]:
        """What a pending pod requests beyond its quota, and beyond what all are guaranteed together."""
        every: list[Mapping[str, int]] | None = None
        for resource, wanted in self._rules.requested(pod).items():
            most, total = self._rules.most(quota, resource), self._rules.total_least(self._quotas, resource)
            request = f"the pod requests {shown_amount(resource, wanted)} {resource}"
            if most != UNLIMITED and (beyond := used.get(resource, 0) + wanted - most) > 0:
                yield f"{request}, {shown_amount(resource, beyond)} more than quota {quota.key} allows"
            elif total != UNLIMITED:
                every = every or [self._used(each) for each in self._quotas.refresh().values()]
                together = sum(each.get(resource, 0) for each in every)
                if together + wanted > total:
                    in_use, guaranteed = shown_amount(resource, together), shown_amount(resource, total)
                    yield f"all quotas together: {in_use} of {guaranteed} {resource} in use, and {request}"

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


def _changes_limits(_pod: Pod, old: ElasticQuota | None, new: ElasticQuota | None) -> bool:
    """The controller writes `status.used` whenever a pod of the namespace starts or ends: that helps no pod."""
    return old is None or new is None or old.spec != new.spec


def _refusal(state: Preemptor, quota: Quota, own: Amounts, every: Amounts) -> Refusal | None:
    """Of a pod that adds this to what its namespace uses, and to what all of them use."""
    if state.usage.exceeds_max(quota, own):
        return _rejected(state.pod, f"ElasticQuota {quota.namespace} is more than Max")
    if state.usage.exceeds_total(every):
        return _rejected(state.pod, "total ElasticQuota used is more than min")
    return None


def _rejected(pod: Pod, why: str) -> Refusal:
    return Refusal(f"Pod {pod.key} is rejected in PreFilter because {why}")
