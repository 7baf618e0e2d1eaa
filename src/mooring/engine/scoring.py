"""The second half of a decision: which feasible node is best. One node is taken as it is; several are scored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from mooring.base.errors import PluginFault
from mooring.base.log import Log
from mooring.engine.cycle import EngineCycle, Stage
from mooring.engine.extender_results import SCALE, ExtenderScores
from mooring.engine.extension_point import ExtensionPoint
from mooring.engine.plugin_call import calling, fault
from mooring.engine.profile import ScorePlugin
from mooring.engine.score_cache import NO_SCORE_CACHES, ScoreCaches
from mooring.framework import IntArray, Refusal, Skip
from mooring.framework.normalizers import HIGHEST_SCORE
from mooring.framework.verdicts import constant
from mooring.state import Rows, RowView

log = Log("engine")


class Score(NamedTuple):
    """One plugin's score of one node: as returned, normalized to 0…100, and multiplied by its weight."""

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
        """The same in arrays of its own: a plugin may have returned a column of the table."""
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
    """Score columns whose node names are spelled out only when read."""

    __slots__ = ("_nodes", "normalized", "raw", "total", "weights")

    def __init__(self, nodes: Rows, total: IntArray) -> None:
        self._nodes = nodes
        self.total = total
        self.raw: dict[str, IntArray] = {}
        self.normalized: dict[str, IntArray] = {}
        self.weights: dict[str, int] = {}

    def read(self) -> ScoreColumns:
        return ScoreColumns(tuple(self._nodes.names), self.total, self.raw, self.normalized, self.weights)


def best(
    cycle: EngineCycle,
    nodes: Rows,
    score_caches: ScoreCaches = NO_SCORE_CACHES,
    extender_scores: Sequence[ExtenderScores] = (),
) -> Choice:
    """The node with the highest sum of weighted scores, those of extenders included.

    The cycle's seed breaks ties.
    """
    if len(nodes) == 1:
        return Choice(nodes.at(0), {}, 0, None)
    columns = _scored(cycle, nodes, score_caches)
    if extender_scores:
        _add(columns, extender_scores, nodes)
    total = columns.total
    ties = np.flatnonzero(total == np.maximum.reduce(total))  # `max` is this and a Python call
    place = ties.item(cycle.seed % len(ties))
    if debug := log.v(10):
        _log_scores(debug, cycle, nodes, columns)
    scores = {
        name: Score(raw.item(place), score := columns.normalized[name].item(place), score * weight, weight)
        for (name, raw), weight in zip(columns.raw.items(), columns.weights.values(), strict=True)
    }
    return Choice(nodes.at(place), scores, int(total[place]), columns)


def _scored(cycle: EngineCycle, nodes: Rows, score_caches: ScoreCaches) -> _Columns:
    if not cycle.profile.scorers:
        return _Columns(nodes, np.ones(len(nodes), np.int64))
    _run_pre_scores(cycle, nodes)
    cycle.stage = Stage.SCORE
    total = np.zeros(len(nodes), np.int64)
    for_all = 0
    columns = _Columns(nodes, total)
    scorers = [scorer for scorer in cycle.profile.scorers if scorer.name not in cycle.skipped_scores]
    # As upstream: all plugins score, then all normalise, then all are checked; the first problem is the one reported.
    with calling(cycle, None, ExtensionPoint.SCORE) as call:
        for scorer in scorers:
            call.switch_to(scorer.plugin)
            columns.raw[scorer.name] = _raw(scorer, cycle, nodes, score_caches)
    with calling(cycle, None, ExtensionPoint.NORMALIZE) as call:
        for scorer in scorers:
            call.switch_to(scorer.plugin)
            columns.normalized[scorer.name] = _normalized(scorer, cycle, nodes, columns.raw[scorer.name])
    for scorer in scorers:
        normalized, weight = columns.normalized[scorer.name], scorer.weight
        columns.weights[scorer.name] = weight
        if is_constant(normalized):
            score = normalized.item(0)
            if not 0 <= score <= HIGHEST_SCORE:
                raise _out_of_range(scorer, normalized)
            for_all += score * weight
            continue
        # Read without their sign, negative numbers are the largest: one look finds both ends.
        if np.maximum.reduce(normalized.view(np.uint64)) > HIGHEST_SCORE:
            raise _out_of_range(scorer, normalized)
        total += normalized * weight if weight != 1 else normalized
    if for_all:
        total += for_all
    return columns


def _add(columns: _Columns, extender_scores: Sequence[ExtenderScores], nodes: Rows) -> None:
    """Extenders' scores are brought to 0…100 but not checked; kube-scheduler does not either."""
    for each in extender_scores:
        raw = each.column(nodes)
        columns.raw[each.extender] = raw
        columns.normalized[each.extender] = raw * SCALE
        columns.weights[each.extender] = each.weight
        columns.total += raw * SCALE * each.weight


def _run_pre_scores(cycle: EngineCycle, nodes: Rows) -> None:
    cycle.stage = Stage.PRE_SCORE
    with calling(cycle, None, ExtensionPoint.PRE_SCORE) as call:
        for plugin in cycle.profile.pre_scores:
            call.switch_to(plugin)
            result = plugin.pre_score(cycle.pod, nodes, cycle)
            if isinstance(result, Skip):
                cycle.skipped_scores.add(plugin.name)
            elif isinstance(result, Refusal):
                what = f"pre_score cannot refuse, but returned {result!r}"
                raise fault(plugin, ExtensionPoint.PRE_SCORE, what)
            else:
                cycle.score_states[plugin.name] = result


