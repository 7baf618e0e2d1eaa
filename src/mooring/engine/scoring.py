"""The second half of a decision: which feasible node is best. One node is taken as it is; several are scored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from mooring.base.log import Log
from mooring.engine.cycle import EngineCycle, Stage
from mooring.engine.decision_cache import ProfileCache
from mooring.engine.evaluation import INT32, INT64, run_score
from mooring.engine.extender_results import SCALE, ExtenderScores
from mooring.engine.extension_point import ExtensionPoint
from mooring.engine.filtering import Feasible
from mooring.engine.plugin_call import calling, fault
from mooring.engine.plugin_scores import CachedScores, PluginScores, Score
from mooring.engine.profile import OUT
from mooring.framework import BoolArray, IntArray, Refusal, Skip
from mooring.state import Column, Rows, RowView

log = Log("engine")

AT_ONCE = 16_384
"""So many nodes are searched for ties at a time: among 100,000 not every one needs to be listed."""


class ScoreColumns(msgspec.Struct):
    """Every feasible node's scores: per plugin one number per node, in the order of `nodes`."""

    nodes: tuple[str, ...]
    total: IntArray
    raw: dict[str, IntArray] = msgspec.field(default_factory=dict)
    normalized: dict[str, IntArray] = msgspec.field(default_factory=dict)
    weights: dict[str, int] = msgspec.field(default_factory=dict)

    def copy(self) -> ScoreColumns:
        """The same in arrays of its own: a plugin may have returned a column of the table."""
        return ScoreColumns(
            self.nodes,
            self.total.copy(),
            {name: column.copy() for name, column in self.raw.items()},
            {name: column.copy() for name, column in self.normalized.items()},
            dict(self.weights),
        )


class Choice(msgspec.Struct, frozen=True):
    """The winner, its scores per plugin and their sum; every node's, as long as they are kept."""

    view: RowView
    scores: Mapping[str, Score]
    total: int
    scored: Scored | None
    place: int = 0
    """Of the winner among the nodes that were scored."""

    def scores_of(self, view: RowView) -> dict[str, Score] | None:
        """What another node got of each plugin; None: it was not scored."""
        return None if self.scored is None else self.scored.scores_of(view.row)

    def deciding(self) -> dict[str, bool]:
        """The plugins whose scores differ between nodes, and whether other nodes would be among the best without."""
        return {} if self.scored is None else self.scored.deciding(self.place, self.view.row)


class Scored:
    """All scores of the nodes, and their sums: by row of the table (`ranked`), or by place among the nodes."""

    __slots__ = ("each", "for_all", "nodes", "ranked", "total")

    def __init__(self, nodes: Rows) -> None:
        self.nodes = nodes
        self.each: list[PluginScores] = []
        self.for_all = 0
        """What every node gets besides."""
        self.ranked: Column | None = None
        self.total: NDArray[Any] = np.empty(0, np.int64)

    def best(self, seed: int) -> tuple[int, int, int]:
        """The place, row and total of the best node; which of several is chosen by the seed."""
        total = self.total if self.ranked is None else self.ranked.data
        highest = np.maximum.reduce(total)  # `max` is this and a Python call
        chosen = _chosen(total == highest, seed)
        if self.ranked is not None:
            return NO_PLACE, chosen, int(highest) + self.for_all
        return chosen, int(self.nodes.rows[chosen]), int(highest) + self.for_all

    def scores_of(self, row: int) -> dict[str, Score] | None:
        """The scores of the node on a row of the table; None: it was not scored."""
        place = NO_PLACE
        if self.ranked is None:
            [places] = np.nonzero(self.nodes.rows == row)
            if not len(places):
                return None
            place = int(places[0])
        elif self.ranked.data[row] == OUT:
            return None
        return {scores.name: scores.at(place, row) for scores in self.each}

    def deciding(self, place: int, row: int) -> dict[str, bool]:
        """By plugin, whether a node would be among the best without its scores that is not: less than the best node,
        which is at this place and row."""
        found = {}
        total, at = (self.total, place) if self.ranked is None else (self.ranked.data, row)
        best = int(total[at])
        for scores in self.each:
            if scores.constant is not None:
                continue
            if self.ranked is None:
                weighted = scores.normalized(self.nodes)
            else:
                assert isinstance(scores, CachedScores), "only cached scores are summed by row"
                weighted = scores.column.scores.data
            # An array of its own, of the type of the totals: two types in one operation take three times as long.
            without = weighted.astype(total.dtype)
            if scores.weight != 1:
                without *= scores.weight
            np.subtract(total, without, out=without)
            [places] = (without == np.maximum.reduce(without)).nonzero()
            found[scores.name] = bool(np.minimum.reduce(total.take(places)) < best)
        return found

    def read(self) -> ScoreColumns:
        nodes, each = self.nodes, self.each
        total = self.total if self.ranked is None else nodes.cells(self.ranked)
        return ScoreColumns(
            tuple(nodes.names),
            total + np.int64(self.for_all),
            {scores.name: scores.raw(nodes) for scores in each},
            {scores.name: scores.normalized(nodes) for scores in each},
            {scores.name: scores.weight for scores in each},
        )


