"""Every filter on every node, where a decision stops at the first rejection: for explanations.

A decision needs the first plugin that rejects a node. To find what would have to change, all of them are needed.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import numpy as np

from mooring.base.errors import PluginFault
from mooring.engine.cycle import EngineCycle, Stage
from mooring.engine.evaluation import run_filter
from mooring.engine.extension_point import ExtensionPoint
from mooring.engine.filtering import not_satisfied, refusal_among_nominated
from mooring.engine.plugin_call import calling, with_reasons
from mooring.engine.profile import FilterPlugin
from mooring.engine.rejected import Rejected
from mooring.framework import OnlyNodes, Refusal, Skip
from mooring.state import Rows


class PluginFilterResult(msgspec.Struct):
    """What one plugin returned in PreFilter and Filter, for every node."""

    plugin: str
    is_skipped: bool = False
    """It has nothing to do with the pod."""
    rejected: dict[str, Refusal] = {}
    """By node; those that it lets pass are not here."""
    fault: PluginFault | None = None
    """It failed: its verdict is not known."""
    among_nominated: set[str] = set()
    """Nodes that it rejects only because other pods are nominated to them."""


def run_every_filter(cycle: EngineCycle, nodes: Rows) -> dict[str, PluginFilterResult]:
    """The results of all plugins, by name and in the order of Filter. The cycle is a new one."""
    results = {plugin.name: PluginFilterResult(plugin.name) for plugin in cycle.profile.pre_filters}
    everywhere = dict(_refusals_of_pre_filters(cycle, results))
    filters = {filterer.name: filterer for filterer in cycle.profile.filterers}
    ordered = {name: results.get(name) or PluginFilterResult(name) for name in filters}
    results = {**{name: each for name, each in results.items() if name not in filters}, **ordered}
    names = nodes.names
    cycle.stage = Stage.FILTER
    for name, result in results.items():
        if name in everywhere:
            result.rejected = dict.fromkeys(names, everywhere[name])
        elif name in cycle.skipped_filters:
            result.is_skipped = True
        elif result.fault is None and name in filters:
            _run(filters[name], cycle, nodes, result)
        if (only := cycle.limits.get(name)) is not None:
            outside = not_satisfied((name,))
            result.rejected = {each: outside for each in names if each not in only} | result.rejected
    if not everywhere and not any(result.fault for result in results.values()):
        _add_nominated(cycle, nodes, results)
    return {name: each for name, each in results.items() if name in filters or each.rejected or each.fault}


def _refusals_of_pre_filters(
    cycle: EngineCycle, results: dict[str, PluginFilterResult]
) -> Iterator[tuple[str, Refusal]]:
    """Run all of them, also those behind one that refuses the pod."""
    cycle.stage = Stage.PRE_FILTER
    for plugin in cycle.profile.pre_filters:
        name = plugin.name
        try:
            with calling(cycle, plugin, ExtensionPoint.PRE_FILTER):
                result = plugin.pre_filter(cycle.pod, cycle.shown)
                if isinstance(result, Refusal):
                    result = with_reasons(plugin, ExtensionPoint.PRE_FILTER, result)
        except PluginFault as fault:
            results[name].fault = fault
            continue
        if isinstance(result, Skip):
            cycle.skipped_filters.add(name)
        elif isinstance(result, Refusal):
            yield name, result
        elif isinstance(result, OnlyNodes):
            cycle.filter_states[name] = result.state
            cycle.limits[name] = set(result.names)
        else:
            cycle.filter_states[name] = result


def _run(filterer: FilterPlugin, cycle: EngineCycle, nodes: Rows, result: PluginFilterResult) -> None:
    try:
        with calling(cycle, filterer.plugin, ExtensionPoint.FILTER):
            step = run_filter(filterer, cycle, nodes)
    except PluginFault as fault:
        result.fault = fault
        return
    if step is not None:
        result.rejected = {name: verdict.refusal for name, verdict in Rejected.by_steps(nodes, [step]).items()}


def _add_nominated(cycle: EngineCycle, nodes: Rows, results: dict[str, PluginFilterResult]) -> None:
    """Filters must accept a node also with the pods that are nominated to it."""
    if not cycle.state.nominations.nodes:
        return
    ahead = cycle.state.nominated_ahead_of(cycle.pod).rows
    for row in ahead[np.isin(ahead, nodes.rows)].tolist():
        view = cycle.state.views[row]
        verdict = refusal_among_nominated(cycle, view) if view is not None else None
        if view is None or verdict is None:
            continue
        result = results.setdefault(verdict.plugin, PluginFilterResult(verdict.plugin))
        if view.name not in result.rejected:
            result.rejected[view.name] = verdict.refusal
            result.among_nominated.add(view.name)
