"""Standing counts of pods per topology domain. Decides how a count is kept, not which pods are counted."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from mooring.framework import ALL_NODES, BoolArray, IntArray, NodeRows, NodesWhere, NodeView, PodsWhere
from mooring.framework.what_if import labels_and_namespace
from mooring.objects.placed import PlacedPod
from mooring.state.columns import LARGEST, Column
from mooring.state.moved_pods import MovedPods
from mooring.state.table import NodeTable
from mooring.state.views import Rows
from mooring.state.what_if_rows import WhatIfRows

FEW_DOMAINS = 64
"""Counts of so many domains are kept one by one."""
MOSTLY_EMPTY = 64
"""Where fewer than one domain in so many has a pod, a column costs more to keep than to make when read."""


class PodsPerRow:
    """How many pods of a set each row has, whether its node counts or not."""

    __slots__ = ("_column", "_pods", "_table")

    def __init__(self, table: NodeTable, rows: IntArray) -> None:
        self._table = table
        distinct, pods = np.unique(rows, return_counts=True)
        self._pods: dict[int, int] = dict(zip(distinct.tolist(), pods.tolist(), strict=True))
        self._column: Column | None = None
        """The same as a column, once many nodes were read."""

    def __len__(self) -> int:
        """How many rows have any."""
        return len(self._pods)

    def get(self, row: int) -> int:
        return self._pods.get(row, 0)

    def add(self, row: int, pods: int) -> None:
        left = self._pods.get(row, 0) + pods
        if left:
            self._pods[row] = left
        else:
            del self._pods[row]
        if self._column is not None:
            self._fit(self._column).cells[row] = left

    def column(self) -> Column:
        if self._column is None:
            self._column = Column(self._table.capacity, np.int64)
            for row, pods in self._pods.items():
                self._column.cells[row] = pods
        return self._fit(self._column)

    def drop_column(self) -> None:
        self._column = None

    @property
    def column_bytes(self) -> int:
        return 0 if self._column is None else self._column.data.nbytes

    def _fit(self, column: Column) -> Column:
        if len(column.data) < self._table.capacity:
            column.grow(self._table.capacity)
        return column


class Counted(Protocol):
    """The set whose pods a tally counts."""

    @property
    def where(self) -> PodsWhere: ...
    @property
    def moved_pods(self) -> MovedPods[Any]:
        """In an active what-if, `follow` is called before a count is read."""
        ...

    def follow(self) -> None:
        """From now on, its counts move with the pods that what-ifs move."""
        ...

    def moves(self, pod: PlacedPod) -> bool:
        """Whether the count moves when a what-if evicts or adds the pod."""
        ...

    def rows(self) -> IntArray:
        """The rows of its pods, also of those that a what-if evicts, one for each pod."""
        ...

    def moved_rows(self) -> Iterable[tuple[int, int]]:
        """The rows where a what-if moves pods that `rows` does not show, and the sign; one for each pod."""
        ...

    def per_row(self) -> PodsPerRow:
        """Its pods by row, kept from the first read on."""
        ...


class StandingTally:
    """How many pods of a set there are per value of a label, over the nodes that count.

    Counts pods only (`count`): where a node changes, its pods are taken off before and put back after.
    """

    __slots__ = (
        "_by_domain",
        "_domains",
        "_everywhere",
        "_in_domain",
        "_key",
        "_moved_pods",
        "_of",
        "_on",
        "_table",
        "_total",
        "_with",
        "_without_key",
        "used",
    )

    def __init__(self, table: NodeTable, key: str, on: NodesWhere, of: Counted) -> None:
        self._table, self._key, self._on, self._of = table, key, on, of
        self._moved_pods = of.moved_pods
        self._domains = table.domains(key, on)
        self._everywhere = table.domains(key, ALL_NODES)
        """The domains of the label over all nodes, whether they count or not."""
        self._domains.users += 1
        self._everywhere.users += 1
        self._in_domain: dict[int, int] | None = {}
        """None: most domains have pods, and the column is all there is."""
        self._by_domain: Column | None = None
        """The same as a column, once many nodes were read: most Services have few pods."""
        self._with: dict[int, int] = {}
        """A number of pods (not 0) → how many domains have it."""
        self._total = 0
        self._without_key: int | None = None
        """None: not counted yet. It is seldom read, and pods may name any number of keys that no node has."""
        self.used = 0
        """When a plugin last read it, in pod changes."""
        if self._domains.count:
            self._count_all(of.rows())
            for row, sign in of.moved_rows():
                self.count(row, sign)

    def __iter__(self) -> Any:
        raise TypeError("a tally is read by .at(node) or .at_rows(nodes)")

    def close(self) -> None:
        """The count is no longer kept."""
        for domains, on in ((self._domains, self._on), (self._everywhere, ALL_NODES)):
            domains.users -= 1
            if not domains.users:
                self._table.drop_domains(self._key, on)

    def drop_column(self) -> None:
        """Free what can be computed again from the counts."""
        if self._in_domain is not None:
            self._by_domain = None

    @property
    def column_bytes(self) -> int:
        return 0 if self._by_domain is None else self._by_domain.data.nbytes

    @property
    def weight(self) -> int:
        """About its size, in those of a tally with few pods."""
        return 1 if self._in_domain is None else 1 + len(self._in_domain) // 32

    def _count_all(self, rows: IntArray) -> None:
        """`count` for every pod, at once."""
        if not len(rows):
            return
        is_included = self._domains.included.rows.data.take(rows)
        column = self._domains.column
        counts = np.bincount(column.codes.data.take(rows)[is_included], minlength=column.size)
        counts[0] = 0
        domains = np.flatnonzero(counts)
        pods = counts.take(domains)
        self._total = int(pods.sum())
        equal, how_many = np.unique(pods, return_counts=True)
        self._with = dict(zip(equal.tolist(), how_many.tolist(), strict=True))
        if len(domains) > FEW_DOMAINS and len(domains) * MOSTLY_EMPTY >= column.size:
            self._in_domain = None
            self._by_domain = Column(column.size + column.size // 8 + 16, np.int64)
            self._by_domain.data[: len(counts)] = counts
        else:
            self._in_domain = dict(zip(domains.tolist(), pods.tolist(), strict=True))

    def count(self, row: int, pods: int) -> None:
        """So many more matching pods on this row."""
        domains = self._domains
        if domains.included.rows.cells[row]:
            self._add(domains.column.codes.cells[row], pods)

    @property
    def without_key(self) -> int:
        if self._moved_pods.is_active:
            self._of.follow()
        if self._without_key is None:
            of_row = self._domains.of_row
            there = sum(1 for row in self._of.rows().tolist() if of_row(row) == 0)
            self._without_key = there + sum(sign for row, sign in self._of.moved_rows() if of_row(row) == 0)
        return self._without_key

    def _add(self, code: int, pods: int) -> None:
        if not code:
            if self._without_key is not None:
                self._without_key += pods
            return
        few = self._in_domain
        before = few.get(code, 0) if few is not None else self._in(code)
        after = before + pods
        if few is not None:
            if after:
                few[code] = after
            else:
                del few[code]
        if self._by_domain is not None:
            self._fit(self._by_domain).cells[code] = after
        self._total += pods
        equal = self._with
        if before:
            if equal[before] == 1:
                del equal[before]
            else:
                equal[before] -= 1
        if after:
            equal[after] = equal.get(after, 0) + 1

    @property
    def total(self) -> int:
        if self._moved_pods.is_active:
            self._of.follow()
        return self._total

    def _in(self, code: int) -> int:
        """The count in a domain."""
        if self._in_domain is not None:
            return self._in_domain.get(code, 0)
        assert self._by_domain is not None
        count: int = self._fit(self._by_domain).cells[code]
        return count

    def _counts(self) -> IntArray:
        """The counts by domain, with a cell for every domain there is by now."""
        if self._moved_pods.is_active:
            self._of.follow()
        if self._by_domain is not None:
            return self._fit(self._by_domain).data
        assert self._in_domain is not None
        size = self._domains.column.size
        is_worth_keeping = len(self._in_domain) * MOSTLY_EMPTY >= size
        counts = Column(size + size // 8 + 16 if is_worth_keeping else size, np.int64)
        for code, pods in self._in_domain.items():
            counts.cells[code] = pods
        self._by_domain = counts if is_worth_keeping else None
        return counts.data

    def _fit(self, column: Column) -> Column:
        size = len(self._domains.column.values)
        if len(column.data) < size:
            column.grow(2 * size)
        return column

    @property
    def domains(self) -> int:
        return self._domains.count

    @property
    def lowest(self) -> int:
        if self._moved_pods.is_active:
            self._of.follow()
        lowest = min(self._with, default=0)
        if sum(self._with.values()) < self._domains.count:
            return min(lowest, 0)  # below 0: a what-if may evict a pod that was never counted
        return lowest

    def at(self, node: NodeView) -> int | None:
        code = self._domains.column.codes.cells[node.row]
        if not code:
            return None
        if self._moved_pods.is_active:
            self._of.follow()
        return self._in(code)

    def at_rows(self, nodes: NodeRows) -> IntArray:
        counts: IntArray = self._counts().take(self._codes(nodes))
        moved = self._moved(nodes)
        return counts if moved is None else counts + moved

    def compute(self, nodes: NodeRows, rule: Callable[[IntArray], NDArray[Any]]) -> NDArray[Any]:
        codes = self._codes(nodes)
        if (moved := self._moved(nodes)) is not None:
            return rule(self._counts().take(codes) + moved)
        return self._domains.column.of_codes(rule(self._counts()), nodes, codes)

    def lowest_at(self, nodes: NodeRows) -> int | IntArray:
        moved = self._moved(nodes)
        if moved is None:
            return self.lowest
        before: IntArray = self._counts().take(self._codes(nodes))
        lowest, second = self._two_lowest()
        others = np.where(before == lowest, second, lowest)
        return np.where(moved == 0, lowest, np.minimum(others, before + moved))

    def _two_lowest(self) -> tuple[int, int]:
        """The counts of the two domains with the fewest pods; the second is large where there is no other domain."""
        with_pods = sorted(self._with.items())
        if empty := self._domains.count - sum(self._with.values()):
            with_pods = sorted([*with_pods, (0, empty)])
        counts = [pods for pods, domains in with_pods[:2] for _ in range(min(domains, 2))]
        return counts[0] if counts else 0, counts[1] if len(counts) > 1 else LARGEST

    def total_at(self, nodes: NodeRows) -> int | IntArray:
        moved = self._moved(nodes)
        return self.total if moved is None else self.total + moved

    def _moved(self, nodes: NodeRows) -> IntArray | None:
        """How a what-if about each of these nodes changes the count in its domain; None: there is none."""
        if not isinstance(nodes, WhatIfRows):
            return None
        moved = nodes.moved(self._of.where, self._of.moves, labels_and_namespace)
        counts = nodes.cells(self._domains.included.rows) & (self._codes(nodes) != 0)
        return np.where(counts, moved, 0)

    def on(self, node: NodeView) -> int:
        if self._moved_pods.is_active:
            self._of.follow()
        return self._of.per_row().get(node.row)

    def on_rows(self, nodes: NodeRows) -> IntArray:
        if self._moved_pods.is_active:
            self._of.follow()
        rows: Rows = nodes  # type: ignore[assignment]  # `cast` is a call
        return rows.cells(self._of.per_row().column())

    def lacking(self, nodes: NodeRows) -> BoolArray:
        lacking: BoolArray = self._codes(nodes) == 0
        return lacking

    def spans(self, nodes: NodeRows) -> bool:
        if nodes is self._table.all():
            return self._everywhere.lacking == 0
        return bool(self._codes(nodes).all())

    def domains_among(self, nodes: NodeRows, where: BoolArray | None = None) -> int:
        if where is None and nodes is self._table.all():
            return self._everywhere.count
        codes = self._codes(nodes)
        nodes_in = np.bincount(codes if where is None else codes[where], minlength=1)
        return int(np.count_nonzero(nodes_in[1:]))

    def _codes(self, nodes: NodeRows) -> NDArray[np.intp]:
        rows: Rows = nodes  # type: ignore[assignment]
        return rows.cells(self._domains.column.codes)

    def per_domain(self) -> dict[str, int]:
        """The counts by domain, for people and tests."""
        if self._moved_pods.is_active:
            self._of.follow()
        values = self._domains.column.values
        return {str(values[code]): self._in(code) for code in self._domains.codes()}
