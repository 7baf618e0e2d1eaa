"""One plugin on nodes: its filter or its score runs, in the form that suits, and what it returned is checked."""

from __future__ import annotations

import struct
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from mooring.base.errors import PluginFault
from mooring.engine.cycle import EngineCycle
from mooring.engine.extension_point import ExtensionPoint
from mooring.engine.plugin_call import fault, with_reasons
from mooring.engine.profile import FilterPlugin, Rule, ScorePlugin
from mooring.engine.rejected import Step
from mooring.framework import BoolArray, IntArray, Refusal, Rejections, constant_score
from mooring.framework.normalizers import HIGHEST_SCORE
from mooring.framework.verdicts import constant
from mooring.state import Rows, RowView

INT32, INT64, UINT32, UINT64 = map(np.dtype, (np.int32, np.int64, np.uint32, np.uint64))
"""Compared by identity: NumPy has one object for each, and compares slowly with its classes."""
MOST_KNOWN_CONSTANTS = 256


def checked_refusal(filterer: FilterPlugin, view: RowView, result: Any) -> Refusal:
    if not isinstance(result, Refusal):
        what = f"filter of node {view.name} returned {result!r}; it must return a Rejection or None"
        raise fault(filterer.plugin, ExtensionPoint.FILTER, what)
    return with_reasons(filterer.plugin, ExtensionPoint.FILTER, result)


def run_filter(filterer: FilterPlugin, cycle: EngineCycle, nodes: Rows) -> Step | None:
    """One plugin's rejections; None if there are none. The vector form runs on many nodes, if there is one."""
    if filterer.at_once is not None and (len(nodes) > 1 or filterer.one_by_one is None):
        return run_filter_at_once(filterer, cycle, nodes)
    run, pod, shown = filterer.one_by_one, cycle.pod, cycle.shown
    assert run is not None, f"{filterer.name} has no filter"
    rows: list[int] = []
    given: list[Refusal] = []
    for view in nodes:  # thousands of times a pod: nothing happens for a node that passes
        result = run(pod, view, shown)
        if result is not None:
            given.append(checked_refusal(filterer, view, result))
            rows.append(view.row)
    if not given:
        return None
    places = nodes.places_of(rows)
    mask = np.zeros(len(nodes), np.bool_)
    mask[places] = True
    return Step(filterer.name, nodes.rows, mask, one_by_one=dict(zip(places.tolist(), given, strict=True)))


def run_filter_at_once(filterer: FilterPlugin, cycle: EngineCycle, nodes: Rows) -> Step | None:
    assert filterer.at_once is not None
    return run_rule_at_once(filterer, filterer.at_once, cycle, nodes)


def run_rule_at_once(filterer: FilterPlugin, rule: Rule, cycle: EngineCycle, nodes: Rows) -> Step | None:
    """One plugin's rejections by a form of its rule for many nodes; None if there are none."""
    given = [rejections for rejections in rule(cycle.pod, nodes, cycle.shown) if _checked(filterer, rejections, nodes)]
    if not given:
        return None
    mask: BoolArray = given[0].mask if len(given) == 1 else np.logical_or.reduce([each.mask for each in given])
    return Step(filterer.name, nodes.rows, mask, at_once=given)


def _checked(filterer: FilterPlugin, rejections: Any, nodes: Rows) -> bool:
    """Whether it rejects anything; a fault if it is nothing of the kind."""
    if not isinstance(rejections, Rejections):
        raise fault(
            filterer.plugin, ExtensionPoint.FILTER, f"filter_nodes gave {rejections!r}; it must give Rejections"
        )
    if not isinstance(rejections.reason, str):
        what = f"a reason is {rejections.reason!r} ({type(rejections.reason).__name__}); it must be text"
        raise fault(filterer.plugin, ExtensionPoint.FILTER, what)
    _check_mask(filterer, rejections, "mask", rejections.mask, len(nodes))
    if not isinstance(rejections.unresolvable, bool | np.bool_):
        _check_mask(filterer, rejections, "`unresolvable`", rejections.unresolvable, len(nodes))
    mask = rejections.mask
    # A constant mask has one cell to read; and counting is four times as fast as `any`.
    return bool(mask[0]) if mask.strides == (0,) and len(mask) else bool(np.count_nonzero(mask))


def _check_mask(filterer: FilterPlugin, rejections: Rejections, which: str, mask: Any, count: int) -> None:
    if isinstance(mask, np.ndarray) and mask.dtype == np.bool_ and mask.shape == (count,):
        return
    found = f"{mask.dtype} of shape {mask.shape}" if isinstance(mask, np.ndarray) else repr(mask)
    what = f'the {which} of "{rejections.reason}" is {found}; it must be bool, one for each of {count} nodes'
    raise fault(filterer.plugin, ExtensionPoint.FILTER, what)


def checked_score(scorer: ScorePlugin, cycle: EngineCycle, view: RowView, score: Any) -> int:
    return _whole_number(scorer, ExtensionPoint.SCORE, score, cycle.nodes.of_rows(np.array([view.row])), 0)


def run_score(scorer: ScorePlugin, cycle: EngineCycle, nodes: Rows) -> IntArray:
    if scorer.at_once is not None:
        return _whole_numbers(scorer, ExtensionPoint.SCORE, scorer.at_once(cycle.pod, nodes, cycle.shown), nodes)
    run, pod, shown = scorer.one_by_one, cycle.pod, cycle.shown
    assert run is not None, f"{scorer.name} has no score"
    return _whole_numbers(scorer, ExtensionPoint.SCORE, [run(pod, view, shown) for view in nodes], nodes)


