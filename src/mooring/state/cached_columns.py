"""Columns computed from nodes and the pods on them, and computed again only on rows that changed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from numpy.typing import NDArray

from mooring.state.changes import ChangeLog
from mooring.state.columns import Column
from mooring.state.views import Rows, RowView, Table

FEW_ROWS = 32
"""If more rows than this changed, all are computed at once."""


class ChangingTable(Table, Protocol):
    """A table that logs which rows changed."""

    node_changes: ChangeLog
    pod_changes: ChangeLog


class CachedColumn:
    """One value for every node, or a row of values, from a function that reads the node and the pods on it alone."""

    __slots__ = ("_at_nodes", "_at_pods", "_column", "_table")

    def __init__(self, table: ChangingTable) -> None:
        self._table = table
        self._column: Column | None = None
        self._at_nodes = self._at_pods = 0

    def read(
        self, nodes: Rows, compute: Callable[[Rows], NDArray[Any]], compute_one: Callable[[RowView], Any]
    ) -> NDArray[Any]:
        """The values of these nodes. Rows that changed since the last call are computed."""
        table = self._table
        if table.pod_changes.paused:  # a what-if does not log what it changes
            return compute(nodes)
        changed = self._changed()
        if changed is None or self._column is None:
            self._compute_all(table.all(), compute)
        elif changed:
            # Numbers are written to memory, rows of numbers to an array.
            cells: Any = self._column.cells if self._column.data.ndim == 1 else self._column.data
            views = table.views
            for row in changed:
                view = views[row]
                if view is not None:
                    cells[row] = compute_one(view)
        self._at_nodes, self._at_pods = table.node_changes.generation, table.pod_changes.generation
        assert self._column is not None
        return nodes.cells(self._column)

    def _changed(self) -> list[int] | None:
        """The rows to compute again; None: all of them."""
        table = self._table
        if self._column is None or len(self._column.data) != table.capacity:
            return None
        changed: list[int] = []
        for log, at in ((table.node_changes, self._at_nodes), (table.pod_changes, self._at_pods)):
            if log.generation == at:
                continue
            rows = log.since(at)
            if rows is None or len(rows) > FEW_ROWS:
                return None
            changed.extend(rows)
        return changed

    def _compute_all(self, nodes: Rows, compute: Callable[[Rows], NDArray[Any]]) -> None:
        computed = compute(nodes)
        self._column = Column(self._table.capacity, computed.dtype.type, computed.shape[1:])
        self._column.data[nodes.rows] = computed
