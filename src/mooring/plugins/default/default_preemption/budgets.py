"""Which pods cannot be evicted without violating a PodDisruptionBudget."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from mooring.framework import BoolArray, IntArray, LowerPriorityPods, Objects, PlacedPod
from mooring.framework.what_if import labels_and_namespace
from mooring.objects.policy import PodDisruptionBudget
from mooring.plugins.default.default_preemption.budget_selectors import BudgetSelectors

MOST_PAIRS = 1024 * 1024
"""Pods with the budgets that select them are counted so many at once, where several nodes have them."""


class Budgets:
    """All budgets that protect pods, and how many evictions each allows."""

    def __init__(self, budgets: Objects[PodDisruptionBudget]) -> None:
        self._objects = budgets
        self._version: int | None = None
        self._selectors = BudgetSelectors()
        self._allowed: IntArray = np.zeros(0, np.int64)
        """By the number of the budget."""
        self._disrupted: dict[int, set[str]] = {}
        """By budget the names of pods that the API server is evicting already: they have been counted."""

    def are_any(self) -> bool:
        """Whether any budget protects pods."""
        self._read()
        return self._selectors.is_any

    def violating(self, lower: LowerPriorityPods) -> BoolArray | None:
        """Which pods would violate one, if those of a node were evicted in their order; None: none of them."""
        if not self.are_any():
            return None
        classes = lower.numbers(self._selectors, self._selectors.class_of, labels_and_namespace)
        group = self._selectors.groups(classes)
        if not group.any():
            return None
        groups = np.flatnonzero(np.bincount(group))
        place = np.empty(groups[-1] + 1, np.int64)  # `np.unique` takes ten times as long
        place[groups] = np.arange(len(groups))
        place = place.take(group)
        of_groups = [self._selectors.budgets(each) for each in groups.tolist()]
        violating = np.zeros(len(lower), np.bool_)
        for pods in _parts(lower, np.array([len(budgets) for budgets in of_groups]).take(place)):
            self._find_violating(lower, pods, _pairs(place[pods], of_groups), violating)
        return violating if violating.any() else None

    def _find_violating(
        self, lower: LowerPriorityPods, pods: slice, pairs: tuple[IntArray, IntArray], violating: BoolArray
    ) -> None:
        """Set those of these pods, which are all pods of their nodes. `pairs`: each with each of its budgets."""
        pod, budget = pairs
        pod += pods.start
        if self._disrupted:
            counts = self._counts(lower, pod, budget)
            pod, budget = pod[counts], budget[counts]
        allowed = self._allowed.take(budget)
        violating[pod[allowed <= 0]] = True
        may_exceed = (allowed > 0) & (allowed < lower.counts.max())
        if not may_exceed.any():
            return
        # How many pods of the node come before this one in the same budget.
        pod, budget, allowed = pod[may_exceed], budget[may_exceed], allowed[may_exceed]
        of_node = lower.node.take(pod) * len(self._allowed) + budget
        order = np.argsort(of_node, kind="stable")
        ordered, rank = of_node.take(order), np.arange(len(order))
        begins = np.concatenate([[True], ordered[1:] != ordered[:-1]])
        before = rank - np.maximum.accumulate(np.where(begins, rank, 0))
        violating[pod.take(order[before >= allowed.take(order)])] = True

    def others_share(self, namespace: str) -> float:
        """How much of the time spent here is the cause of other namespaces."""
        self._read()
        return 1.0 - self._selectors.share_of(namespace)

    def violating_pods(self, pods: Sequence[PlacedPod]) -> set[str]:
        """The uids of those that would violate one, if they were evicted in this order."""
        self._read()
        allowed, violating = self._allowed.copy(), set()
        for pod, budgets in zip(pods, self._budgets_of(pods), strict=True):
            counted = self._counted(pod, budgets)
            allowed[counted] -= 1
            if (allowed.take(counted) < 0).any():
                violating.add(pod.uid)
        return violating

    def violating_units(self, units: Sequence[Sequence[PlacedPod]]) -> list[bool]:
        """Which units of pods would violate a budget, if they were evicted in this order.

        A unit is counted up to its first pod that violates one, as kube-scheduler counts.
        """
        self._read()
        allowed = self._allowed.copy()
        of_pods = iter(self._budgets_of([pod for unit in units for pod in unit]))
        # (All pods of a unit are gone through: each takes its own budgets.)
        with_budgets = [[(pod, next(of_pods)) for pod in unit] for unit in units]
        return [any(self._exceeds(pod, budgets, allowed) for pod, budgets in unit) for unit in with_budgets]

    def _exceeds(self, pod: PlacedPod, budgets: IntArray, allowed: IntArray) -> bool:
        """Count the eviction of the pod in `allowed`, and return whether a budget does not allow it."""
        counted = self._counted(pod, budgets)
        exhausted = np.flatnonzero(allowed.take(counted) <= 0)
        allowed[counted[: exhausted[0] + 1] if len(exhausted) else counted] -= 1
        return bool(len(exhausted))

    def _budgets_of(self, pods: Sequence[PlacedPod]) -> list[IntArray]:
        """The numbers of the budgets that select each pod."""
        classes = np.array([self._selectors.class_of(pod) for pod in pods], np.int64)
        return [self._selectors.budgets(group) for group in self._selectors.groups(classes).tolist()]

    def _counted(self, pod: PlacedPod, budgets: IntArray) -> IntArray:
        """Those of these budgets that count the eviction of the pod."""
        if not self._disrupted:
            return budgets
        return budgets[[pod.name not in self._disrupted.get(each, ()) for each in budgets.tolist()]]

    def _counts(self, lower: LowerPriorityPods, pod: IntArray, budget: IntArray) -> BoolArray:
        """Which of the pairs count: the pod is not being evicted already."""
        counts = np.ones(len(pod), np.bool_)
        doubtful = np.flatnonzero(np.isin(budget, list(self._disrupted)))
        names = [placed.name for placed in lower.pods(np.ones(len(lower), np.bool_))] if len(doubtful) else []
        counts[doubtful] = [
            names[at] not in self._disrupted[which]
            for at, which in zip(pod.take(doubtful).tolist(), budget.take(doubtful).tolist(), strict=True)
        ]
        return counts

    def _read(self) -> None:
        if self._selectors.is_full:
            self._selectors, self._version = BudgetSelectors(), None
        version = self._objects.version
        if version == self._version:
            return
        numbered = self._selectors.read(self._objects.all())
        self._allowed = np.zeros(max((number for number, _ in numbered), default=-1) + 1, np.int64)
        self._allowed[[number for number, _ in numbered]] = [each.status.disruptions_allowed for _, each in numbered]
        self._disrupted = {
            number: set(disrupted) for number, budget in numbered if (disrupted := budget.status.disrupted_pods)
        }
        self._version = version


def _parts(lower: LowerPriorityPods, sizes: IntArray) -> list[slice]:
    """All pods, in parts of whole nodes that have about as many pairs as are counted at once."""
    pairs = np.cumsum(sizes)
    if pairs[-1] <= MOST_PAIRS:
        return [slice(0, len(sizes))]
    ends = lower.first + lower.counts
    part = pairs.take(ends - 1) // MOST_PAIRS
    cuts = [0, *ends[:-1][np.diff(part) > 0].tolist(), len(sizes)]
    return [slice(begin, end) for begin, end in pairwise(cuts)]


def _pairs(place: IntArray, of_groups: list[IntArray]) -> tuple[IntArray, IntArray]:
    """Each pod with each budget that selects it. `place`: that of its group."""
    sizes = np.array([len(budgets) for budgets in of_groups])
    count = sizes.take(place)
    pod = np.repeat(np.arange(len(place)), count)
    nth = np.arange(len(pod)) - np.repeat(np.cumsum(count) - count, count)
    begins = np.cumsum(sizes) - sizes
    return pod, np.concatenate(of_groups).take(begins.take(place).take(pod) + nth)
