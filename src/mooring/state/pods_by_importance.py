"""The pods of each node by importance, as columns: preemption reads those of hundreds of nodes at once.

A node's pods are written when they are read and have changed since. What a rule needs of a pod (a request, whether a
selector matches it) is a number, computed once for each pod, or once for all pods that are alike in what it depends on.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mooring.framework import BoolArray, IntArray, PodsWhere
from mooring.framework.label_columns import LabelColumns
from mooring.framework.preemption import by_importance
from mooring.framework.verdicts import FloatArray
from mooring.objects.placed import PlacedPod
from mooring.state.table import NodeTable
from mooring.state.views import Rows

UNKNOWN = -(2**63)
"""A number that was not computed yet."""
MOST_NUMBERS = 64
"""The numbers that are kept; the least recently used are computed again."""
MOST_CLASSES = 100_000
"""More different pods than this are forgotten, and read again."""
FEW_UNUSED = 4_096
"""Fewer places than this that no node uses any more are no reason to write all nodes again."""

FEW_CLASSES = 32
"""More classes than this are matched at once."""
NAMESPACE, DELETED = " namespace", " deleted"

Number = Callable[[PlacedPod], int]
Alike = Callable[[PlacedPod], Hashable]
"""What a number depends on: pods for which it is equal have the same number."""


class PodsByImportance:
    """Every node's pods in places of their own, side by side and the most important first."""

    def __init__(self, table: NodeTable) -> None:
        self._table = table
        self._as_of = 0
        self._clear()

    def _clear(self) -> None:
        rows = self._table.capacity
        self._is_stale = np.ones(rows, np.bool_)
        self._first = np.zeros(rows, np.int64)
        self._count = np.zeros(rows, np.int64)
        self._room = np.zeros(rows, np.int64)
        """How many places a row has."""
        self.of_row: dict[int, Sequence[PlacedPod]] = {}
        self._used = self._unused = 0
        self._priority: IntArray = np.zeros(64, np.int64)
        self._started: FloatArray = np.zeros(64, np.float64)
        self._numbers: dict[Hashable, IntArray] = {}
        self._classes: dict[Alike, PodsAlike] = {}

    def below(self, priority: int, nodes: Rows) -> LowerPriorityPods:
        """The pods of lower priority on these nodes."""
        self._note_changes()
        rows = nodes.rows
        for row in rows[self._is_stale.take(rows)].tolist():
            self._write(row)
        counts = self._count.take(rows)
        node = np.repeat(np.arange(len(rows)), counts)
        before = np.cumsum(counts) - counts
        places = np.arange(len(node)) + (self._first.take(rows) - before).take(node)
        priorities = self._priority.take(places)
        is_lower = priorities < priority
        if not is_lower.all():
            places, node, priorities = places[is_lower], node[is_lower], priorities[is_lower]
        return LowerPriorityPods(self, nodes, places, node, priorities, self._started.take(places))

    def none(self, nodes: Rows) -> LowerPriorityPods:
        """No pods of these nodes."""
        nothing = np.empty(0, np.int64)
        return LowerPriorityPods(self, nodes, nothing, nothing, nothing, np.empty(0, np.float64))

    def numbers(self, pods: LowerPriorityPods, key: Hashable, number: Number, alike: Alike | None) -> IntArray:
        """The number of each of these pods, computed where it is not known."""
        if alike is None:
            return self._numbers_of_pods(pods, key, number)
        classes = self._classes.get(alike)
        if classes is None:
            classes = self._classes[alike] = PodsAlike(alike)
        return classes.numbers(key, self._numbers_of_pods(pods, alike, classes.of), number)

    def _numbers_of_pods(self, pods: LowerPriorityPods, key: Hashable, number: Number) -> IntArray:
        known = self._numbers.pop(key, None)
        if known is None:
            known = np.full(len(self._priority), UNKNOWN)
            if len(self._numbers) >= MOST_NUMBERS:
                del self._numbers[next(iter(self._numbers))]
        self._numbers[key] = known
        found: IntArray = known.take(pods.places)
        is_unknown = found == UNKNOWN
        if is_unknown.any():
            computed = [number(pod) for pod in pods.pods(is_unknown)]
            known[pods.places[is_unknown]] = found[is_unknown] = computed
        return found

    def _note_changes(self) -> None:
        log = self._table.pod_changes
        changed = log.since(self._as_of)
        self._as_of = log.generation
        if (
            changed is None
            or self._unused > max(FEW_UNUSED, self._used // 2)
            or any(len(classes) > MOST_CLASSES for classes in self._classes.values())
        ):
            self._clear()
            return
        if len(self._is_stale) < self._table.capacity:
            self._grow_rows()
        self._is_stale[changed] = True

    def _grow_rows(self) -> None:
        more = self._table.capacity - len(self._is_stale)
        self._is_stale = np.concatenate([self._is_stale, np.ones(more, np.bool_)])
        none = np.zeros(more, np.int64)
        self._first, self._count, self._room = (
            np.concatenate([column, none]) for column in (self._first, self._count, self._room)
        )

    def _write(self, row: int) -> None:
        pods = by_importance(self._table.view_at(row).placed.values())
        count = len(pods)
        if count > self._room[row]:
            self._unused += int(self._room[row])
            self._first[row], self._room[row] = self._used, count + count // 4
            self._used += count + count // 4
            self._grow_places()
        self.of_row[row] = pods
        first = int(self._first[row])
        self._priority[first : first + count] = [pod.priority for pod in pods]
        self._started[first : first + count] = [math.inf if pod.started is None else pod.started for pod in pods]
        for known in self._numbers.values():
            known[first : first + count] = UNKNOWN
        self._count[row] = count
        self._is_stale[row] = False

    def _grow_places(self) -> None:
        if self._used <= len(self._priority):
            return
        size = 2 * self._used
        self._priority = _grown(self._priority, size, 0)
        self._started = _grown(self._started, size, 0)
        self._numbers = {key: _grown(known, size, UNKNOWN) for key, known in self._numbers.items()}


class PodsAlike:
    """Classes of pods that are alike, numbered, and what was computed for each."""

    def __init__(self, alike: Alike) -> None:
        self._alike = alike
        self._class_of: dict[Hashable, int] = {}
        self._examples: list[PlacedPod] = []
        self._numbers: dict[Hashable, IntArray] = {}
        self._columns: tuple[bytes, LabelColumns] | None = None
        """The labels of the classes that were matched last."""

    def __len__(self) -> int:
        return len(self._examples)

    def of(self, pod: PlacedPod) -> int:
        """The class of a pod."""
        alike = self._alike(pod)
        found = self._class_of.get(alike)
        if found is None:
            found = self._class_of[alike] = len(self._examples)
            self._examples.append(pod)
        return found

    def numbers(self, key: Hashable, classes: IntArray, number: Number) -> IntArray:
        known = self._numbers.pop(key, None)
        if known is None:
            known = np.full(len(self._examples), UNKNOWN)
            if len(self._numbers) >= MOST_NUMBERS:
                del self._numbers[next(iter(self._numbers))]
        elif len(known) < len(self._examples):
            known = _grown(known, 2 * len(self._examples), UNKNOWN)
        self._numbers[key] = known
        found: IntArray = known.take(classes)
        is_unknown = found == UNKNOWN
        if is_unknown.any():
            unknown = np.unique(classes[is_unknown])
            if len(unknown) > FEW_CLASSES and isinstance(key, PodsWhere):
                known[unknown] = self._moving(key, unknown)
            else:
                known[unknown] = [number(self._examples[each]) for each in unknown.tolist()]
            found = known.take(classes)
        return found

    def _moving(self, where: PodsWhere, classes: IntArray) -> BoolArray:
        """`moves`, for many classes by labels, namespace and deletion: a pod may have thousands of terms."""
        same = classes.tobytes()
        if self._columns is None or self._columns[0] != same:
            examples = [self._examples[each] for each in classes.tolist()]
            # Namespace and deletion are read as labels of their own, whose keys no pod can have.
            labels = [
                {**pod.labels, NAMESPACE: pod.namespace, **({DELETED: ""} if pod.is_terminating else {})}
                for pod in examples
            ]
            self._columns = same, LabelColumns(labels, {key for each in labels for key in each})
        requirements = chain.from_iterable(where.selectors)
        if where.namespaces is not None:
            requirements = chain([(NAMESPACE, "In", tuple(where.namespaces))], requirements)
        if not where.what_if_counts_all:
            if where.none:
                return np.zeros(len(classes), np.bool_)
            if not where.terminating:
                requirements = chain([(DELETED, "DoesNotExist", ())], requirements)
        return self._columns[1].matching(requirements)


def _grown(column: NDArray[Any], size: int, empty: int) -> NDArray[Any]:
    larger = np.full(size, empty, column.dtype)
    larger[: len(column)] = column
    return larger


class LowerPriorityPods:
    """The framework's `LowerPriorityPods`. Only until a pod comes or goes."""

    def __init__(
        self,
        of: PodsByImportance,
        nodes: Rows,
        places: IntArray,
        node: IntArray,
        priority: IntArray,
        started: FloatArray,
    ) -> None:
        self._of = of
        self.places = places
        self.priority = priority
        self.started = started
        counts = np.bincount(node, minlength=len(nodes))
        self.has_any: BoolArray = counts > 0
        if self.has_any.all():
            self.nodes, self.node = nodes, node
        else:
            self.nodes = nodes.where(self.has_any)
            self.node = (np.cumsum(self.has_any) - 1).take(node)
            counts = counts[self.has_any]
        self.counts: IntArray = counts
        self.first: IntArray = np.cumsum(counts) - counts

    def __len__(self) -> int:
        return len(self.places)

    def pods(self, where: BoolArray) -> list[PlacedPod]:
        places = np.flatnonzero(where)
        node = self.node.take(places)
        # Pods of lower priority are the last of their node.
        from_end = (places - (self.first + self.counts).take(node)).tolist()
        of_row = self._of.of_row
        return [of_row[row][at] for row, at in zip(self.nodes.rows.take(node).tolist(), from_end, strict=True)]

    def of_nodes(self, positions: IntArray) -> list[Sequence[PlacedPod]]:
        of_row = self._of.of_row
        return [of_row[row] for row in self.nodes.rows.take(positions).tolist()]

    def numbers(self, key: Hashable, number: Number, alike: Alike | None = None) -> IntArray:
        return self._of.numbers(self, key, number, alike)
