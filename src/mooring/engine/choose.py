"""The second half of a decision: which feasible node is best. One node is taken as it is; several are scored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mooring.base.errors import PluginFault
from mooring.base.log import Log
from mooring.engine.asking import NORMALIZE, PRE_SCORE, SCORE, WEIGHT, asking, fault
from mooring.engine.cycle import EngineCycle, Stage
from mooring.engine.profile import Scorer
from mooring.framework import IntArray, Refusal, Skip
from mooring.framework.normalizers import HIGHEST_SCORE
from mooring.state import Rows, RowView

log = Log("engine")


@dataclass(frozen=True, slots=True)
class Score:
    """What one plugin gave one node: as it said it, brought to 0…100, and multiplied by its weight."""

    raw: int
    normalized: int
    weighted: int
    weight: int


@dataclass(slots=True)
class ScoreColumns:
    """Every feasible node's scores: per plugin one number per node, in the order of `nodes`."""

    nodes: tuple[str, ...]
    total: IntArray
    raw: dict[str, IntArray] = field(default_factory=dict)
    normalized: dict[str, IntArray] = field(default_factory=dict)
    weights: dict[str, int] = field(default_factory=dict)

    def copy(self) -> ScoreColumns:
        """The same in arrays of its own: a plugin may have answered with a column of the table."""
        return ScoreColumns(
            self.nodes,
            self.total.copy(),
            {name: column.copy() for name, column in self.raw.items()},
            {name: column.copy() for name, column in self.normalized.items()},
            dict(self.weights),
        )


@dataclass(frozen=True, slots=True)
class Choice:
    """The winner, its scores per plugin and their sum; every node's, as long as they are kept."""

    view: RowView
    scores: Mapping[str, Score]
    total: int
    columns: _Columns | None


class _Columns:
    """Score columns whose node names are spelled out only when somebody reads them."""

    __slots__ = ("_nodes", "normalized", "raw", "total", "weights")

    def __init__(self, nodes: Rows, total: IntArray) -> None:
        self._nodes = nodes
        self.total = total
        self.raw: dict[str, IntArray] = {}
        self.normalized: dict[str, IntArray] = {}
        self.weights: dict[str, int] = {}

    def read(self) -> ScoreColumns:
        return ScoreColumns(tuple(self._nodes.names), self.total, self.raw, self.normalized, self.weights)


def best(cycle: EngineCycle, nodes: Rows, seed: int) -> Choice:
    """The node with the highest sum of weighted scores; among equals the seed says which."""
    if len(nodes) == 1:
        return Choice(nodes.at(0), {}, 0, None)
    columns = _scored(cycle, nodes)
    total = columns.total
    ties = np.flatnonzero(total == total.max())
    place = int(ties[seed % len(ties)])
    if debug := log.v(10):
        _tell(debug, cycle, nodes, columns)
    scores = {
        name: Score(
            int(raw[place]), int(columns.normalized[name][place]), int(columns.normalized[name][place]) * weight, weight
        )
        for (name, raw), weight in zip(columns.raw.items(), columns.weights.values(), strict=True)
    }
    return Choice(nodes.at(place), scores, int(total[place]), columns)


def _scored(cycle: EngineCycle, nodes: Rows) -> _Columns:
    if not cycle.profile.scorers:
        return _Columns(nodes, np.ones(len(nodes), np.int64))
    _ask_pre_scores(cycle, nodes)
    cycle.stage = Stage.SCORE
    total = np.zeros(len(nodes), np.int64)
    columns = _Columns(nodes, total)
    scorers = [scorer for scorer in cycle.profile.scorers if scorer.name not in cycle.skipped_scores]
    # As upstream: all plugins score, then all normalise, then all are checked; the first problem is the one reported.
    for scorer in scorers:
        with asking(cycle, scorer.plugin, SCORE):
            columns.raw[scorer.name] = _raw(scorer, cycle, nodes)
    for scorer in scorers:
        with asking(cycle, scorer.plugin, NORMALIZE):
            columns.normalized[scorer.name] = _normalized(scorer, cycle, nodes, columns.raw[scorer.name])
    for scorer in scorers:
        normalized = columns.normalized[scorer.name]
        if normalized.min() < 0 or normalized.max() > HIGHEST_SCORE:
            raise _out_of_range(scorer, normalized)
        columns.weights[scorer.name] = scorer.weight
        total += normalized * scorer.weight if scorer.weight != 1 else normalized
    return columns


