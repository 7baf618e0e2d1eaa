"""Standing counts of pods per topology domain. Decides how a count is kept, not which pods it is asked about."""

from __future__ import annotations

import numpy as np

from mooring.framework import BoolArray, IntArray, NodeRows, NodesWhere, NodeView
from mooring.objects.placement_rules import first_untolerated, selector_matches
from mooring.state.columns import Column, InternedColumn
from mooring.state.table import NodeTable
from mooring.state.views import RowView

_REPELLING = ("NoSchedule", "NoExecute")


class StandingTally:
    """How many pods there are per value of a label, over the nodes that count.

    Told of every pod that comes or goes (`count`) and of every node (`enter`, `leave`). A domain exists while a node
    that counts is in it.
    """

    __slots__ = ("_column", "_domain_of", "_lowest", "_nodes", "_on", "_on_row", "_pods", "asked", "domains", "total")

    def __init__(self, table: NodeTable, key: str, on: NodesWhere) -> None:
        self._column: InternedColumn[str | None] = table.label(key)
        self._column.pins += 1
        self._on = on
        self._domain_of = Column(len(self._column.codes.data), np.intp)
        """Per row the domain it counts into; 0: none."""
        self._pods = Column(max(16, 2 * self._column.size), np.int64)
        self._nodes = Column(max(16, 2 * self._column.size), np.int64)
        self._on_row: dict[int, int] = {}
        """Matching pods per row, also of rows that do not count: a node may begin to count."""
        self._lowest: int | None = None
        self.domains = 0
        self.total = 0
        self.asked = 0
        """When a plugin last asked for it, in pod changes."""
        for view in table:
            self.enter(view)

    def close(self) -> None:
        """The count is no longer kept."""
        self._column.pins -= 1

    def enter(self, view: RowView) -> None:
        """A node came, or came back changed."""
        row = view.row
        code = self._column.codes.cells[row]
        if not code or not includes(self._on, view):
            return
        if row >= len(self._domain_of.data):
            self._domain_of.grow(len(self._column.codes.data))
        if code >= len(self._pods.data):
            self._pods.grow(2 * self._column.size)
            self._nodes.grow(2 * self._column.size)
        self._domain_of.cells[row] = code
        if not self._nodes.cells[code]:
            self.domains += 1
            self._lowest = None
        self._nodes.cells[code] += 1
        if pods := self._on_row.get(row):
            self._add(code, pods)

    def leave(self, row: int) -> None:
        """A node goes, or is about to change."""
        code = self._domain_at(row)
        if not code:
            return
        if pods := self._on_row.get(row):
            self._add(code, -pods)
        self._domain_of.cells[row] = 0
        self._nodes.cells[code] -= 1
        if not self._nodes.cells[code]:
            self.domains -= 1
            self._lowest = None

    def count(self, row: int, pods: int) -> None:
        """So many more matching pods on this row."""
        left = self._on_row.get(row, 0) + pods
        if left:
            self._on_row[row] = left
        else:
            del self._on_row[row]
        if code := self._domain_at(row):
            self._add(code, pods)

    def _domain_at(self, row: int) -> int:
        return self._domain_of.cells[row] if row < len(self._domain_of.data) else 0

    def _add(self, code: int, pods: int) -> None:
        before = self._pods.cells[code]
        self._pods.cells[code] = before + pods
        self.total += pods
        if self._lowest is not None:
            if before + pods < self._lowest:
                self._lowest = before + pods
            elif before == self._lowest:
                self._lowest = None

    @property
    def lowest(self) -> int:
        if self._lowest is None:
            counts = self._pods.data[self._nodes.data > 0]
            self._lowest = int(counts.min()) if len(counts) else 0
        return self._lowest

    def at(self, node: NodeView) -> int | None:
        code = self._column.codes.cells[node.row]
        if not code:
            return None
        return self._pods.cells[code] if code < len(self._pods.data) else 0

    def at_rows(self, nodes: NodeRows) -> IntArray:
        if len(self._pods.data) < self._column.size:
            self._pods.grow(2 * self._column.size)
            self._nodes.grow(2 * self._column.size)
        counts: IntArray = self._pods.data.take(self._column.codes.data.take(nodes.rows))
        return counts

    def lacking(self, nodes: NodeRows) -> BoolArray:
        lacking: BoolArray = self._column.codes.data.take(nodes.rows) == 0
        return lacking

    def per_domain(self) -> dict[str, int]:
        """The counts by domain, for people and tests."""
        values = self._column.values
        return {str(values[code]): self._pods.cells[code] for code in np.flatnonzero(self._nodes.data).tolist()}


def includes(on: NodesWhere, view: RowView) -> bool:
    """Whether the node counts into tallies over these nodes."""
    labels = view.labels
    return (
        all(key in labels for key in on.keys)
        and all(labels.get(key) == value for key, value in on.node_selector)
        and (on.affinity is None or selector_matches(on.affinity, view.name, labels))
        and (on.tolerations is None or first_untolerated(view.taints, on.tolerations, _REPELLING) is None)
    )
