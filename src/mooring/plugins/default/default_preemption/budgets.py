"""Which pods cannot be evicted without violating a PodDisruptionBudget."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mooring.framework import BoolArray, IntArray, LowerPriorityPods, Objects, PlacedPod
from mooring.framework.what_if import labels_and_namespace
from mooring.objects.policy import PodDisruptionBudget
from mooring.objects.selectors import LabelSelector

NO_BUDGET = 0


class Budgets:
    """All budgets that protect pods. Which of them select a pod is a number of the pod: see `numbers`.

    A budget without a selector, or with an empty one, protects no pod; none protects a pod without labels.
    """

    def __init__(self, budgets: Objects[PodDisruptionBudget]) -> None:
        self._objects = budgets
        self._version: int | None = None
        self._selectors: list[tuple[str, str, LabelSelector]] = []
        """Of each budget: key, namespace, selector."""
        self._selecting: object = None
        """Another one when a selector changes: what was computed by the selectors is void then."""
        self._in_namespace: dict[str, list[int]] = {}
        self._allowed: IntArray = np.empty(0, np.int64)
        self._disrupted: dict[int, set[str]] = {}
        """By budget the names of pods that the API server is evicting already: they have been counted."""
        self._groups: dict[tuple[int, ...], int] = {}
        """The budgets that select a pod, and the number of that group."""

    def violating(self, lower: LowerPriorityPods) -> BoolArray | None:
        """Which pods would violate one, if those of a node were evicted in their order; None: none of them."""
        self._read()
        if not self._selectors:
            return None
        group = lower.numbers(self._selecting, self._group, labels_and_namespace)
        if not group.any():
            return None
        pod, budget = self._pairs(group)
        if self._disrupted:
            is_counted = self._is_counted(lower, pod, budget)
            pod, budget = pod[is_counted], budget[is_counted]
        # How many pods of the node come before this one in the same budget.
        of_node = lower.node.take(pod) * len(self._selectors) + budget
        order = np.argsort(of_node, kind="stable")
        ordered, place = of_node.take(order), np.arange(len(order))
        begins = np.concatenate([[True], ordered[1:] != ordered[:-1]])[: len(order)]
        before = place - np.maximum.accumulate(np.where(begins, place, 0))
        exceeding = order[before >= self._allowed.take(budget.take(order))]
        if not len(exceeding):
            return None
        violating = np.zeros(len(lower), np.bool_)
        violating[pod.take(exceeding)] = True
        return violating

    def violating_units(self, units: Sequence[Sequence[PlacedPod]]) -> list[bool]:
        """Which units of pods would violate a budget, if they were evicted in this order.

        A unit is counted up to its first pod that violates one, as kube-scheduler counts.
        """
        self._read()
        allowed = self._allowed.tolist()
        return [any(self._exceeds(pod, allowed) for pod in unit) for unit in units]

    def _exceeds(self, pod: PlacedPod, allowed: list[int]) -> bool:
        """Count the eviction of the pod in `allowed`, and return whether a budget does not allow it."""
        for place in self._in_namespace.get(pod.namespace, ()):
            if not pod.labels or not self._selectors[place][2].matches(pod.labels):
                continue
            if pod.name in self._disrupted.get(place, ()):
                continue
            allowed[place] -= 1
            if allowed[place] < 0:
                return True
        return False

    def _read(self) -> None:
        if self._objects.version == self._version:
            return
        self._version = self._objects.version
        empty = LabelSelector()
        budgets = [
            (budget, selector)
            for budget in self._objects.all()
            if (selector := budget.spec.selector) is not None and selector != empty
        ]
        selectors = [(budget.key, budget.namespace, selector) for budget, selector in budgets]
        if selectors != self._selectors:
            self._selectors, self._selecting, self._groups = selectors, object(), {(): NO_BUDGET}
            self._in_namespace = {}
            for place, (_, namespace, _) in enumerate(selectors):
                self._in_namespace.setdefault(namespace, []).append(place)
        self._allowed = np.array([budget.status.disruptions_allowed for budget, _ in budgets], np.int64)
        self._disrupted = {
            place: set(disrupted)
            for place, (budget, _) in enumerate(budgets)
            if (disrupted := budget.status.disrupted_pods)
        }

    def _group(self, pod: PlacedPod) -> int:
        """The number of the group of budgets that select the pod."""
        selecting = tuple(
            place
            for place in self._in_namespace.get(pod.namespace, ())
            if pod.labels and self._selectors[place][2].matches(pod.labels)
        )
        return self._groups.setdefault(selecting, len(self._groups))

    def _pairs(self, group: IntArray) -> tuple[IntArray, IntArray]:
        """Each pod with each budget that selects it."""
        sizes = np.array([len(budgets) for budgets in self._groups])
        flat = np.array([budget for budgets in self._groups for budget in budgets], np.int64)
        count = sizes.take(group)
        pod = np.repeat(np.arange(len(group)), count)
        nth = np.arange(len(pod)) - np.repeat(np.cumsum(count) - count, count)
        return pod, flat.take((np.cumsum(sizes) - sizes).take(group).take(pod) + nth)

    def _is_counted(self, lower: LowerPriorityPods, pod: IntArray, budget: IntArray) -> BoolArray:
        """Which of the pairs count: the pod is not being evicted already."""
        names = [placed.name for placed in lower.pods(np.ones(len(lower), np.bool_))]
        none: set[str] = set()
        return np.array(
            [
                names[at] not in self._disrupted.get(which, none)
                for at, which in zip(pod.tolist(), budget.tolist(), strict=True)
            ],
            np.bool_,
        )
