"""Whether a decision with cached results equals one from scratch, and where it differs first.

A cached result holds while a plugin reads no more than it declares (`reads`, `sign`) and returns the same for the same
input. Nothing can check that in advance, so decisions are compared.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from mooring.engine.decision import Decision
from mooring.engine.rejected import PluginVerdict
from mooring.engine.scoring import ScoreColumns


class Difference(NamedTuple):
    """The first thing that two decisions about a pod disagree on."""

    plugin: str
    """Its result differs; "" where the results of all plugins are equal, and what was made of them differs."""
    node: str
    """"" where it does not concern a single node."""
    cached: str
    fresh: str

    def __str__(self) -> str:
        where = f" of node {self.node}" if self.node else ""
        return f"plugin {self.plugin or '(none)'}{where}: {self.cached} by the cache, {self.fresh} from scratch"


def first_difference(cached: Decision, fresh: Decision) -> Difference | None:
    """Compare two decisions about one pod on one state, with the same seed. None: they are equal.

    Before the profile's next decision: until then all scores and rejections can be read.
    """
    return (
        _of_outcomes(cached, fresh)
        or _of_rejections(cached, fresh)
        or _of_scores(cached.columns(), fresh.columns())
        or _of_choices(cached, fresh)
    )


def _of_outcomes(cached: Decision, fresh: Decision) -> Difference | None:
    """Faults, and rejections of the pod as a whole."""
    if str(cached.fault) != str(fresh.fault):
        plugin = next(each.fault.plugin for each in (fresh, cached) if each.fault is not None)
        return Difference(plugin, "", str(cached.fault or "no error"), str(fresh.fault or "no error"))
    if cached.refusal != fresh.refusal:
        plugin = next(each.refusal.plugin for each in (fresh, cached) if each.refusal is not None)
        return Difference(plugin, "", _verdict(cached.refusal), _verdict(fresh.refusal))
    return None


def _of_rejections(cached: Decision, fresh: Decision) -> Difference | None:
    ours, theirs = dict(cached.rejections.items()), dict(fresh.rejections.items())
    if ours == theirs:
        return None
    node = next(name for name in (*ours, *theirs) if ours.get(name) != theirs.get(name))
    verdicts = ours.get(node), theirs.get(node)
    # A node has the verdict of the first filter that rejects it, so the earlier one of the two is the one that differs.
    order = {filterer.name: place for place, filterer in enumerate(cached.cycle.profile.filterers)}
    plugins = [verdict.plugin for verdict in verdicts if verdict is not None]
    return Difference(min(plugins, key=lambda name: order.get(name, -1)), node, *map(_verdict, verdicts))


def _of_scores(cached: ScoreColumns | None, fresh: ScoreColumns | None) -> Difference | None:
    if cached is None or fresh is None:
        return None
    for what in ("raw", "normalized"):
        ours, theirs = _by_plugin(cached, what), _by_plugin(fresh, what)
        for plugin in (*theirs, *ours):
            if plugin not in ours or plugin not in theirs:
                both = ("a score" if plugin in each else "no score" for each in (ours, theirs))
                return Difference(plugin, "", *both)
            if not np.array_equal(ours[plugin], theirs[plugin]):
                place = int(np.flatnonzero(ours[plugin] != theirs[plugin])[0])
                both = (f"{what} score {each[plugin].item(place)}" for each in (ours, theirs))
                return Difference(plugin, cached.nodes[place], *both)
    return None


def _by_plugin(columns: ScoreColumns, what: str) -> Mapping[str, np.ndarray]:
    return columns.raw if what == "raw" else columns.normalized


def _of_choices(cached: Decision, fresh: Decision) -> Difference | None:
    """What was made of equal results."""
    if (cached.node, cached.total) != (fresh.node, fresh.total):
        both = (f"node {each.node}, total {each.total}" for each in (cached, fresh))
        return Difference("", "", *both)
    plans = [each.plan and (each.plan.nominate, *(pod.key for pod in each.plan.evict)) for each in (cached, fresh)]
    if plans[0] != plans[1]:
        plugin = next((name for name, _ in reversed(fresh.post_filtered.results)), "")
        return Difference(plugin, "", *(f"plan {plan}" for plan in plans))
    return None


def _verdict(verdict: PluginVerdict | None) -> str:
    return "passed" if verdict is None else f"rejected by {verdict.plugin} ({', '.join(verdict.refusal.reasons)})"
