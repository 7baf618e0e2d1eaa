"""Topology domains: which nodes share a value of a label, over the nodes that count. Decides nothing about pods.

Every tally by the same label over the same nodes shares one of these, so that a thousand Services cost a node's
change no more than one does. Which nodes count (`Included`) is computed once, however many labels are counted by.
"""

from __future__ import annotations

import numpy as np

from mooring.framework import BoolArray, NodesWhere
from mooring.framework.node_selectors import where_selector
from mooring.objects.placement_rules import selector_matches
from mooring.state.columns import Column, InternedColumn
from mooring.state.views import Rows, RowView

NOWHERE = -1
"""The domain of a node that does not count. 0 is that of nodes that count but lack the label."""


class Included:
    """Per row whether its node counts."""

    __slots__ = ("_on", "count", "rows", "users")

    def __init__(self, on: NodesWhere, nodes: Rows, capacity: int) -> None:
        self._on = on
        self.users = 0
        """How many domains need this."""
        self.rows = Column(capacity, np.bool_)
        mask = included(on, nodes)
        self.rows.data[nodes.rows] = mask
        self.count = int(np.count_nonzero(mask))

    def enter(self, view: RowView, capacity: int) -> None:
        if view.row >= len(self.rows.data):
            self.rows.grow(capacity)
        self.rows.cells[view.row] = counts = includes(self._on, view)
        self.count += counts

    def leave(self, row: int) -> None:
        self.count -= self.rows.cells[row]
        self.rows.cells[row] = False


class Domains:
    """Per row the domain it is in; per domain how many nodes are. A domain exists while a node that counts is in it."""

    __slots__ = ("_nodes", "column", "count", "included", "lacking", "users")

    def __init__(self, column: InternedColumn[str | None], included: Included, nodes: Rows) -> None:
        self.column = column
        self.column.pins += 1
        self.included = included
        self.included.users += 1
        self.users = 0
        """How many tallies need these domains."""
        self._nodes = Column(16, np.int64)
        self.count = 0
        self.lacking = included.count
        """How many nodes count but lack the label."""
        if not column.is_empty:
            codes = nodes.cells(column.codes)
            nodes_in = np.bincount(codes[nodes.cells(included.rows)], minlength=1)
            self._nodes = Column(max(16, 2 * column.size), np.int64)
            self._nodes.data[1 : len(nodes_in)] = nodes_in[1:]
            self.count = int(np.count_nonzero(nodes_in[1:]))
            self.lacking = int(nodes_in[0])

    def close(self) -> None:
        """No tally counts by these domains any more."""
        self.column.pins -= 1
        self.included.users -= 1

    def of_row(self, row: int) -> int:
        """The domain of the node on this row; NOWHERE if it does not count."""
        return self.column.codes.cells[row] if self.included.rows.cells[row] else NOWHERE

    def enter(self, view: RowView) -> None:
        """A node came, or came back changed."""
        code = self.of_row(view.row)
        if code == 0:
            self.lacking += 1
        elif code > 0:
            if code >= len(self._nodes.data):
                self._nodes.grow(max(16, 2 * self.column.size))
            self.count += not self._nodes.cells[code]
            self._nodes.cells[code] += 1

    def leave(self, row: int) -> None:
        """A node goes, or is about to change."""
        code = self.of_row(row)
        if code == 0:
            self.lacking -= 1
        elif code > 0:
            self._nodes.cells[code] -= 1
            self.count -= not self._nodes.cells[code]

    def codes(self) -> list[int]:
        """The domains that exist."""
        return [int(code) for code in np.flatnonzero(self._nodes.data)]


def includes(on: NodesWhere, view: RowView) -> bool:
    """Whether the node counts into tallies over these nodes."""
    labels = view.labels
    return (
        all(key in labels for key in on.keys)
        and all(labels.get(key) == value for key, value in on.node_selector)
        and (on.affinity is None or selector_matches(on.affinity, view.name, labels))
        and (
            on.tolerated is None
            or on.tolerated.first_uncovered(view.taints, compare_numbers=on.compare_numbers) is None
        )
    )


def included(on: NodesWhere, nodes: Rows) -> BoolArray:
    """`includes`, for many nodes at once: a new kind of pod must not read every node one by one."""
    mask = np.ones(len(nodes), np.bool_)
    for key in on.keys:
        mask &= ~nodes.where_label_lacking(key)
        if not mask.any():
            return mask
    for key, value in on.node_selector:
        mask &= nodes.where_label_in(key, (value,))
        if not mask.any():
            return mask
    if on.affinity is not None:
        mask &= where_selector(on.affinity, nodes)
    tolerated, compare_numbers = on.tolerated, on.compare_numbers
    if tolerated is not None:
        mask &= nodes.where_taints(
            lambda taints: tolerated.first_uncovered(taints, compare_numbers=compare_numbers) is None
        )
    return mask
