"""Placements of a pod group: which sets of nodes are tried, and which of those that it fits is best."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

from mooring.base.errors import PluginFault
from mooring.base.foreign_code import described, is_its_own
from mooring.engine.extension_point import ExtensionPoint
from mooring.engine.plugin_call import check_reasons, fault
from mooring.engine.profile import Profile
from mooring.engine.stopwatch import Run, Stopwatch
from mooring.framework import GroupPlacement, Plugin, PodGroupInfo, Point, ProposedPlacement, Refusal
from mooring.framework.normalizers import HIGHEST_SCORE
from mooring.state import Rows

NO_PLACEMENT = Refusal("no feasible placements found")

T = TypeVar("T")


def generate_placements(
    profile: Profile, group: PodGroupInfo, nodes: Rows, watch: Stopwatch | None = None
) -> Sequence[GroupPlacement] | Refusal:
    """The placements to try, by the first plugin that generates some. Raises `PluginFault`."""
    plugins = profile.at(Point.PLACEMENT_GENERATE)
    if not plugins:
        return [GroupPlacement("", nodes)]
    plugin, point = plugins[0], ExtensionPoint.PLACEMENT_GENERATE
    found = _called(plugin, point, lambda: plugin.placement_generate(group, nodes), watch)
    if isinstance(found, Refusal):
        check_reasons(plugin, point, found)
        return found
    if not isinstance(found, Sequence) or not all(isinstance(each, GroupPlacement) for each in found):
        raise fault(plugin, point, f"placement_generate returned {found!r}; it must return placements or a Refusal")
    return found or NO_PLACEMENT


def best_placement(
    profile: Profile,
    group: PodGroupInfo,
    proposed: Sequence[ProposedPlacement],
    seed: int,
    watch: Stopwatch | None = None,
) -> int:
    """The place of the placement with the highest total; of several, one by the seed. Raises `PluginFault`."""
    totals = [0] * len(proposed)
    for plugin, weight in profile.points.get(Point.PLACEMENT_SCORE, ()):
        for place, score in enumerate(_scores(plugin, group, proposed, watch)):
            totals[place] += score * (weight or 1)
    highest = max(totals)
    best = [place for place, total in enumerate(totals) if total == highest]
    return best[seed % len(best)]


def _scores(
    plugin: Any, group: PodGroupInfo, proposed: Sequence[ProposedPlacement], watch: Stopwatch | None
) -> Sequence[int]:
    point = ExtensionPoint.PLACEMENT_SCORE
    called = (_called(plugin, point, partial(plugin.placement_score, group, each), watch) for each in proposed)
    scores: Sequence[int] = tuple(called)
    for score in scores:
        if not isinstance(score, int):
            raise fault(plugin, point, f"placement_score returned {score!r}; it must return a whole number")
    if (normalize := getattr(plugin, "normalize_placement_scores", None)) is not None:
        scores = _called(plugin, ExtensionPoint.PLACEMENT_NORMALIZE, lambda: normalize(group, scores), watch)
    for score in scores:
        if not 0 <= score <= HIGHEST_SCORE:
            what = f"returns an invalid score {score}, it should in the range of [0, {HIGHEST_SCORE}] after normalizing"
            raise fault(plugin, ExtensionPoint.PLACEMENT_WEIGHT, what)
    return scores


def _called(plugin: Plugin, point: ExtensionPoint, call: Callable[[], T], watch: Stopwatch | None) -> T:
    """There is no pod, and so no cycle by which `calling` could time it."""
    began = watch.now() if watch is not None else 0.0
    try:
        return call()
    except PluginFault:
        raise
    except BaseException as error:
        if not is_its_own(error):
            raise
        raise fault(plugin, point, described(error)) from error
    finally:
        if watch is not None:
            watch.runs.append(Run(point, [plugin.name], [began], began, watch.now()))