def _chosen(is_best: BoolArray, seed: int) -> int:
    """The place of one of the best, by the seed. Of very many, not all are listed."""
    if len(is_best) <= AT_ONCE:
        [places] = is_best.nonzero()
        return places.item(seed % len(places))
    number = seed % int(np.count_nonzero(is_best))
    for start in range(0, len(is_best), AT_ONCE):
        part = is_best[start : start + AT_ONCE]
        if number < (count := int(np.count_nonzero(part))):
            return start + part.nonzero()[0].item(number)
        number -= count
    raise IndexError(number)


NO_PLACE = -1
"""All scores are cached: what is read of the best node is on its row."""


def best(
    cycle: EngineCycle,
    found: Feasible,
    extender_scores: Sequence[ExtenderScores] = (),
) -> Choice:
    """The node with the highest sum of weighted scores, those of extenders included.

    The cycle's seed breaks ties.
    """
    nodes = found.nodes
    if len(nodes) == 1:
        return Choice(nodes.at(0), {}, 0, None)
    scored = _scored(cycle, found)
    if extender_scores:
        _add(scored, extender_scores)
    place, row, total = scored.best(cycle.seed)
    if debug := log.v(10):
        _log_scores(debug, cycle, scored.read())
    scores = {each.name: each.at(place, row) for each in scored.each}
    view = cycle.state.views[row]
    assert view is not None, "only rows with a node are feasible"
    return Choice(view, scores, total, scored, place)


def score_nodes(cycle: EngineCycle, nodes: Rows) -> ScoreColumns:
    """The scores of these nodes, whether filters accept them or not: for explanations. PreFilters have run."""
    return _scored(cycle, Feasible(nodes, nodes)).read().copy()


def _scored(cycle: EngineCycle, found: Feasible) -> Scored:
    nodes, cache = found.nodes, found.cache
    scored = Scored(nodes)
    if not cycle.profile.scorers:
        scored.total = np.ones(len(nodes), np.int64)
        return scored
    _run_pre_scores(cycle, nodes, cache)
    cycle.stage = Stage.SCORE
    ranking, each, skipped = found.ranking, scored.each, cycle.skipped_scores
    summed: list[CachedScores] = []
    others: list[PluginScores] = []
    # As upstream: all plugins score, then all normalise, then all are checked; the first problem is the one reported.
    with calling(cycle, None, ExtensionPoint.SCORE) as call:
        for scorer in cycle.profile.scorers:
            if scorer.name in skipped:
                continue
            call.switch_to(scorer.plugin)
            cached = cache.scores(scorer, cycle, ranking) if cache is not None and scorer.is_cacheable else None
            scores = cached or PluginScores(scorer, run_score(scorer, cycle, nodes))
            each.append(scores)
            if cached is not None and cached.is_summed:
                summed.append(cached)
            elif not scores.is_settled:
                others.append(scores)
    normalizing = [scores for scores in others if scores.scorer.is_normalized]
    if normalizing or cycle.times_plugins:
        _normalize(cycle, nodes, each, normalizing)
    for scores in others:
        scores.check(nodes)
    _add_up(cycle, scored, summed, found)
    return scored