def normalized(scorer: ScorePlugin, cycle: EngineCycle, nodes: Rows, raw: IntArray) -> IntArray:
    if scorer.normalize is not None:
        # A copy: the scores may be kept for other pods, and a plugin may scale in place.
        given = scorer.normalize(cycle.pod, nodes, raw.copy(), cycle.shown)
        return _whole_numbers(scorer, ExtensionPoint.NORMALIZE, given, nodes)
    if scorer.normalizer is None:
        return raw
    if is_constant(raw):
        return constant_score(_normalized_constant(scorer, raw.item(0), nodes), nodes)
    # `min` and `max` are these and a Python call.
    lowest, highest = int(np.minimum.reduce(raw)), int(np.maximum.reduce(raw))
    if lowest == highest:
        return constant_score(_normalized_constant(scorer, lowest, nodes), nodes)
    measure = scorer.normalizer.measure(lowest, highest)
    if highest - lowest < len(raw) // 8:
        # Each score is scaled independently of the others: where few numbers occur, they are scaled once.
        few = np.asarray(scorer.normalizer.scale(np.arange(lowest, highest + 1), measure))
        return _whole_numbers(scorer, ExtensionPoint.NORMALIZE, few.take(raw - lowest if lowest else raw), nodes)
    return _whole_numbers(scorer, ExtensionPoint.NORMALIZE, scorer.normalizer.scale(raw, measure), nodes)


def _normalized_constant(scorer: ScorePlugin, score: int, nodes: Rows) -> int:
    """What the scorer's normalizer makes of a score that all nodes have."""
    assert scorer.normalizer is not None
    known = scorer.normalized_constants
    if (made := known.get(score)) is not None:
        return made
    scaled = scorer.normalizer.scale(np.array((score,), np.int64), scorer.normalizer.measure(score, score))
    made = int(_whole_numbers(scorer, ExtensionPoint.NORMALIZE, constant(scaled, len(nodes)), nodes).item(0))
    if len(known) >= MOST_KNOWN_CONSTANTS:
        known.clear()
    known[score] = made
    return made


def is_constant(scores: IntArray) -> bool:
    """Whether a plugin returned one number for all nodes (`constant_score`): then the first cell has it."""
    return scores.strides == (0,)


def _whole_numbers(scorer: ScorePlugin, point: ExtensionPoint, scores: Any, nodes: Rows) -> IntArray:
    """The scores, one per node, as int64; otherwise a fault that names plugin, node and value.

    Smaller numbers stay as they are where nothing computes with them: they are added up in half the time.
    """
    if (
        type(scores) is np.ndarray
        and (scores.dtype is INT64 or (scores.dtype is INT32 and not scorer.is_normalized))
        and scores.shape == (len(nodes),)
    ):
        return scores
    if not isinstance(scores, np.ndarray):
        scores = _column(scorer, point, scores if type(scores) is list else list(scores), nodes)
    if scores.shape != (len(nodes),):
        raise fault(scorer.plugin, point, f"gave scores of shape {scores.shape} for {len(nodes)} nodes")
    if scores.dtype.kind not in "iu":
        listed = [_whole_number(scorer, point, score, nodes, place) for place, score in enumerate(scores.tolist())]
        return np.array(listed, np.int64)
    checked: IntArray = scores.astype(np.int64, copy=False)
    return checked


def _column(scorer: ScorePlugin, point: ExtensionPoint, scores: list[Any], nodes: Rows) -> IntArray:
    """Scores of a rule that ran node by node. `np.array` would take ten times as long, and it takes any number."""
    try:
        msgspec.convert(scores, list[int])  # the fastest check of the type of each
    except msgspec.ValidationError:
        scores = [_whole_number(scorer, point, score, nodes, place) for place, score in enumerate(scores)]
    # Copied into arrays that can be written to: `normalize` may do so.
    try:
        return np.frombuffer(bytearray(scores), np.uint8).astype(np.int64)
    except ValueError:  # not all from 0 to 255, as those of most plugins are
        pass
    try:
        return np.frombuffer(struct.pack(f"{len(scores)}q", *scores), np.int64).copy()
    except struct.error:
        place = next(place for place, score in enumerate(scores) if not -(2**63) <= score < 2**63)
        raise _no_score(scorer, point, scores[place], nodes, place, "must fit into 64 bits") from None


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


def are_in_range(scores: IntArray) -> bool:
    """Whether all are within 0…100. Read without their sign, negative numbers are the largest: one look finds both."""
    unsigned: NDArray[Any] = scores.view(UINT32 if scores.dtype is INT32 else UINT64)
    return not len(scores) or bool(np.maximum.reduce(unsigned) <= HIGHEST_SCORE)


def out_of_range(scorer: ScorePlugin, scores: IntArray) -> PluginFault:
    wrong = int(scores[(scores < 0) | (scores > HIGHEST_SCORE)][0])
    what = f"returns an invalid score {wrong}, it should in the range of [0, {HIGHEST_SCORE}] after normalizing"
    problem = fault(scorer.plugin, ExtensionPoint.WEIGHT, what)
    if not scorer.is_normalized:
        problem.hint = f"set `normalizer = ToMax()` in class {scorer.plugin.name}, or return scores from 0 to 100"
    return problem
