"""Comparing the two forms of a rule: the results of the plain form node by node, and of the vector form at once.

@pytest.mark.parametrize("plugin", plugins_with_both_forms(), ids=name_of)
@given(pods(), clusters())
def test_the_fast_form_means_what_the_plain_form_means(plugin, pod, cluster):
    assert refused_at_once(plugin, pod, cluster) == refused_one_by_one(plugin, pod, cluster)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from mooring.base.errors import OperatorMistake
from mooring.framework import UNRESOLVABLE, UNSCHEDULABLE, Code, NodeView, OnlyNodes, Plugin, Pod, Refusal, Skip
from mooring.framework.registry import Registry
from mooring.testing.cluster import Cluster, TestCycle, a_cycle
from mooring.testing.services import a_plugin

Verdicts = dict[str, tuple[Code, tuple[str, ...]]]
"""Refused node → code and reasons."""


def plugins_with_both_forms(
    registry: Registry | None = None, arguments: Mapping[str, Mapping[str, Any]] | None = None
) -> list[Plugin]:
    """An instance of each plugin that filters or scores in both forms.

    Without a registry: of those that come with Mooring. `arguments`: by name, for plugins that do not take the
    defaults; one that requires arguments and has none here is left out.
    """
    given = arguments or {}
    if registry is None:
        from mooring.plugins.catalogue import catalogue

        registry = catalogue()
    both = [
        entry
        for entry in registry
        if any(
            callable(getattr(entry.cls, form, None)) and callable(getattr(entry.cls, f"{form}_nodes", None))
            for form in ("filter", "score")
        )
    ]
    built: list[Plugin] = []
    for entry in both:
        try:
            built.append(a_plugin(entry.cls, **given.get(entry.name, {})))
        except OperatorMistake:
            if entry.name in given:
                raise
    return built


def name_of(plugin: Plugin) -> str:
    return plugin.name


def refused_one_by_one(plugin: Plugin, pod: Pod, cluster: Cluster) -> Verdicts:
    """What `filter` rejects, called for each node."""
    cycle = a_cycle(pod, cluster)
    refused: Verdicts = {}
    for node in _evaluated(plugin, pod, cluster, cycle):
        rejection = plugin.filter(pod, node, cycle)
        if rejection is not None:
            refused[node.name] = (rejection.code, rejection.reasons)
    return refused


def refused_at_once(plugin: Plugin, pod: Pod, cluster: Cluster) -> Verdicts:
    """What `filter_nodes` rejects, called once."""
    cycle = a_cycle(pod, cluster)
    evaluated = {node.name for node in _evaluated(plugin, pod, cluster, cycle)}
    refused: Verdicts = {}
    if not evaluated:
        return refused
    for rejections in plugin.filter_nodes(pod, cluster.nodes, cycle):
        is_unresolvable = np.broadcast_to(rejections.unresolvable, rejections.mask.shape)
        for name, is_refused, is_final in zip(cluster.nodes.names, rejections.mask, is_unresolvable, strict=True):
            if is_refused and name in evaluated:
                code, reasons = refused.get(name, (UNSCHEDULABLE, ()))
                refused[name] = (UNRESOLVABLE if is_final else code, (*reasons, rejections.reason))
    return refused


def scored_one_by_one(plugin: Plugin, pod: Pod, cluster: Cluster) -> dict[str, int] | None:
    """What `score` returns for each node; None if the plugin's pre_score skips this pod."""
    cycle = a_cycle(pod, cluster)
    if _skips_score(plugin, pod, cluster, cycle):
        return None
    return {node.name: plugin.score(pod, node, cycle) for node in cluster.nodes}


def scored_at_once(plugin: Plugin, pod: Pod, cluster: Cluster) -> dict[str, int] | None:
    """What `score_nodes` returns for all nodes; None if the plugin's pre_score skips this pod."""
    cycle = a_cycle(pod, cluster)
    if _skips_score(plugin, pod, cluster, cycle):
        return None
    scores = plugin.score_nodes(pod, cluster.nodes, cycle)
    return dict(zip(cluster.nodes.names, scores.tolist(), strict=True))


def _evaluated(plugin: Plugin, pod: Pod, cluster: Cluster, cycle: TestCycle) -> list[NodeView]:
    """The nodes that the plugin's filter evaluates, after its pre_filter."""
    result = plugin.pre_filter(pod, cycle) if hasattr(plugin, "pre_filter") else None
    if isinstance(result, Skip | Refusal):
        return []
    if isinstance(result, OnlyNodes):
        return [node for node in cluster.nodes if node.name in result.names]
    return list(cluster.nodes)


def _skips_score(plugin: Plugin, pod: Pod, cluster: Cluster, cycle: TestCycle) -> bool:
    return hasattr(plugin, "pre_score") and isinstance(plugin.pre_score(pod, cluster.nodes, cycle), Skip)
