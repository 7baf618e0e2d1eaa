"""Which PodDisruptionBudgets select which pods.

Tenants choose how many budgets there are, how large their selectors get, and how many pods have labels of their own. So
pods with the same labels are a class, all new classes of a namespace are held against a budget at once, and what was
computed stands until that budget changes; also if the attempt is interrupted.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from mooring.framework import BoolArray, IntArray, PlacedPod
from mooring.framework.label_columns import LabelColumns
from mooring.objects.policy import PodDisruptionBudget
from mooring.objects.selectors import Labels, LabelSelector

UNKNOWN, NO_BUDGET = -1, 0
NO_LABELS = 0
"""The class of pods without labels."""
MOST_CELLS = 32 * 1024 * 1024
"""Beyond so many classes times budgets, all is computed again."""
MOST_GROUPS = 100_000
"""As well after so many groups were made."""
FEW = 64
"""So few numbers of budgets are kept as they are, more as bits."""

_EMPTY = LabelSelector()


class _Budget:
    __slots__ = ("matched", "number", "selector")

    def __init__(self, number: int, selector: LabelSelector) -> None:
        self.number, self.selector = number, selector
        self.matched: BoolArray = np.zeros(0, np.bool_)
        """The classes of the namespace that it selects, as far as this is known yet."""


class _Namespace:
    """The budgets of a namespace, and the classes of its pods."""

    __slots__ = ("budgets", "classes", "groups", "labels")

    def __init__(self) -> None:
        self.budgets: dict[str, _Budget] = {}
        self.labels: list[Labels] = []
        """Of each class."""
        self.classes: list[int] = []
        """Their numbers."""
        self.groups: dict[bytes, int] = {}
        """By the budgets that select the pods of a group, as bits."""

    def matched(self, places: IntArray) -> BoolArray:
        """A row for each of these classes, a column for each budget."""
        columns: dict[int, LabelColumns] = {}
        for budget in self.budgets.values():
            begin = len(budget.matched)
            if begin == len(self.labels):
                continue
            if begin not in columns:
                labels = self.labels[begin:]
                columns[begin] = LabelColumns(labels, set().union(*labels))
            matched = columns[begin].matching(budget.selector.parts())
            budget.matched = np.concatenate([budget.matched, matched])
        return np.stack([budget.matched.take(places) for budget in self.budgets.values()], axis=1)


class BudgetSelectors:
    """Puts pods into groups by the budgets that select them. A budget without a selector, or with an empty one, selects
    no pod; none selects a pod without labels."""

    def __init__(self) -> None:
        self._namespaces: dict[str, _Namespace] = {}
        self._free: list[int] = []
        """Numbers of budgets that are gone."""
        self._numbers = 0
        self._class_of: dict[tuple[str, tuple[tuple[str, str], ...]], int] = {}
        self._of_class: list[tuple[_Namespace, int]] = [(_Namespace(), 0)]
        """The namespace of each class, and its place there."""
        self._group: IntArray = np.array([NO_BUDGET])
        """Per class."""
        self._groups: dict[int, tuple[IntArray, NDArray[np.uint8]]] = {}
        """By group the budgets of the namespace, and as bits which of them select the pods."""
        self._few: dict[int, IntArray] = {NO_BUDGET: np.zeros(0, np.int64)}
        """By group the budgets that select the pods, where they are few."""
        self._made = NO_BUDGET
        self.is_full = False
        """Whether too much is kept."""

    @property
    def is_any(self) -> bool:
        """Whether any budget selects pods."""
        return len(self._free) < self._numbers

    def read(self, budgets: Iterable[PodDisruptionBudget]) -> list[tuple[int, PodDisruptionBudget]]:
        """The budgets of now: those that select pods, with their numbers."""
        found: dict[str, dict[str, PodDisruptionBudget]] = {name: {} for name in self._namespaces}
        for budget in budgets:
            if budget.spec.selector is not None and budget.spec.selector != _EMPTY:
                found.setdefault(budget.namespace, {})[budget.name] = budget
        numbered = []
        for name, of_namespace in found.items():
            self._read(self._namespace(name), of_namespace)
            known = self._namespaces[name].budgets
            numbered += [(known[each].number, budget) for each, budget in of_namespace.items()]
        return numbered

    def _read(self, namespace: _Namespace, budgets: dict[str, PodDisruptionBudget]) -> None:
        known = namespace.budgets
        new = {
            name: selector
            for name, budget in budgets.items()
            if (selector := budget.spec.selector) is not None
            and (name not in known or known[name].selector != selector)
        }
        gone = [name for name in known if name not in budgets or name in new]
        if not new and not gone:
            return
        # First of all, so that nothing is wrong if this is interrupted.
        self._group[[each for each in namespace.classes if each < len(self._group)]] = UNKNOWN
        for group in namespace.groups.values():
            if group != NO_BUDGET:
                self._groups.pop(group, None)
                self._few.pop(group, None)
        namespace.groups.clear()
        for name in gone:
            self._free.append(known.pop(name).number)
        for name, selector in new.items():
            known[name] = _Budget(self._number(), selector)
        namespace.budgets = {name: known[name] for name in budgets}

    def share_of(self, namespace: str) -> float:
        """How many of all budgets are in a namespace."""
        own = self._namespaces.get(namespace)
        return 0.0 if own is None or not own.budgets else len(own.budgets) / (self._numbers - len(self._free))

    def _number(self) -> int:
        if self._free:
            return self._free.pop()
        self._numbers += 1
        return self._numbers - 1

    def _namespace(self, name: str) -> _Namespace:
        namespace = self._namespaces.get(name)
        if namespace is None:
            namespace = self._namespaces[name] = _Namespace()
        return namespace

    def class_of(self, pod: PlacedPod) -> int:
        """The number of the pods with this namespace and these labels."""
        if not pod.labels:
            return NO_LABELS
        alike = pod.namespace, tuple(pod.labels.items())
        number = self._class_of.get(alike)
        if number is None:
            namespace, number = self._namespace(pod.namespace), len(self._of_class)
            self._of_class.append((namespace, len(namespace.labels)))
            namespace.labels.append(pod.labels)
            namespace.classes.append(number)
            self._class_of[alike] = number
        return number

    def groups(self, classes: IntArray) -> IntArray:
        """The group of each of these classes."""
        if missing := len(self._of_class) - len(self._group):
            self._group = np.concatenate([self._group, np.full(missing, UNKNOWN)])
        group = self._group.take(classes)
        is_unknown = group == UNKNOWN
        if is_unknown.any():
            self._find(np.unique(classes[is_unknown]).tolist())
            group = self._group.take(classes)
        return group

    def budgets(self, group: int) -> IntArray:
        """The numbers of the budgets that select the pods of a group."""
        if (few := self._few.get(group)) is not None:
            return few
        numbers, bits = self._groups[group]
        return numbers[np.unpackbits(bits, count=len(numbers)).view(np.bool_)]

    def _find(self, classes: Sequence[int]) -> None:
        by_namespace: dict[_Namespace, list[int]] = {}
        for number in classes:
            namespace = self._of_class[number][0]
            if namespace.budgets:
                by_namespace.setdefault(namespace, []).append(number)
            else:
                self._group[number] = NO_BUDGET
        for namespace, of_namespace in by_namespace.items():
            matched = namespace.matched(np.array([self._of_class[number][1] for number in of_namespace]))
            numbers = np.array([budget.number for budget in namespace.budgets.values()])
            for number, bits in zip(of_namespace, np.packbits(matched, axis=1), strict=True):
                group = namespace.groups.get(key := bits.tobytes())
                if group is None:
                    group = namespace.groups[key] = self._new_group(numbers, bits)
                self._group[number] = group
        cells = sum(len(each.labels) * len(each.budgets) for each in self._namespaces.values())
        self.is_full = cells > MOST_CELLS or self._made > MOST_GROUPS

    def _new_group(self, numbers: IntArray, bits: NDArray[np.uint8]) -> int:
        if not bits.any():
            return NO_BUDGET
        self._made += 1
        self._groups[self._made] = numbers, bits.copy()
        if len(budgets := self.budgets(self._made)) <= FEW:
            self._few[self._made] = budgets
        return self._made
