"""Many nodes in a what-if, each as if pods were evicted from that node alone, or added to it.

Nothing is changed: what these pods hold is taken off or added to the columns and tallies when they are read.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Any, Protocol

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
MOST_SUMS = 64
"""Of added pods, by what was read: many pods are decided while the same ones are nominated."""


class Eviction:
    """Which pods of lower priority are evicted, and what they hold on each node."""

    only_frees = True

    def __init__(self, pods: LowerPriorityPods) -> None:
        self.pods = pods
        self._is_evicted = np.ones(len(pods), np.bool_)
        self._held: dict[Hashable, tuple[IntArray, IntArray]] = {}
        """By what was read: a number per pod, and the sum of those of evicted pods per node."""

    def moved(self, key: Hashable, number: Number, alike: Alike | None) -> IntArray:
        return -self._sums(key, number, alike)

    def _sums(self, key: Hashable, number: Number, alike: Alike | None) -> IntArray:
        """Per node over its evicted pods."""
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


class Addition:
    """Pods that are added to nodes."""

    only_frees = False

    def __init__(self, pods: Sequence[PlacedPod], node: Sequence[int], nodes: int) -> None:
        """`node`: for each pod the position of its node among so many."""
        self._pods = pods
        self._node = np.array(node, np.int64)
        self._nodes = nodes
        self._sums: dict[Hashable, IntArray] = {}

    def moved(self, key: Hashable, number: Number, _: Alike | None) -> IntArray:
        sums = self._sums.get(key)
        if sums is None:
            sums = np.zeros(self._nodes, np.int64)
            np.add.at(sums, self._node, [number(pod) for pod in self._pods])
            if len(self._sums) >= MOST_SUMS:
                self._sums.clear()
            self._sums[key] = sums
        return sums


class EvictionBeside:
    """Pods that are evicted from nodes to which others are added."""

    only_frees = False

    def __init__(self, eviction: Eviction, addition: Addition, evicted: IntArray, added: IntArray) -> None:
        """`evicted`, `added`: the positions of these nodes in the one and in the other."""
        self._eviction, self._addition = eviction, addition
        self._evicted, self._added = evicted, added

    def moved(self, key: Hashable, number: Number, alike: Alike | None) -> IntArray:
        moved = self._eviction.moved(key, number, alike)
        moved[self._evicted] += self._addition.moved(key, number, alike).take(self._added)
        return moved


class Change(Protocol):
    """What a what-if changes."""

    @property
    def only_frees(self) -> bool:
        """Whether no node has less room than it has now."""
        ...

    def moved(self, key: Hashable, number: Number, alike: Alike | None) -> IntArray:
        """How it changes the sum of a number that each pod has, per node."""
        ...


class WhatIfRows:
    """Nodes in a what-if: the framework's `NodeRows`, as far as it is known.

    Anything else raises `NotComputable`, so that a rule is either evaluated correctly or not at all.
    """

    __slots__ = ("_cells", "_change", "_nodes", "places", "rows")

    def __init__(self, nodes: Rows, change: Change, places: IntArray) -> None:
        """`places`: those of these nodes in the change."""
        self._nodes = nodes
        self._change = change
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
        return WhatIfRows(self._nodes.where(mask), self._change, self.places[mask])

    def moved(self, key: Hashable, number: Number, alike: Alike | None = None) -> IntArray:
        return self._change.moved(key, number, alike).take(self.places)

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
        return self._change.only_frees and self._nodes.is_room_everywhere(resource, amount, nonzero=nonzero)

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
