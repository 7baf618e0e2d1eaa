"""Many nodes in a what-if, each as if pods were evicted from that node alone.

Nothing is changed: what the evicted pods hold is taken off the columns and tallies when they are read.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mooring.framework import BoolArray, IntArray
from mooring.objects.core import Taint
from mooring.objects.placed import PlacedPod
from mooring.state.columns import Column
from mooring.state.pods_by_importance import Alike, LowerPriorityPods, Number
from mooring.state.table import PODS
from mooring.state.views import NotComputable, Rows, RowView

LARGEST_AMOUNT = 2**53
"""Sums of these on one node stay within 64 bits."""


class Eviction:
    """Which pods of lower priority are evicted, and what they hold on each node."""

    def __init__(self, pods: LowerPriorityPods) -> None:
        self.pods = pods
        self._is_evicted = np.ones(len(pods), np.bool_)
        self._held: dict[Hashable, tuple[IntArray, IntArray]] = {}
        """By what was read: a number per pod, and the sum of those of evicted pods per node."""

    def held(self, key: Hashable, number: Number, alike: Alike | None) -> IntArray:
        """The sum per node over its evicted pods."""
        known = self._held.get(key)
        if known is None:
            numbers = self.pods.numbers(key, number, alike)
            counted = numbers if self._is_evicted.all() else np.where(self._is_evicted, numbers, 0)
            known = self._held[key] = numbers, np.add.reduceat(counted, self.pods.first)
        return known[1]

    def reprieve(self, pods: IntArray, nodes: IntArray) -> None:
        """These pods stay, each on another one of these nodes."""
        self._is_evicted[pods] = False
        for numbers, held in self._held.values():
            held[nodes] -= numbers.take(pods)

    def evict(self, pods: IntArray, nodes: IntArray) -> None:
        """Undo `reprieve`."""
        self._is_evicted[pods] = True
        for numbers, held in self._held.values():
            held[nodes] += numbers.take(pods)


class WhatIfRows:
    """Nodes in a what-if: the framework's `NodeRows`, as far as it is known.

    Anything else raises `NotComputable`, so that a rule is either evaluated correctly or not at all.
    """

    __slots__ = ("_cells", "_eviction", "_nodes", "places", "rows")

    def __init__(self, nodes: Rows, eviction: Eviction, places: IntArray) -> None:
        """`places`: those of these nodes in the eviction."""
        self._nodes = nodes
        self._eviction = eviction
        self.places = places
        self.rows = nodes.rows
        self._cells: dict[int | tuple[str, str], NDArray[Any]] = {}
        """Columns as they are without the what-if: rules read them for each pod that is reprieved."""

    @classmethod
    def of(cls, eviction: Eviction, places: IntArray) -> WhatIfRows:
        return cls(eviction.pods.nodes.take(places), eviction, places)

    def __getattr__(self, name: str) -> Any:
        raise NotComputable(name)

    def __len__(self) -> int:
        return len(self._nodes)

    def __iter__(self) -> Iterator[RowView]:
        raise NotComputable("one node")  # its view shows the pods that are there

    def where(self, mask: BoolArray) -> WhatIfRows:
        return WhatIfRows(self._nodes.where(mask), self._eviction, self.places[mask])

    def moved(self, key: Hashable, number: Number, alike: Alike | None = None) -> IntArray:
        """What these nodes lose of a number that each pod has, in the what-if."""
        return -self._eviction.held(key, number, alike).take(self.places)

    def cells(self, column: Column) -> NDArray[Any]:
        cells = self._cells.get(id(column))
        if cells is None:
            cells = self._cells[id(column)] = self._nodes.cells(column)
        return cells

    @property
    def names(self) -> Sequence[str]:
        return self._nodes.names

    @property
    def is_unschedulable(self) -> BoolArray:
        return self._nodes.is_unschedulable

    def allocatable(self, resource: str) -> IntArray:
        key = ("allocatable", resource)
        cells = self._cells.get(key)
        if cells is None:
            cells = self._cells[key] = self._nodes.allocatable(resource)
        return cells

    def requested(self, resource: str) -> IntArray:
        key = ("requested", resource)
        cells = self._cells.get(key)
        if cells is None:
            cells = self._cells[key] = self._nodes.requested(resource)
        requested: IntArray = cells + self.moved(resource, _request(resource))
        return requested

    def is_room_everywhere(self, resource: str, amount: int, *, nonzero: bool = False) -> bool:
        return False  # what is free is known row by row

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


def _request(resource: str) -> Callable[[PlacedPod], int]:
    if resource == PODS:
        return lambda _pod: 1

    def request(pod: PlacedPod) -> int:
        amount = pod.request(resource)
        if amount > LARGEST_AMOUNT:
            raise NotComputable(resource)
        return amount

    return request
