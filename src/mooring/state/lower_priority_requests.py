"""What pods of lower priority hold on each node: what preempting all of them would set free.

Cached for the priorities that were used last, and brought up to date by the change log when used again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from mooring.framework import BoolArray, IntArray
from mooring.objects.core import Taint
from mooring.state.table import PODS, NodeTable
from mooring.state.views import Rows

CACHED_PRIORITIES = 8
"""Clusters have few priorities."""


class NotComputable(Exception):
    """The value depends on which pods are there, and is not known without those of lower priority."""


class LowerPriorityRequests:
    """The requests of the pods below one priority, per row."""

    def __init__(self, table: NodeTable, priority: int) -> None:
        self._table = table
        self._priority = priority
        self._as_of: int | None = None
        self._amounts: dict[str, IntArray] = {}

    def amounts(self, resource: str) -> IntArray | None:
        """A number for each row of the table; None: they hold nothing of it anywhere."""
        return self._amounts.get(resource)

    def bring_up_to_date(self) -> None:
        log = self._table.pod_changes
        changed = None if self._as_of is None else log.since(self._as_of)
        self._as_of = log.generation
        capacity = self._table.capacity
        if changed is None or any(len(amounts) < capacity for amounts in self._amounts.values()):
            self._amounts = {}
            changed = range(len(self._table.views))
        for row in changed:
            self._sum_up(row)

    def _sum_up(self, row: int) -> None:
        for amounts in self._amounts.values():
            amounts[row] = 0
        view = self._table.views[row]
        if view is None:
            return
        totals: dict[str, int] = {}
        for pod in view.placed.values():
            if pod.priority < self._priority:
                totals[PODS] = totals.get(PODS, 0) + 1
                for resource, amount in pod.requests.amounts.items():
                    totals[resource] = totals.get(resource, 0) + amount
        for resource, total in totals.items():
            if resource not in self._amounts:
                self._amounts[resource] = np.zeros(self._table.capacity, np.int64)
            # Beyond 64 bits the exact sum does not matter: it is more than any node has.
            self._amounts[resource][row] = min(total, 2**63 - 1)


class LowerPriorityCache:
    """The last priorities that were used."""

    def __init__(self, table: NodeTable) -> None:
        self._table = table
        self._known: dict[int, LowerPriorityRequests] = {}

    def __call__(self, priority: int) -> LowerPriorityRequests:
        lower = self._known.pop(priority, None) or LowerPriorityRequests(self._table, priority)
        self._known[priority] = lower
        if len(self._known) > CACHED_PRIORITIES:
            del self._known[next(iter(self._known))]
        lower.bring_up_to_date()
        return lower


class RowsAfterEviction:
    """Many nodes as they would be without the pods below a priority: the framework's `NodeRows`, as far as it is known.

    Anything else raises `NotComputable`, so that a rule is either evaluated correctly or not at all.
    """

    def __init__(self, nodes: Rows, lower: LowerPriorityRequests, back: Mapping[str, IntArray] | None = None) -> None:
        """`back`: what reprieved pods hold, by resource."""
        self._nodes = nodes
        self._lower = lower
        self._back = back or {}
        self.rows = nodes.rows

    def __getattr__(self, name: str) -> Any:
        raise NotComputable(name)

    def __len__(self) -> int:
        return len(self._nodes)

    def where(self, mask: BoolArray) -> RowsAfterEviction:
        back = {resource: amounts[mask] for resource, amounts in self._back.items()}
        return RowsAfterEviction(self._nodes.where(mask), self._lower, back)

    def with_back(self, back: Mapping[str, IntArray]) -> RowsAfterEviction:
        """The same nodes with reprieved pods that hold this."""
        return RowsAfterEviction(self._nodes, self._lower, back)

    @property
    def names(self) -> Sequence[str]:
        return self._nodes.names

    @property
    def is_unschedulable(self) -> BoolArray:
        return self._nodes.is_unschedulable

    def allocatable(self, resource: str) -> IntArray:
        return self._nodes.allocatable(resource)

    def requested(self, resource: str) -> IntArray:
        held = self._nodes.requested(resource)
        freed = self._lower.amounts(resource)
        if freed is None:
            return held
        left: IntArray = held - freed.take(self.rows)
        if (back := self._back.get(resource)) is not None:
            left += back
        return left

    def is_room_everywhere(self, resource: str, amount: int, *, nonzero: bool = False) -> bool:
        return False  # what is freed is known row by row

    def free(self, resource: str) -> IntArray:
        free: IntArray = self.allocatable(resource) - self.requested(resource)
        return free

    def where_label(self, key: str, test: Callable[[str | None], bool]) -> BoolArray:
        return self._nodes.where_label(key, test)

    def where_label_in(self, key: str, values: Iterable[str]) -> BoolArray:
        return self._nodes.where_label_in(key, values)

    def where_label_lacking(self, key: str) -> BoolArray:
        return self._nodes.where_label_lacking(key)

    def label_integers(self, key: str) -> tuple[IntArray, BoolArray]:
        return self._nodes.label_integers(key)

    def where_named(self, names: Iterable[str]) -> BoolArray:
        return self._nodes.where_named(names)

    def where_taints(self, test: Callable[[Sequence[Taint]], bool]) -> BoolArray:
        return self._nodes.where_taints(test)

    def where_features(self, test: Callable[[Sequence[str]], bool]) -> BoolArray:
        return self._nodes.where_features(test)
