"""The victims on a node: as few as possible, and the most important are reprieved first.

All pods of lower priority are evicted in a what-if. If the pod fits then, each is reprieved in order and stays where
the pod still fits; those that cannot stay are the victims. Pods whose eviction would violate a disruption budget are
reprieved before the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from mooring.base.errors import PluginFault
from mooring.framework import UNRESOLVABLE, Candidate, NodeView, PlacedPod, Pod, Refusal, WhatIf
from mooring.framework.preemption import by_importance
from mooring.framework.services import Index
from mooring.objects.policy import PodDisruptionBudget
from mooring.objects.selectors import LabelSelector

NO_VICTIMS = Refusal("No preemption victims found for incoming pod", code=UNRESOLVABLE)


class Budgets:
    """Which pods cannot be evicted without violating a budget."""

    def __init__(self, index: Index[PodDisruptionBudget]) -> None:
        self._index = index
        self._of_namespace: dict[str, list[tuple[PodDisruptionBudget, LabelSelector]]] = {}

    def split(self, pods: Iterable[PlacedPod]) -> tuple[list[PlacedPod], list[PlacedPod]]:
        """Those that would violate one, if all were evicted in this order, and the others."""
        left: dict[str, int] = {}
        violating: list[PlacedPod] = []
        others: list[PlacedPod] = []
        for pod in pods:
            is_violating = False
            for budget in self._protecting(pod) if self._in(pod.namespace) else ():
                left[budget.key] = left.get(budget.key, budget.status.disruptions_allowed) - 1
                is_violating |= left[budget.key] < 0
            (violating if is_violating else others).append(pod)
        return violating, others

    def _protecting(self, pod: PlacedPod) -> list[PodDisruptionBudget]:
        """A budget without a selector, or with an empty one, protects no pod; none protects a pod without labels.

        A pod that the API server is evicting already has been counted.
        """
        return [
            budget
            for budget, selector in self._in(pod.namespace)
            if pod.labels and selector.matches(pod.labels) and pod.name not in budget.status.disrupted_pods
        ]

    def _in(self, namespace: str) -> list[tuple[PodDisruptionBudget, LabelSelector]]:
        found = self._of_namespace.get(namespace)
        if found is None:
            found = self._of_namespace[namespace] = [
                (budget, selector)
                for budget in self._index.at(namespace)
                if (selector := budget.spec.selector) is not None and selector != LabelSelector()
            ]
        return found


class DryRun:
    """A dry run of preemption on one node."""

    __slots__ = ("_budgets", "_lower", "_pod", "_split", "_what_if", "node")

    def __init__(self, pod: Pod, node: NodeView, what_if: WhatIf, budgets: Budgets) -> None:
        self._pod = pod
        self.node = node
        self._what_if = what_if
        self._budgets = budgets
        self._lower = [placed for placed in node.pods if placed.priority < pod.priority]
        self._split: tuple[list[PlacedPod], list[PlacedPod]] | None = None

    @property
    def order(self) -> list[PlacedPod]:
        """The order in which pods of lower priority are reprieved."""
        protected, others = self._in_order()
        return protected + others if protected else others

    def outcome(self, known: Refusal | None = None, victims: Sequence[PlacedPod] | None = None) -> Candidate | Refusal:
        """The victims, or why preemption does not help here: `known`, or the rejection of the filters.

        `victims`: the pods that cannot be reprieved, if that is known.
        """
        if not self._lower:
            return NO_VICTIMS
        if known is not None:
            return known
        if victims is None:
            found = self._tried()
            if isinstance(found, Refusal):
                return found
            victims = found
        if not victims:
            raise PluginFault("", f'expected at least one victim pod on node "{self.node.name}"')
        protected, others = self._in_order()
        gone = {placed.uid for placed in victims}
        victims = [placed for placed in protected if placed.uid in gone]
        violations = len(victims)
        victims += [placed for placed in others if placed.uid in gone]
        if protected and others:
            victims = by_importance(victims)
        return Candidate(self.node.name, tuple(victims), violations)

    def _in_order(self) -> tuple[list[PlacedPod], list[PlacedPod]]:
        if self._split is None:
            self._split = self._budgets.split(by_importance(self._lower))
        return self._split

    def _tried(self) -> list[PlacedPod] | Refusal:
        """Reprieve pods in order; those beside which the incoming pod does not fit are victims."""
        victims = []
        with self._what_if.without(self.node, self._lower) as evicted:
            refusal = self._what_if.refusal(self._pod, self.node)
            if refusal is not None:
                return refusal
            for placed in self.order:
                evicted.reprieve(placed)
                if not self._what_if.fits(self._pod, self.node):
                    evicted.evict(placed)
                    victims.append(placed)
        return victims
