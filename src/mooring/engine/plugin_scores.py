"""One plugin's scores of the nodes that are scored: raw, normalized and weighted."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mooring.engine.cycle import EngineCycle
from mooring.engine.evaluation import is_constant, normalized, out_of_range
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


class PluginScores:
    """In a cached column, which has a row for every node, or as the plugin returned them for these nodes."""

    __slots__ = ("_normalized", "_raw", "column", "constant", "name", "scorer", "weight")

    def __init__(self, scorer: ScorePlugin, column: ScoreColumn | None, raw: IntArray | None = None) -> None:
        self.scorer = scorer
        self.name = scorer.name
        self.weight = scorer.weight
        self.column = column
        self._raw = raw
        self._normalized: IntArray | None = None
        self.constant: int | None = None
        """The normalized score, where it is the same for all nodes."""

    @classmethod
    def given(cls, name: str, weight: int, raw: IntArray, normalized: IntArray) -> PluginScores:
        """Scores that no plugin returned."""
        scores = cls.__new__(cls)
        scores.name, scores.weight = name, weight
        scores.column, scores.constant = None, None
        scores._raw, scores._normalized = raw, normalized
        return scores

    @property
    def is_summed(self) -> bool:
        """Whether the column's scores are added up as they are: not normalized, and none out of range."""
        column, scorer = self.column, self.scorer
        return (
            column is not None
            and scorer.normalizer is None
            and scorer.normalize is None
            and column.constant is None
            and column.is_in_range
        )

    def normalize(self, cycle: EngineCycle, nodes: Rows) -> None:
        self._normalized = self.constant = None
        scorer, score = self.scorer, self._raw_constant()
        if score is not None and scorer.normalize is None:
            self.constant = score if scorer.normalizer is None else scorer.normalized_constants.get(score)
            if self.constant is not None:
                return
        scores = normalized(scorer, cycle, nodes, self.raw(nodes))
        if is_constant(scores):
            self.constant = scores.item(0)
        else:
            self._normalized = scores

    def check(self) -> None:
        """A normalized score beyond 0…100 is a fault."""
        scores = self._normalized
        if self.constant is not None:
            if not 0 <= self.constant <= HIGHEST_SCORE:
                raise out_of_range(self.scorer, np.array((self.constant,)))
        # Read without their sign, negative numbers are the largest: one look finds both ends.
        elif scores is not None and np.maximum.reduce(scores.view(np.uint64)) > HIGHEST_SCORE:
            raise out_of_range(self.scorer, scores)

    def _raw_constant(self) -> int | None:
        """The raw score, where it is the same for all nodes as far as one look shows."""
        if self.column is not None:
            return self.column.constant
        raw = self._raw
        return raw.item(0) if raw is not None and is_constant(raw) else None

    def raw(self, nodes: Rows) -> IntArray:
        if self.column is not None:
            return self.column.raw(nodes)
        assert self._raw is not None
        return self._raw

    def normalized(self, nodes: Rows) -> IntArray:
        if self._normalized is not None:
            return self._normalized
        return self.raw(nodes) if self.constant is None else constant_score(self.constant, nodes)

    def at(self, place: int, row: int) -> Score:
        """The score of one node: at this place among those that are scored, and on this row of the table."""
        raw = self.column.at(row) if self.column is not None else self._raw.item(place)  # type: ignore[union-attr]
        score = self.constant
        if score is None:
            score = raw if self._normalized is None else self._normalized.item(place)
        return Score(raw, score, score * self.weight, self.weight)
