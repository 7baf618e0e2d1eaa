"""What a plugin returned for every node, kept for pods of one signature.

A plugin declares what it reads of the pod (`sign`) and of the cluster (`reads`: the node, or the node and its pods).
For pods of the same signature its results on a node are the same until the node changes, or the plugin's state for
the pod is another one. So a column is brought up to date by evaluating the rows that changed: usually those that took
the last pods.

A column has a row for every node, also for those that other filters reject. Where a plugin fails on one, there is no
column: it runs on the nodes that reach it, as without a cache.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from mooring.engine.cycle import EngineCycle
from mooring.engine.evaluation import (
    are_in_range,
    checked_refusal,
    checked_score,
    is_constant,
    run_filter,
    run_score,
)
from mooring.engine.profile import FilterPlugin, ScorePlugin
from mooring.engine.rejected import Step, numbered
from mooring.framework import IntArray, Plugin, Reads, Refusal, constant_score
from mooring.framework.normalizers import HIGHEST_SCORE
from mooring.state import Column, Rows, State

FEW_ROWS = 4
"""So many rows are evaluated node by node, more of them at once."""
MOST_VERDICTS = 4_096
"""A plugin may give every node a reason of its own."""

Moment = tuple[int, int, int]
"""A place in the logs of changed nodes, of changed requests and of changed pods."""
NEVER: Moment = (-1, -1, -1)
_LOGS = {Reads.NODE: 0, Reads.REQUESTED: 1, Reads.PODS: 2}
"""Which of these logs a plugin reads besides that of nodes."""


def widest_log(plugins: Iterable[Plugin]) -> int:
    """The log that has every change which one of these plugins reads."""
    return max((_LOGS.get(plugin.reads, 0) for plugin in plugins), default=0)


class Changes:
    """Which rows changed since a moment: computed once for all columns of the same age."""

    __slots__ = ("_known", "_state", "now")

    def __init__(self, state: State) -> None:
        self._state = state
        self._known: dict[tuple[Moment, int], Sequence[int] | None] = {}
        self.now: Moment = (0, 0, 0)

    def look(self) -> None:
        """What `now` is, for one decision: nothing changes while it is taken."""
        state = self._state
        now = (state.node_changes.generation, state.request_changes.generation, state.pod_changes.generation)
        if now != self.now:
            self.now = now
            self._known.clear()

    def since(self, moment: Moment, log: int) -> Sequence[int] | None:
        """The rows whose nodes changed, and those of another log. None: so many that all are to be evaluated."""
        now = self.now
        if moment == now or (moment[0] == now[0] and moment[log] == now[log]):
            return ()
        key = (moment, log)
        if key not in self._known:
            self._known[key] = self._since(moment, log)
        return self._known[key]

    def _since(self, moment: Moment, log: int) -> Sequence[int] | None:
        nodes, pods = moment[0], moment[log]
        changed_nodes = self.now[0] - nodes
        changed_pods = self.now[log] - pods if log else 0
        if changed_nodes + changed_pods > 64 and max(changed_nodes, changed_pods) > self._state.node_count // 8:
            return None
        rows = self._state.node_changes.since(nodes) if changed_nodes else ()
        if rows is None or not changed_pods:
            return rows
        pod_log = self._state.request_changes if log == _LOGS[Reads.REQUESTED] else self._state.pod_changes
        more = pod_log.since(pods)
        if more is None or not rows:
            return more
        return list(dict.fromkeys((*rows, *more)))


class PluginColumn(ABC):
    """The results of one plugin at one point. Subclasses evaluate."""

    __slots__ = ("_log", "_moment", "_state", "epoch")

    def __init__(self, reads: Reads) -> None:
        self._log = _LOGS[reads]
        self.epoch = 0
        """Changes when all rows were evaluated."""
        self._moment = NEVER
        """When it was up to date; NEVER also if its evaluation was interrupted."""
        self._state: Any = None

    def is_current(self, now: Moment, state: Any) -> bool:
        """Whether nothing changed, as far as one look shows."""
        moment, log = self._moment, self._log
        return state is self._state and (moment == now or (moment[0] == now[0] and moment[log] == now[log]))

    def advance(self, cycle: EngineCycle, changes: Changes, state: Any) -> None:
        """Be up to date for the cycle's pod. `state` is what the plugin's pre_filter or pre_score returned for it."""
        rows: Sequence[int] | None = None
        if self._moment is not NEVER and (self._state is state or _equal(self._state, state)):
            rows = changes.since(self._moment, self._log)
        if rows is None:
            self._moment = NEVER
            self._evaluate_all(cycle)
            self.epoch += 1
        elif rows:
            self._moment = NEVER
            self._evaluate(cycle, rows)
        self._moment = changes.now
        self._state = state

    @abstractmethod
    def _evaluate_all(self, cycle: EngineCycle) -> None:
        """Every row."""

    @abstractmethod
    def _evaluate(self, cycle: EngineCycle, rows: Sequence[int]) -> None:
        """These rows, and no other."""


class FilterColumn(PluginColumn):
    """A filter's verdict about every node: 0 where it passes, otherwise the number of the rejection."""

    __slots__ = ("_filterer", "_numbers", "codes", "rejecting", "verdicts", "version")

    def __init__(self, filterer: FilterPlugin) -> None:
        super().__init__(filterer.plugin.reads)
        self._filterer = filterer
        self.codes = Column(0, np.uint16)
        self.verdicts: list[Refusal] = []
        """The rejection of code 1, of code 2, …"""
        self._numbers: dict[Refusal, int] = {}
        self.rejecting = 0
        """How many nodes it rejects."""
        self.version = 0
        """Changes with any verdict."""

    def step(self, nodes: Rows) -> Step | None:
        """What it rejects of these nodes; None: nothing."""
        if not self.rejecting:
            return None
        codes = nodes.cells(self.codes)
        mask = codes != 0
        if not np.count_nonzero(mask):
            return None
        return Step(self._filterer.name, nodes.rows, mask, codes=codes, verdicts=self.verdicts)

    def _evaluate_all(self, cycle: EngineCycle) -> None:
        nodes = cycle.nodes
        self.verdicts, self._numbers, self.rejecting = [], {}, 0
        self.codes = Column(cycle.state.row_capacity, np.uint16)
        step = run_filter(self._filterer, cycle, nodes)
        if step is not None:
            self.codes.data[nodes.rows] = numbered(step, self._number)
            self.rejecting = int(np.count_nonzero(self.codes.data))
        self.version += 1

    def _evaluate(self, cycle: EngineCycle, rows: Sequence[int]) -> None:
        if len(self.verdicts) > MOST_VERDICTS // 2:  # of nodes that are gone
            self._evaluate_all(cycle)
            self.epoch += 1
            return
        run, views, cells = self._filterer.one_by_one, cycle.state.views, self.codes.cells
        if run is None or (len(rows) > FEW_ROWS and self._filterer.at_once is not None):
            self._evaluate_at_once(cycle, rows)
            return
        for row in rows:
            view, code = views[row], 0
            if view is not None and (result := run(cycle.pod, view, cycle.shown)) is not None:
                code = self._number(checked_refusal(self._filterer, view, result))
            if cells[row] != code:
                self._put(row, code)

    def _evaluate_at_once(self, cycle: EngineCycle, rows: Sequence[int]) -> None:
        views = cycle.state.views
        nodes = cycle.nodes.of_rows(np.array([row for row in rows if views[row] is not None], np.intp))
        step = run_filter(self._filterer, cycle, nodes) if len(nodes) else None
        codes = [0] * len(nodes) if step is None else numbered(step, self._number).tolist()
        found = dict(zip(nodes.rows.tolist(), codes, strict=True))
        for row in rows:
            self._put(row, found.get(row, 0))

    def _put(self, row: int, code: int) -> None:
        cells = self.codes.cells
        if (old := cells[row]) != code:
            cells[row] = code
            self.rejecting += bool(code) - bool(old)
            self.version += 1

    def _number(self, refusal: Refusal) -> int:
        number = self._numbers.get(refusal)
        if number is None:
            if len(self.verdicts) >= MOST_VERDICTS:
                raise TooManyVerdicts
            self.verdicts.append(refusal)
            number = self._numbers[refusal] = len(self.verdicts)
        return number


