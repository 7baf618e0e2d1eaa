"""Topology domains: which nodes share a value of a label, over the nodes that count. Decides nothing about pods.

Every tally by the same label over the same nodes shares one of these, so that a thousand Services cost a node's
change no more than one does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mooring.framework import BoolArray, NodesWhere
from mooring.objects.core import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from mooring.objects.placement_rules import first_untolerated, selector_matches, term_matches
from mooring.objects.selectors import requirement_matches
from mooring.state.columns import Column, InternedColumn
from mooring.state.views import Rows, RowView

if TYPE_CHECKING:
    from mooring.state.tallies import StandingTally

NOWHERE = -1
"""The domain of a node that does not count. 0 is that of nodes that count but lack the label."""


class Domains:
    """Per row the domain it is in; per domain how many nodes are. A domain exists while a node that counts is in it."""

    __slots__ = ("_nodes", "_on", "column", "count", "lacking", "of_row", "tallies", "users")

    def __init__(self, column: InternedColumn[str | None], on: NodesWhere, nodes: Rows) -> None:
        self.column = column
        self.column.pins += 1
        self._on = on
        self.users = 0
        """How many tallies need these domains."""
        self.tallies: dict[StandingTally, None] = {}
        """Those that must hear of nodes."""
        self.of_row = Column(len(column.codes.data), np.intp)
        self._nodes = Column(max(16, 2 * column.size), np.int64)
        codes = np.where(included(on, nodes), nodes.cells(column.codes), NOWHERE)
        self.of_row.data[nodes.rows] = codes
        nodes_in = np.bincount(codes[codes >= 0], minlength=1)
        self._nodes.data[1 : len(nodes_in)] = nodes_in[1:]
        self.count = int(np.count_nonzero(nodes_in[1:]))
        self.lacking = int(nodes_in[0])
        """How many nodes count but lack the label."""

    def close(self) -> None:
        """Nobody counts by these domains any more."""
        self.column.pins -= 1

    def enter(self, view: RowView) -> None:
        """A node came, or came back changed."""
        row = view.row
        if row >= len(self.of_row.data):
            self.of_row.grow(len(self.column.codes.data))
        code = self.column.codes.cells[row] if includes(self._on, view) else NOWHERE
        self.of_row.cells[row] = code
        if code == 0:
            self.lacking += 1
        elif code > 0:
            if code >= len(self._nodes.data):
                self._nodes.grow(2 * self.column.size)
            self.count += not self._nodes.cells[code]
            self._nodes.cells[code] += 1
        if code != NOWHERE:
            for tally in self.tallies:
                tally.row_entered(row, code)

    def leave(self, row: int) -> None:
        """A node goes, or is about to change."""
        code = self.of_row.cells[row]
        if code == NOWHERE:
            return
        for tally in self.tallies:
            tally.row_left(row, code)
        self.of_row.cells[row] = NOWHERE
        if code == 0:
            self.lacking -= 1
        else:
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
            on.tolerations is None
            or first_untolerated(view.taints, on.tolerations, compare_numbers=on.compare_numbers) is None
        )
    )


def included(on: NodesWhere, nodes: Rows) -> BoolArray:
    """`includes`, for many nodes at once: a new kind of pod must not cost a look at every node."""
    mask = np.ones(len(nodes), np.bool_)
    for key in on.keys:
        mask &= nodes.where_label(key, lambda found: found is not None)
    for key, value in on.node_selector:
        mask &= nodes.where_label(key, lambda found, value=value: found == value)  # type: ignore[misc]
    if on.affinity is not None:
        mask &= _selected(on.affinity, nodes)
    tolerations, compare_numbers = on.tolerations, on.compare_numbers
    if tolerations is not None:
        mask &= nodes.where_taints(
            lambda taints: first_untolerated(taints, tolerations, compare_numbers=compare_numbers) is None
        )
    return mask


def _selected(selector: NodeSelector, nodes: Rows) -> BoolArray:
    mask = np.zeros(len(nodes), np.bool_)
    for term in selector.node_selector_terms:
        mask |= _matching(term, nodes)
    return mask


def _matching(term: NodeSelectorTerm, nodes: Rows) -> BoolArray:
    if not term.match_expressions and not term.match_fields:
        return np.zeros(len(nodes), np.bool_)
    mask = np.ones(len(nodes), np.bool_)
    for part in term.match_expressions:
        mask &= _where(part, nodes)
    if term.match_fields:
        by_name = NodeSelectorTerm(match_fields=term.match_fields)
        mask &= np.fromiter((term_matches(by_name, name, {}) for name in nodes.names), np.bool_, len(nodes))
    return mask


def _where(part: NodeSelectorRequirement, nodes: Rows) -> BoolArray:
    key, operator, values = part.key, part.operator, part.values
    return nodes.where_label(
        key, lambda found: requirement_matches(key, operator, values, {} if found is None else {key: found})
    )
