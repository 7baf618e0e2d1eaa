"""One plugin's scores of the nodes that are scored: raw, normalized and weighted."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np

from mooring.engine.cycle import EngineCycle
from mooring.engine.evaluation import are_in_range, is_constant, normalized, out_of_range
from mooring.engine.plugin_columns import ScoreColumn
from mooring.engine.profile import ScorePlugin
from mooring.framework import IntArray, constant_score
from mooring.framework.normalizers import HIGHEST_SCORE
from mooring.state import Rows


class Score(NamedTuple):
    """One plugin's score of one node: as returned, normalized to 0…100, and multiplied by its weight."""

    raw: int
    normalized: int
    weighted: int
    weight: int


_score = partial(tuple.__new__, Score)
"""`Score(…)`, without a Python call: a decision makes one for each plugin."""


class PluginScores:
    """As the plugin returned them, or an extender, for these nodes."""

    __slots__ = ("_normalized", "_raw", "constant", "is_settled", "is_summed", "name", "scorer", "weight")

    def __init__(self, scorer: ScorePlugin, raw: IntArray) -> None:
        self.scorer = scorer
        self.name = scorer.name
        self.weight = scorer.weight
        self._raw = raw
        self.is_summed = False
        """Whether the scores of a column are added up as they are: not normalized, and none out of range."""
        self._settle(raw.item(0) if is_constant(raw) else None)

    def _settle(self, raw: int | None) -> None:
        """`raw`: the score of every node, if it is the same."""
        scorer = self.scorer
        self._normalized: IntArray | None = None
        self.constant: int | None = None
        """The normalized score, where it is the same for all nodes."""
        if raw is not None and scorer.normalize is None:
            self.constant = raw if scorer.normalizer is None else scorer.normalized_constants.get(raw)
        self.is_settled = self.constant is not None and 0 <= self.constant <= HIGHEST_SCORE
        """Whether the constant is known and valid whichever nodes are scored."""

    @classmethod
    def given(cls, name: str, weight: int, raw: IntArray, normalized: IntArray) -> PluginScores:
        """Scores that no plugin returned."""
        scores = cls.__new__(cls)
        scores.name, scores.weight = name, weight
        scores.constant, scores.is_settled, scores.is_summed = None, True, False
        scores._raw, scores._normalized = raw, normalized
        return scores

    def normalize(self, cycle: EngineCycle, nodes: Rows) -> None:
        self._normalized = self.constant = None
        scores = normalized(self.scorer, cycle, nodes, self.raw(nodes))
        if is_constant(scores):
            self.constant = scores.item(0)
        else:
            self._normalized = scores

    def check(self, nodes: Rows) -> None:
        """A normalized score beyond 0…100 is a fault."""
        if self.constant is not None:
            if not 0 <= self.constant <= HIGHEST_SCORE:
                raise out_of_range(self.scorer, np.array((self.constant,)))
        elif not are_in_range(scores := self.normalized(nodes)):
            raise out_of_range(self.scorer, scores)

    def raw(self, nodes: Rows) -> IntArray:
        return self._raw

    def normalized(self, nodes: Rows) -> IntArray:
        if self._normalized is not None:
            return self._normalized
        return self.raw(nodes) if self.constant is None else constant_score(self.constant, nodes)

    def at(self, place: int, row: int) -> Score:
        """The score of one node: at this place among those that are scored, and on this row of the table."""
        raw, score = self._raw.item(place), self.constant
        if score is None:
            score = raw if self._normalized is None else self._normalized.item(place)
        return _score((raw, score, score * self.weight, self.weight))


class CachedScores(PluginScores):
    """In a column, which has a row for every node."""

    __slots__ = ("column", "shape")

    def __init__(self, scorer: ScorePlugin, column: ScoreColumn) -> None:
        self.scorer = scorer
        self.name = scorer.name
        self.weight = scorer.weight
        self.column = column
        self.shape = -1
        """That of the column when they were settled."""

    def settle(self) -> None:
        column, scorer = self.column, self.scorer
        self.shape = column.shape
        self._settle(column.constant)
        self.is_summed = not scorer.is_normalized and column.constant is None and column.is_in_range

    def raw(self, nodes: Rows) -> IntArray:
        return self.column.raw(nodes)

    def at(self, place: int, row: int) -> Score:
        column, score = self.column, self.constant
        raw = column.constant if column.constant is not None else column.scores.cells[row]
        if score is None:
            score = raw if self._normalized is None else self._normalized.item(place)
        return _score((raw, score, score * self.weight, self.weight))
