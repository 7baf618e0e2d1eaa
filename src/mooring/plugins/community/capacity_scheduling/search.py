"""The search for victims: node by node, pods that borrow, or pods of the preemptor's own namespace or kind.

As DefaultPreemption, but which pods are potential victims depends on quotas; and a pod is not reprieved where the
quotas would be exceeded with it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Set

from mooring.base.errors import PluginFault
from mooring.framework import Candidate, NodeRows, NodeView, PlacedPod, Pod, Refusal, WhatIf
from mooring.framework.preemption import by_importance
from mooring.objects.requests import Amounts
from mooring.plugins.community.capacity_scheduling.quotas import Quota
from mooring.plugins.community.capacity_scheduling.usage import Rules, Usage, plus
from mooring.plugins.community.preemption_toleration.search import TolerantSearch
from mooring.plugins.default.default_preemption.budgets import Budgets

EXCEEDED = Refusal("global quota max exceeded")
MOST_ACROSS = 10
"""So many candidates are found with victims on other nodes: these are nearly the same for all."""


class Preemptor:
    """The pod that needs room, and what its quota makes of it."""

    def __init__(
        self,
        pod: Pod,
        quota: Quota | None,
        quotas: Mapping[str, Quota],
        usage: Usage,
        rules: Rules,
        *,
        is_compatible: bool,
    ) -> None:
        self.pod, self.quota, self.quotas, self.usage, self.rules = pod, quota, quotas, usage, rules
        self.is_compatible = is_compatible
        self.own: Amounts = rules.requested(pod)
        self.with_nominated: Amounts = self.own
        """With nominated pods of its namespace."""
        self.with_all_nominated: Amounts = self.own
        """With those of other namespaces, too."""
        self.being_evicted: Sequence[PlacedPod] = ()
        """For other pods, which count as nominated. So these do not count as used."""
        self._evicted_uids: Set[str] = frozenset()
        self.only_evictions_are_missing = False
        """Whether it is within the quotas as soon as these are gone."""

    def leave_out(self, being_evicted: Sequence[PlacedPod]) -> None:
        """Do not count what these pods use, and let none of them be a victim again."""
        if being_evicted or self.being_evicted:
            self.being_evicted = being_evicted
            self._evicted_uids = {pod.uid for pod in being_evicted}
            self.usage.leave_out(being_evicted)

    @property
    def borrows(self) -> bool:
        assert self.quota is not None
        return self.usage.exceeds_min(self.quota, self.with_nominated)

    def potential_victims(self, node: NodeView) -> Iterator[PlacedPod]:
        priority = self.pod.priority
        if self.quota is not None and not self.borrows:
            yield from self._borrowers(node)
            return
        for pod in node.pods:
            if pod.priority < priority and self._is_peer(pod) and not self.leaves(pod):
                yield pod

    def _is_peer(self, pod: PlacedPod) -> bool:
        """Whether priority alone decides between the two: both without a quota, or both of one namespace."""
        return pod.namespace not in self.quotas if self.quota is None else pod.namespace == self.pod.namespace

    def _borrowers(self, node: NodeView) -> Iterator[PlacedPod]:
        """The least important first, as long as their namespace borrows."""
        evicted: dict[str, Amounts] = {}
        for pod in reversed(by_importance(node.pods)):
            quota = self.quotas.get(pod.namespace)
            if quota is None or pod.namespace == self.pod.namespace or self.leaves(pod):
                continue
            if quota.problem and not self.is_compatible:
                continue  # what it borrows is not known
            without = evicted.get(pod.namespace, {})
            if self.usage.borrowing(quota, self.own, without):
                evicted[pod.namespace] = plus(without, self.rules.requested(pod))
                yield pod

    def leaves(self, pod: PlacedPod) -> bool:
        """Whether the room of this pod is about to be free, without another eviction."""
        if self.is_compatible:
            return False
        if not pod.is_terminating:
            return pod.uid in self._evicted_uids
        if pod.is_preempted:
            return True
        if self._is_peer(pod):
            return pod.priority < self.pod.priority
        return self.quota is not None and pod.namespace in self.quotas and not self.borrows

    def needed_for_quotas(
        self, evicted: Sequence[PlacedPod], placed: Callable[[Quota], Sequence[PlacedPod]]
    ) -> list[PlacedPod]:
        """Besides these, the pods on any node that must go so that the quotas are not exceeded; none: it is not enough.

        The least important first, as long as their namespace borrows, or else of the pod's own and of lower priority.
        """
        usage, evictable, uids = self.usage, [], {pod.uid for pod in evicted}
        if self._is_beyond_now():
            evictable = [pod for pod in self._evictable(placed) if pod.uid not in uids]
        usage.leave_out((*self.being_evicted, *evicted))
        victims: list[PlacedPod] = []
        if self._is_beyond_now():
            victims = self._least_important(evictable)
        is_enough = not self._is_beyond_now()
        needed = []
        for pod in by_importance(victims) if is_enough else ():
            usage.leave_out_also(pod, -1)
            if self._is_beyond_now():
                usage.leave_out_also(pod)
                needed.append(pod)
        usage.leave_out(self.being_evicted)
        return needed

    def _least_important(self, evictable: Sequence[PlacedPod]) -> list[PlacedPod]:
        """Leave out one of these after the other until it is enough."""
        victims = []
        for pod in reversed(by_importance(evictable)):
            is_own = pod.namespace == self.pod.namespace
            if not is_own and not self.usage.borrowing(self.quotas[pod.namespace], self.own, {}):
                continue
            victims.append(pod)
            self.usage.leave_out_also(pod)
            if not self._is_beyond_now():
                break
        return victims

    def _is_beyond_now(self) -> bool:
        return self.is_beyond_quota(self.with_nominated, self.with_all_nominated)

    def _evictable(self, placed: Callable[[Quota], Sequence[PlacedPod]]) -> Iterator[PlacedPod]:
        if self.quota is None:
            return
        if self.borrows:
            yield from (pod for pod in placed(self.quota) if pod.priority < self.pod.priority and not self.leaves(pod))
            return
        for quota in self.quotas.values():
            if quota is not self.quota and not quota.problem and self.usage.borrowing(quota, self.own, {}):
                yield from (pod for pod in placed(quota) if not self.leaves(pod))

    def is_beyond_quota(self, own: Amounts, every: Amounts) -> bool:
        return self.quota is not None and (self.usage.exceeds_max(self.quota, own) or self.usage.exceeds_total(every))

    def is_beyond_quota_without(self, placed: PlacedPod) -> bool:
        """If this pod, which is back on its node, were not there."""
        less = {name: -amount for name, amount in self.rules.requested(placed).items()}
        own = plus(self.with_nominated, less) if placed.namespace == self.pod.namespace else self.with_nominated
        every = plus(self.with_all_nominated, less) if placed.namespace in self.quotas else self.with_all_nominated
        return self.is_beyond_quota(own, every)


class QuotaSearch(TolerantSearch):
    """One search for one pod."""

    def __init__(
        self,
        preemptor: Preemptor,
        what_if: WhatIf,
        budgets: Budgets,
        every_node: NodeRows,
        refusal_without_victims: Callable[[str, str], Refusal],
        *,
        is_compatible: bool,
    ) -> None:
        super().__init__(preemptor.pod, what_if, budgets, every_node, lambda _: False, refusal_without_victims)
        self._preemptor, self._is_compatible = preemptor, is_compatible
        self._beyond_quota: set[str] = set()
        """The victims that fit beside the pod, but not into the quotas, by uid."""
        self._exceeded: list[NodeView] = []
        """Nodes where the pod fits without all potential victims, but not into the quotas."""
        self._without_victims: list[NodeView] = []
        """Nodes without potential victims."""

    def run_all(self, nodes: NodeRows) -> None:
        """Try every node, from the first on."""
        for node in nodes:
            if (candidate := self._try(node)) is not None:
                self.candidates.append(candidate)

    def run_across(self, placed: Callable[[Quota], Sequence[PlacedPod]]) -> None:
        """Try nodes that have room, but not within the quotas: victims may be on any other node as well.

        `placed`: the pods that use a quota.
        """
        if not self._preemptor.needed_for_quotas((), placed):
            return
        for node in (*self._exceeded, *self._without_victims):
            victims = self._needed_on(node)
            if victims is not None and (elsewhere := self._preemptor.needed_for_quotas(victims, placed)):
                all_victims = by_importance((*victims, *elsewhere))
                violating = self._violating(all_victims)
                self.candidates.append(Candidate(node.name, tuple(all_victims), len(violating)))
                if len(self.candidates) == MOST_ACROSS:
                    return

    def _needed_on(self, node: NodeView) -> list[PlacedPod] | None:
        """The pods that must go for the filters alone; None: that does not help."""
        victims = []
        potential, leaving = by_importance(self._potential(node)), self._leaving(node)
        with self._what_if.without(node, (*potential, *leaving)) as evicted:
            if not self._what_if.fits(self._pod, node):
                return None
            for placed in potential:
                evicted.reprieve(placed)
                if not self._what_if.fits(self._pod, node):
                    evicted.evict(placed)
                    victims.append(placed)
        return victims

    def _try(self, node: NodeView) -> Candidate | None:
        if not self._is_compatible and not self._potential(node) and not self._leaving(node):
            self._without_victims.append(node)
        return super()._try(node)

    def _potential(self, node: NodeView) -> Sequence[PlacedPod]:
        return list(self._preemptor.potential_victims(node))

    def _leaving(self, node: NodeView) -> Sequence[PlacedPod]:
        return [pod for pod in node.pods if self._preemptor.leaves(pod)]

    def _dry_run(
        self, node: NodeView, potential: Sequence[PlacedPod], leaving: Sequence[PlacedPod]
    ) -> Candidate | None:
        usage, being_evicted = self._preemptor.usage, self._preemptor.being_evicted
        if being_evicted:  # those of this node are taken off it, so that they are not in the sums
            usage.leave_out(pod for pod in being_evicted if pod.node != node.name)
        try:
            return super()._dry_run(node, potential, leaving)
        finally:
            if being_evicted:
                usage.leave_out(being_evicted)

    def _refusal_without(self, node: NodeView) -> Refusal | None:
        refusal, each = self._what_if.refusal(self._pod, node), self._preemptor
        if refusal is not None:
            return refusal
        if self._is_compatible:  # nominated pods count later: it may evict in vain there
            is_beyond = each.is_beyond_quota(each.own, each.own)
        else:
            is_beyond = each.is_beyond_quota(each.with_nominated, each.with_all_nominated)
        if not is_beyond:
            return None
        self._exceeded.append(node)
        return EXCEEDED

    def _is_victim(self, node: NodeView, placed: PlacedPod) -> bool:
        """With the pod back on its node."""
        each = self._preemptor
        if self._what_if.fits(self._pod, node):
            is_beyond = each.is_beyond_quota(each.with_nominated, each.with_all_nominated)
            if is_beyond:
                self._beyond_quota.add(placed.uid)
            return is_beyond
        if self._is_compatible and each.is_beyond_quota_without(placed):
            # It is taken off its node twice there, and the second time fails.
            raise PluginFault("", f"no corresponding pod {placed.name} in pods of node {node.name}")
        return True

    def _violations(self, victims: Sequence[PlacedPod], violating: Set[str]) -> int:
        if self._is_compatible:  # it counts only those that do not fit
            violating = violating - self._beyond_quota
        return super()._violations(victims, violating)
