"""Columns that are worked out from nodes and the pods on them, and worked out again only where something moved."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from mooring.state.columns import Column
from mooring.state.views import Rows, RowView

if TYPE_CHECKING:
    from mooring.state.table import NodeTable

FEW_ROWS = 32
"""More rows than this are judged at once, with all the others."""


class CachedColumn:
    """What one judge says of every node. It may read the node and the pods on it, and nothing else."""

    __slots__ = ("_at_nodes", "_at_pods", "_column", "_reads_pods", "_table")

    def __init__(self, table: NodeTable, *, reads_pods: bool = True) -> None:
        self._table = table
        self._reads_pods = reads_pods
        self._column: Column | None = None
        self._at_nodes = self._at_pods = 0

    def read(
        self, nodes: Rows, judge: Callable[[Rows], NDArray[Any]], judge_one: Callable[[RowView], Any]
    ) -> NDArray[Any]:
        """Its answers for these nodes. The judge is asked about the rows that moved since it was asked last."""
        table = self._table
        if table.pod_changes.paused:  # a what-if: nobody tells us what it moved
            return judge(nodes)
        moved = self._moved()
        if moved is None or self._column is None:
            self._judge_all(table.all(), judge)
        elif moved:
            cells, views = self._column.cells, table.views
            for row in moved:
                view = views[row]
                if view is not None:
                    cells[row] = judge_one(view)
        self._at_nodes, self._at_pods = table.node_changes.generation, table.pod_changes.generation
        assert self._column is not None
        return nodes.cells(self._column)

    def _moved(self) -> list[int] | None:
        """The rows to judge again; None: all of them."""
        table = self._table
        if self._column is None or len(self._column.data) != table.capacity:
            return None
        moved: list[int] = []
        for log, at in ((table.node_changes, self._at_nodes), (table.pod_changes, self._at_pods)):
            if log.generation == at or (log is table.pod_changes and not self._reads_pods):
                continue
            rows = log.since(at)
            if rows is None or len(rows) > FEW_ROWS:
                return None
            moved.extend(rows)
        return moved

    def _judge_all(self, nodes: Rows, judge: Callable[[Rows], NDArray[Any]]) -> None:
        judged = judge(nodes)
        self._column = Column(self._table.capacity, judged.dtype.type)
        self._column.data[nodes.rows] = judged