def _ask_pre_scores(cycle: EngineCycle, nodes: Rows) -> None:
    cycle.stage = Stage.PRE_SCORE
    for plugin in cycle.profile.pre_scores:
        with asking(cycle, plugin, PRE_SCORE):
            answer = plugin.pre_score(cycle.pod, nodes, cycle)
        if isinstance(answer, Skip):
            cycle.skipped_scores.add(plugin.name)
        elif isinstance(answer, Refusal):
            what = f"pre_score cannot refuse, but answered {answer!r}"
            raise fault(plugin, PRE_SCORE, what)
        else:
            cycle.score_states[plugin.name] = answer


def _raw(scorer: Scorer, cycle: EngineCycle, nodes: Rows) -> IntArray:
    if scorer.at_once is not None:
        return _whole_numbers(scorer, SCORE, scorer.at_once(cycle.pod, nodes, cycle), nodes)
    ask, pod = scorer.one_by_one, cycle.pod
    assert ask is not None, f"{scorer.name} has no score"
    return _whole_numbers(scorer, SCORE, [ask(pod, view, cycle) for view in nodes], nodes)


def _normalized(scorer: Scorer, cycle: EngineCycle, nodes: Rows, raw: IntArray) -> IntArray:
    if scorer.normalize is not None:
        return _whole_numbers(scorer, NORMALIZE, scorer.normalize(cycle.pod, nodes, raw, cycle), nodes)
    if scorer.normalizer is not None:
        measure = scorer.normalizer.measure(int(raw.min()), int(raw.max()))
        return _whole_numbers(scorer, NORMALIZE, scorer.normalizer.scale(raw, measure), nodes)
    return raw


def _whole_numbers(scorer: Scorer, words: str, scores: Any, nodes: Rows) -> IntArray:
    """The scores as int64, one per node; otherwise a fault that names plugin, node and value."""
    if not isinstance(scores, np.ndarray):
        scores = list(scores)
        if not set(map(type, scores)) <= {int}:
            scores = [_whole_number(scorer, words, score, nodes, place) for place, score in enumerate(scores)]
        try:
            scores = np.array(scores, np.int64)
        except OverflowError:
            place = next(place for place, score in enumerate(scores) if not -(2**63) <= score < 2**63)
            raise _no_whole_number(scorer, words, scores[place], nodes, place) from None
    if scores.shape != (len(nodes),):
        raise fault(scorer.plugin, words, f"gave scores of shape {scores.shape} for {len(nodes)} nodes")
    if scores.dtype.kind not in "iu":
        listed = [_whole_number(scorer, words, score, nodes, place) for place, score in enumerate(scores.tolist())]
        return np.array(listed, np.int64)
    checked: IntArray = scores.astype(np.int64, copy=False)
    return checked


def _whole_number(scorer: Scorer, words: str, score: Any, nodes: Rows, place: int) -> int:
    # A float is refused even where it is whole: 50.0 today is 33.3 tomorrow, and the author should hear of it today.
    if isinstance(score, int | np.integer) and not isinstance(score, bool):
        return int(score)
    raise _no_whole_number(scorer, words, score, nodes, place)


def _no_whole_number(scorer: Scorer, words: str, score: Any, nodes: Rows, place: int) -> PluginFault:
    where = f"of node {nodes.at(place).name} " if place < len(nodes) else ""
    what = f"the score {where}is {score!r} ({type(score).__name__}); a score must be a whole number"
    return fault(scorer.plugin, words, what)


def _out_of_range(scorer: Scorer, normalized: IntArray) -> PluginFault:
    wrong = int(normalized[(normalized < 0) | (normalized > HIGHEST_SCORE)][0])
    what = f"returns an invalid score {wrong}, it should in the range of [0, {HIGHEST_SCORE}] after normalizing"
    return fault(scorer.plugin, WEIGHT, what)


def _tell(debug: Log, cycle: EngineCycle, nodes: Rows, columns: _Columns) -> None:
    """kube-scheduler's lines at -v=10."""
    pod = cycle.pod
    for place, name in enumerate(nodes.names):
        for plugin, normalized in columns.normalized.items():
            weighted = int(normalized[place]) * columns.weights[plugin]
            debug.info("Plugin scored node for pod", pod=pod, plugin=plugin, node=name, score=weighted)
    for place, name in enumerate(nodes.names):
        debug.info("Calculated node's final score for pod", pod=pod, node=name, score=int(columns.total[place]))
