"""All nodes as pods of one signature see them: which pass the cached filters, and the sum of their cached scores.

The filters are the profile's first ones, as far as their results are kept: what comes after a filter that runs every
time runs every time too, so that each node is rejected by the first filter that would. Scores that run every time are
added to the sum of the others.

What changed on a node changes its row here, and nothing else. A rejected node, and a row without a node, has the total
`OUT`: then the best node is found by looking at one column.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mooring.engine.cycle import EngineCycle
from mooring.engine.plugin_call import calling
from mooring.engine.plugin_columns import NEVER, Changes, FilterColumn
from mooring.engine.plugin_scores import CachedScores
from mooring.engine.profile import OUT, FilterPlugin
from mooring.engine.rejected import Step
from mooring.framework import BoolArray
from mooring.state import Column, Rows, RowView

FEW_ROWS = 16
"""So many rows are updated one by one, more of them at once."""


class Ranking:
    """Feasible nodes and totals, by row of the node table."""

    def __init__(self, cacheable: Sequence[FilterPlugin], columns: Sequence[FilterColumn], log: int) -> None:
        """`log` has every change that filters or scores read."""
        self._log = log
        self.cacheable = cacheable
        """The profile's first filters that run for such pods, as far as they can be cached."""
        self.filters = list(zip(cacheable, columns, strict=False))
        """Those of them that are: up to the first that failed."""
        self._names = [filterer.name for filterer, _ in self.filters]
        self.skipped: frozenset[str] = frozenset()
        """The plugins whose filters did not run for the latest such pod…"""
        self.others: Sequence[FilterPlugin] = ()
        """…and the filters that did, after those of the ranking."""
        self._moment = NEVER
        self._epochs = 0
        self._rejected: BoolArray = np.ones(0, np.bool_)
        self.count = 0
        """How many nodes pass."""
        self._version = 0
        """Changes with the feasible nodes."""
        self._nodes: tuple[int, Rows] | None = None
        self._steps: tuple[Rows, list[int], list[Step]] | None = None
        self.scores: dict[str, CachedScores] = {}
        """The cached scores of such pods, by plugin."""
        self._totals = _Totals(())
        self._unscored: set[int] | None = None
        """Rows that changed since totals were computed; None: all of them."""

    # Filters

    def advance(self, cycle: EngineCycle, changes: Changes, call: calling) -> None:
        """Bring filters up to date for the cycle's pod."""
        states, now, is_timed = cycle.filter_states, changes.now, cycle.times_plugins
        epochs = 0
        if not is_timed:
            call.note_cached(self._names)
        for filterer, column in self.filters:
            state = states.get(filterer.name)
            if is_timed:
                call.switch_to(filterer.plugin)
            if not column.is_current(now, state):
                call.switch_past(filterer.plugin)
                column.advance(cycle, changes, state)
            epochs += column.epoch  # they only grow: the same sum means that all are the same
        rows: Sequence[int] | None = None
        if self._moment is not NEVER and epochs == self._epochs:
            rows = changes.since(self._moment, self._log)
        if rows is None:
            self._filter_all(cycle)
            self._epochs = epochs
        elif rows:
            self._filter(rows, cycle.state.views)
        self._moment = now

    def _filter_all(self, cycle: EngineCycle) -> None:
        nodes = cycle.nodes
        rejected = np.ones(cycle.state.row_capacity, np.bool_)
        rejected[nodes.rows] = False
        for _, column in self.filters:
            if column.rejecting:
                rejected |= column.codes.data != 0
        self._rejected = rejected
        self.count = len(rejected) - int(np.count_nonzero(rejected))
        self._version += 1
        self._unscored = None

    def _filter(self, rows: Sequence[int], views: Sequence[RowView | None]) -> None:
        rejected = self._rejected
        codes = [column.codes.cells for _, column in self.filters if column.rejecting]
        for row in rows:
            is_out = views[row] is None
            for cells in codes:
                if cells[row]:
                    is_out = True
                    break
            if is_out != rejected[row]:
                if self._nodes is not None:  # its mask may be read yet
                    rejected = self._rejected = rejected.copy()
                    self._nodes = None
                rejected[row] = is_out
                self.count += -1 if is_out else 1
                self._version += 1
        if self._unscored is not None:
            self._unscored.update(rows)

    def nodes(self, every: Rows) -> Rows:
        """The nodes that pass."""
        if self.count == len(every):
            return every
        if self._nodes is None or self._nodes[0] != self._version:
            self._nodes = (self._version, every.outside(self._rejected, self.count))
        return self._nodes[1]

    def steps(self, every: Rows) -> list[Step]:
        """What the filters rejected, each node by the first."""
        versions = [column.version for _, column in self.filters]
        if self._steps is None or self._steps[0] is not every or self._steps[1] != versions:
            self._steps = (every, versions, self._new_steps(every))
        return self._steps[2]

    def rejected_counts(self, every: Rows) -> dict[str, int]:
        """How many nodes each filter rejected, each node by the first."""
        rejecting = [(filterer.name, column.rejecting) for filterer, column in self.filters if column.rejecting]
        if len(rejecting) <= 1:  # no node is rejected by two
            return dict(rejecting)
        return {step.plugin: int(np.count_nonzero(step.mask)) for step in self.steps(every)}

    def _new_steps(self, every: Rows) -> list[Step]:
        steps: list[Step] = []
        for _, column in self.filters:
            step = column.step(every)
            if step is not None and (step := step.without(steps)) is not None:
                steps.append(step)
        return steps

    # Scores

    def totals(self, each: Sequence[CachedScores]) -> Column:
        """Per row the sum of these cached scores, which are up to date; `OUT` where a filter rejects."""
        if not self._totals.is_of(each):
            self._totals = _Totals(each)
            self._unscored = None
        if self._unscored is None:
            self._totals.compute(self._rejected)
            self._unscored = set()
        elif self._unscored:
            self._totals.update(self._unscored, self._rejected)
            self._unscored.clear()
        return self._totals.column


class _Totals:
    """The weighted sum of score columns, none of them constant."""

    def __init__(self, each: Sequence[CachedScores]) -> None:
        self._weighted = [(scores.weight, scores.column) for scores in each]
        self._epochs = [column.epoch for _, column in self._weighted]
        self.column = Column(0, np.int32)

    def is_of(self, each: Sequence[CachedScores]) -> bool:
        """Whether it is the sum of these scores, but for rows that changed."""
        if len(each) != len(self._weighted):
            return False
        for scores, (_, known), epoch in zip(each, self._weighted, self._epochs, strict=True):
            if scores.column is not known or known.epoch != epoch:
                return False
        return True

    def compute(self, rejected: BoolArray) -> None:
        self.column = Column(len(rejected), np.int32)
        totals = self.column.data
        for weight, column in self._weighted:
            totals += column.scores.data.astype(np.int32) * np.int32(weight)
        totals[rejected] = OUT

    def update(self, rows: set[int], rejected: BoolArray) -> None:
        if len(rows) > FEW_ROWS:
            self._update_at_once(np.fromiter(rows, np.intp, len(rows)), rejected)
            return
        cells = self.column.cells
        for row in rows:
            total = OUT
            if not rejected[row]:
                total = 0
                for weight, column in self._weighted:
                    total += column.scores.cells[row] * weight
            cells[row] = total

    def _update_at_once(self, rows: NDArray[np.intp], rejected: BoolArray) -> None:
        totals = np.zeros(len(rows), np.int32)
        for weight, column in self._weighted:
            totals += column.scores.data.take(rows).astype(np.int32) * np.int32(weight)
        totals[rejected.take(rows)] = OUT
        self.column.data[rows] = totals