def _normalize(
    cycle: EngineCycle, nodes: Rows, each: Sequence[PluginScores], to_normalize: Sequence[PluginScores]
) -> None:
    is_timed = cycle.times_plugins
    with calling(cycle, None, ExtensionPoint.NORMALIZE) as call:
        for scores in each if is_timed else to_normalize:
            call.switch_to(scores.scorer.plugin)
            if not is_timed or scores in to_normalize:
                scores.normalize(cycle, nodes)


def _add_up(cycle: EngineCycle, scored: Scored, summed: Sequence[CachedScores], found: Feasible) -> None:
    """The sum of the weighted scores. Those in `summed` are added up as they are cached."""
    nodes, ranking = scored.nodes, found.ranking
    # Small numbers take half the time, two types in one operation three times as long.
    dtype = INT32 if cycle.profile.has_small_totals else INT64
    total: NDArray[Any] | None = None
    is_own = False
    columns: list[PluginScores] = []
    for scores in scored.each:
        if scores.constant is not None:
            scored.for_all += scores.constant * scores.weight
        elif ranking is None or not scores.is_summed:
            columns.append(scores)
    if ranking is not None:
        ranked = ranking.totals(summed)
        if found.is_ranking and not columns:
            scored.ranked = ranked
            return
        total = nodes.cells(ranked)
    for scores in columns:
        weighted: NDArray[Any] = scores.normalized(nodes)
        if weighted.dtype is not dtype:
            weighted = weighted.astype(dtype)
        weighted = weighted * scores.weight if scores.weight != 1 else weighted
        if total is None:
            total = weighted
        else:
            # In place where the sum is an array of its own; the first may be a column.
            total = np.add(total, weighted, out=total if is_own else None)
            is_own = True
    scored.total = np.zeros(len(nodes), np.int64) if total is None else total


def _add(scored: Scored, extender_scores: Sequence[ExtenderScores]) -> None:
    """Extenders' scores are brought to 0…100 but not checked; kube-scheduler does not either."""
    for each in extender_scores:
        raw = each.column(scored.nodes)
        scores = PluginScores.given(each.extender, each.weight, raw, raw * SCALE)
        scored.each.append(scores)
        scored.total = scored.total + raw * SCALE * each.weight


def _run_pre_scores(cycle: EngineCycle, nodes: Rows, cache: ProfileCache | None) -> None:
    cycle.stage = Stage.PRE_SCORE
    states, skipped = cycle.score_states, cycle.skipped_scores
    with calling(cycle, None, ExtensionPoint.PRE_SCORE) as call:
        for plugin in cycle.profile.pre_scores if cache is None else cache.pre_scores(cycle, call):
            call.switch_to(plugin)
            if plugin.name in states or plugin.name in skipped:
                continue  # the same for all pods that are alike
            result = plugin.pre_score(cycle.pod, nodes, cycle.shown)
            if isinstance(result, Skip):
                skipped.add(plugin.name)
            elif isinstance(result, Refusal):
                what = f"pre_score cannot refuse, but returned {result!r}"
                raise fault(plugin, ExtensionPoint.PRE_SCORE, what)
            else:
                states[plugin.name] = result
    if cache is not None:
        cache.pre_scored(cycle)


def _log_scores(debug: Log, cycle: EngineCycle, columns: ScoreColumns) -> None:
    """kube-scheduler's lines at -v=10."""
    pod = cycle.pod
    for place, name in enumerate(columns.nodes):
        for plugin, normalized in columns.normalized.items():
            weighted = int(normalized[place]) * columns.weights[plugin]
            debug.info("Plugin scored node for pod", pod=pod, plugin=plugin, node=name, score=weighted)
    for place, name in enumerate(columns.nodes):
        debug.info("Calculated node's final score for pod", pod=pod, node=name, score=int(columns.total[place]))
