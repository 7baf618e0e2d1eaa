"""Standing counts of pods per topology domain. Decides how a count is kept, not which pods it is asked about."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from mooring.framework import ALL_NODES, BoolArray, IntArray, NodeRows, NodesWhere, NodeView
from mooring.state.columns import Column
from mooring.state.domains import NOWHERE
from mooring.state.table import NodeTable
from mooring.state.views import Rows


class StandingTally:
    """How many pods there are per value of a label, over the nodes that count.

    Told of every pod that comes or goes (`count`), and by its domains of nodes.
    """

    __slots__ = (
        "_by_domain",
        "_by_row",
        "_domains",
        "_everywhere",
        "_in_domain",
        "_key",
        "_on",
        "_on_row",
        "_table",
        "_with",
        "asked",
        "total",
        "without_key",
    )

    def __init__(self, table: NodeTable, key: str, on: NodesWhere) -> None:
        self._table, self._key, self._on = table, key, on
        self._domains = table.domains(key, on)
        self._domains.tallies[self] = None
        self._everywhere = table.domains(key, ALL_NODES)
        """The domains of the label over all nodes, whoever counts."""
        self._domains.users += 1
        self._everywhere.users += 1
        self._in_domain: dict[int, int] = {}
        self._by_domain: Column | None = None
        """The same as a column, once somebody has asked about many nodes: most Services have few pods."""
        self._with: dict[int, int] = {}
        """A number of pods (not 0) → how many domains have it."""
        self._on_row: dict[int, int] = {}
        """Matching pods per row, also of rows that do not count: a node may begin to count."""
        self._by_row: Column | None = None
        """The same as a column, once somebody has asked about many nodes."""
        self.total = 0
        self.without_key = 0
        self.asked = 0
        """When a plugin last asked for it, in pod changes."""

    def close(self) -> None:
        """The count is no longer kept."""
        del self._domains.tallies[self]
        for domains, on in ((self._domains, self._on), (self._everywhere, ALL_NODES)):
            domains.users -= 1
            if not domains.users:
                self._table.drop_domains(self._key, on)

    def row_entered(self, row: int, code: int) -> None:
        """A node counts from now on, into this domain."""
        if pods := self._on_row.get(row):
            self._add(code, pods)

    def row_left(self, row: int, code: int) -> None:
        """A node that counted into this domain does so no longer."""
        if pods := self._on_row.get(row):
            self._add(code, -pods)

    def count(self, row: int, pods: int) -> None:
        """So many more matching pods on this row."""
        left = self._on_row.get(row, 0) + pods
        if left:
            self._on_row[row] = left
        else:
            del self._on_row[row]
        if self._by_row is not None:
            self._fit_rows(self._by_row).cells[row] = left
        code = self._domains.of_row.cells[row]
        if code != NOWHERE:
            self._add(code, pods)

    def _add(self, code: int, pods: int) -> None:
        if not code:
            self.without_key += pods
            return
        before = self._in_domain.get(code, 0)
        after = before + pods
        if after:
            self._in_domain[code] = after
        else:
            del self._in_domain[code]
        if self._by_domain is not None:
            self._fit(self._by_domain).cells[code] = after
        self.total += pods
        equal = self._with
        if before:
            if equal[before] == 1:
                del equal[before]
            else:
                equal[before] -= 1
        if after:
            equal[after] = equal.get(after, 0) + 1

    def _counts(self) -> Column:
        """The counts by domain, as a column with a cell for every domain there is by now."""
        if self._by_domain is None:
            self._by_domain = Column(max(16, 2 * self._domains.column.size), np.int64)
            for code, pods in self._in_domain.items():
                self._by_domain.cells[code] = pods
        return self._fit(self._by_domain)

    def _fit(self, column: Column) -> Column:
        if len(column.data) < self._domains.column.size:
            column.grow(2 * self._domains.column.size)
        return column

    def _fit_rows(self, column: Column) -> Column:
        capacity = len(self._domains.column.codes.data)
        if len(column.data) < capacity:
            column.grow(capacity)
        return column

    @property
    def domains(self) -> int:
        return self._domains.count

    @property
    def lowest(self) -> int:
        lowest = min(self._with, default=0)
        if sum(self._with.values()) < self._domains.count:
            return min(lowest, 0)  # below 0: a supposition may take away what was never counted
        return lowest

    def at(self, node: NodeView) -> int | None:
        code = self._domains.column.codes.cells[node.row]
        if not code:
            return None
        return self._in_domain.get(code, 0)

    def at_rows(self, nodes: NodeRows) -> IntArray:
        counts: IntArray = self._counts().data.take(self._codes(nodes))
        return counts

    def compute(self, nodes: NodeRows, rule: Callable[[IntArray], NDArray[Any]]) -> NDArray[Any]:
        return rule(self._counts().data).take(self._codes(nodes))

    def on(self, node: NodeView) -> int:
        return self._on_row.get(node.row, 0)

    def on_rows(self, nodes: NodeRows) -> IntArray:
        if self._by_row is None:
            self._by_row = Column(len(self._domains.column.codes.data), np.int64)
            for row, pods in self._on_row.items():
                self._by_row.cells[row] = pods
        return cast(Rows, nodes).cells(self._fit_rows(self._by_row))

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
        return cast(Rows, nodes).cells(self._domains.column.codes)

    def per_domain(self) -> dict[str, int]:
        """The counts by domain, for people and tests."""
        values = self._domains.column.values
        return {str(values[code]): self._in_domain.get(code, 0) for code in self._domains.codes()}