def _raw(scorer: ScorePlugin, cycle: EngineCycle, nodes: Rows, score_caches: ScoreCaches) -> IntArray:
    cache = score_caches.get(scorer.name)
    if cache is not None:
        cached = cache.get(
            cycle,
            nodes,
            lambda others: _run_score(scorer, cycle, others),
            lambda view: _run_score_of_one(scorer, cycle, view),
        )
        if cached is not None:
            return cached
    return _run_score(scorer, cycle, nodes)


def _run_score_of_one(scorer: ScorePlugin, cycle: EngineCycle, view: RowView) -> int:
    assert scorer.one_by_one is not None
    score = scorer.one_by_one(cycle.pod, view, cycle)
    if type(score) is int:
        return score
    return _whole_number(scorer, ExtensionPoint.SCORE, score, cycle.nodes.of_rows(np.array([view.row])), 0)


def _run_score(scorer: ScorePlugin, cycle: EngineCycle, nodes: Rows) -> IntArray:
    if scorer.at_once is not None:
        return _whole_numbers(scorer, ExtensionPoint.SCORE, scorer.at_once(cycle.pod, nodes, cycle), nodes)
    run, pod = scorer.one_by_one, cycle.pod
    assert run is not None, f"{scorer.name} has no score"
    return _whole_numbers(scorer, ExtensionPoint.SCORE, [run(pod, view, cycle) for view in nodes], nodes)


def _normalized(scorer: ScorePlugin, cycle: EngineCycle, nodes: Rows, raw: IntArray) -> IntArray:
    if scorer.normalize is not None:
        return _whole_numbers(scorer, ExtensionPoint.NORMALIZE, scorer.normalize(cycle.pod, nodes, raw, cycle), nodes)
    if scorer.normalizer is not None:
        if is_constant(raw):
            score = raw.item(0)
            scaled = constant(scorer.normalizer.scale(raw[:1], scorer.normalizer.measure(score, score)), len(raw))
        else:
            scaled = scorer.normalizer.scale(raw, scorer.normalizer.measure(int(raw.min()), int(raw.max())))
        return _whole_numbers(scorer, ExtensionPoint.NORMALIZE, scaled, nodes)
    return raw


def is_constant(scores: IntArray) -> bool:
    """Whether a plugin returned one number for all nodes (`constant_score`): then the first cell has it."""
    return scores.strides == (0,)


def _whole_numbers(scorer: ScorePlugin, point: ExtensionPoint, scores: Any, nodes: Rows) -> IntArray:
    """The scores as int64, one per node; otherwise a fault that names plugin, node and value."""
    if not isinstance(scores, np.ndarray):
        scores = list(scores)
        if not set(map(type, scores)) <= {int}:
            scores = [_whole_number(scorer, point, score, nodes, place) for place, score in enumerate(scores)]
        try:
            scores = np.array(scores, np.int64)
        except OverflowError:
            place = next(place for place, score in enumerate(scores) if not -(2**63) <= score < 2**63)
            raise _no_score(scorer, point, scores[place], nodes, place, "must fit into 64 bits") from None
    if scores.shape != (len(nodes),):
        raise fault(scorer.plugin, point, f"gave scores of shape {scores.shape} for {len(nodes)} nodes")
    if scores.dtype.kind not in "iu":
        listed = [_whole_number(scorer, point, score, nodes, place) for place, score in enumerate(scores.tolist())]
        return np.array(listed, np.int64)
    checked: IntArray = scores.astype(np.int64, copy=False)
    return checked


def _whole_number(scorer: ScorePlugin, point: ExtensionPoint, score: Any, nodes: Rows, place: int) -> int:
    # A float is refused even where it is whole: 50.0 may be 33.3 for the next pod, so the mistake is reported early.
    if isinstance(score, int | np.integer) and not isinstance(score, bool):
        return int(score)
    raise _no_score(scorer, point, score, nodes, place, "must be a whole number")


def _no_score(
    scorer: ScorePlugin, point: ExtensionPoint, score: Any, nodes: Rows, place: int, rule: str
) -> PluginFault:
    where = f"of node {nodes.at(place).name} " if place < len(nodes) else ""
    what = f"the score {where}is {score!r} ({type(score).__name__}); a score {rule}"
    return fault(scorer.plugin, point, what)


def _out_of_range(scorer: ScorePlugin, normalized: IntArray) -> PluginFault:
    wrong = int(normalized[(normalized < 0) | (normalized > HIGHEST_SCORE)][0])
    what = f"returns an invalid score {wrong}, it should in the range of [0, {HIGHEST_SCORE}] after normalizing"
    problem = fault(scorer.plugin, ExtensionPoint.WEIGHT, what)
    if scorer.normalizer is None and scorer.normalize is None:
        problem.hint = f"set `normalizer = ToMax()` in class {scorer.plugin.name}, or return scores from 0 to 100"
    return problem


def _log_scores(debug: Log, cycle: EngineCycle, nodes: Rows, columns: _Columns) -> None:
    """kube-scheduler's lines at -v=10."""
    pod = cycle.pod
    for place, name in enumerate(nodes.names):
        for plugin, normalized in columns.normalized.items():
            weighted = int(normalized[place]) * columns.weights[plugin]
            debug.info("Plugin scored node for pod", pod=pod, plugin=plugin, node=name, score=weighted)
    for place, name in enumerate(nodes.names):
        debug.info("Calculated node's final score for pod", pod=pod, node=name, score=int(columns.total[place]))