class TooManyVerdicts(Exception):
    """Too many different rejections to number them."""


class ScoreColumn(PluginColumn):
    """A plugin's raw score of every node."""

    __slots__ = ("_scorer", "constant", "is_in_range", "scores", "shape")

    def __init__(self, scorer: ScorePlugin) -> None:
        super().__init__(scorer.plugin.reads)
        self._scorer = scorer
        self.constant: int | None = None
        """The score of every node, if it is the same; then there is no column of scores."""
        self.scores = Column(0, np.int64)
        self.is_in_range = False
        """Whether no score is below 0 or above 100, be it normalized later or not."""
        self.shape = 0
        """Changes where one of the two may have changed."""

    def raw(self, nodes: Rows) -> IntArray:
        if self.constant is not None:
            return constant_score(self.constant, nodes)
        return nodes.cells(self.scores)

    def _evaluate_all(self, cycle: EngineCycle) -> None:
        nodes = cycle.nodes
        scores = run_score(self._scorer, cycle, nodes)
        self.shape += 1
        if is_constant(scores) and len(nodes):
            self.constant = scores.item(0)
            self.is_in_range = 0 <= self.constant <= HIGHEST_SCORE
            return
        self.constant = None
        self.is_in_range = are_in_range(scores)
        self.scores = Column(cycle.state.row_capacity, np.int64)
        self.scores.data[nodes.rows] = scores

    def _evaluate(self, cycle: EngineCycle, rows: Sequence[int]) -> None:
        scorer, views = self._scorer, cycle.state.views
        run = scorer.one_by_one
        if run is not None and (len(rows) <= FEW_ROWS or scorer.at_once is None):
            for row in rows:
                if (view := views[row]) is not None:
                    score = run(cycle.pod, view, cycle.shown)
                    self._put(row, score if type(score) is int else checked_score(scorer, cycle, view, score), cycle)
            return
        live = [row for row in rows if views[row] is not None]
        if live:
            scores = run_score(scorer, cycle, cycle.nodes.of_rows(np.array(live, np.intp)))
            for row, score in zip(live, scores.tolist(), strict=True):
                self._put(row, score, cycle)

    def _put(self, row: int, score: int, cycle: EngineCycle) -> None:
        if self.constant is not None:
            if score == self.constant:
                return
            self.scores = Column(cycle.state.row_capacity, np.int64)
            self.scores.data[:] = self.constant
            self.constant = None
            self.shape += 1
        cells = self.scores.cells
        if cells[row] != score:
            cells[row] = score
            if self.is_in_range and not 0 <= score <= HIGHEST_SCORE:
                self.is_in_range = False
                self.shape += 1


def _equal(one: Any, other: Any) -> bool:
    """Whether two states of a plugin are equal. What cannot be compared is not."""
    try:
        return bool(one == other)
    except Exception:
        return False
