"""The fast form of a rule means what its plain form means, for every plugin that has both."""

from __future__ import annotations

import pytest
from hypothesis import given

from mooring.plugins.default.node_affinity import NodeAffinity
from mooring.plugins.default.node_resources_fit import NodeResourcesFit
from mooring.testing import (
    a_plugin,
    name_of,
    plugins_with_both_forms,
    refused_at_once,
    refused_one_by_one,
    scored_at_once,
    scored_one_by_one,
)
from mooring.testing.strategies import affinities, clusters, pods

BOTH = plugins_with_both_forms()
FILTERS = [plugin for plugin in BOTH if hasattr(plugin, "filter")]
SCORES = [plugin for plugin in BOTH if hasattr(plugin, "score")]


@pytest.mark.parametrize("plugin", FILTERS, ids=name_of)
@given(pods(), clusters())
def test_the_fast_filter_means_what_the_plain_filter_means(plugin, pod, cluster):
    assert refused_at_once(plugin, pod, cluster) == refused_one_by_one(plugin, pod, cluster)


@pytest.mark.parametrize("plugin", SCORES, ids=name_of)
@given(pods(), clusters())
def test_the_fast_score_means_what_the_plain_score_means(plugin, pod, cluster):
    assert scored_at_once(plugin, pod, cluster) == scored_one_by_one(plugin, pod, cluster)


@given(pods(), clusters(), affinities())
def test_also_with_affinity_that_the_operator_adds(pod, cluster, affinity):
    added = affinity.node_affinity
    if added.required is not None:
        added.required.node_selector_terms = [
            term
            for term in added.required.node_selector_terms
            if all(part.operator not in ("Gt", "Lt") for part in term.match_expressions)
        ] or [*added.required.node_selector_terms[:0]]
        if not added.required.node_selector_terms:
            added.required = None
    added.preferred = [
        term
        for term in added.preferred
        if all(part.operator not in ("Gt", "Lt") for part in term.preference.match_expressions)
    ]
    plugin = a_plugin(NodeAffinity, added_affinity=added)
    assert refused_at_once(plugin, pod, cluster) == refused_one_by_one(plugin, pod, cluster)
    assert scored_at_once(plugin, pod, cluster) == scored_one_by_one(plugin, pod, cluster)


@pytest.mark.parametrize("shape", [None, [(0, 0), (33, 10), (70, 3)]])
@pytest.mark.parametrize("type", ["LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"])
@given(pod=pods(), cluster=clusters())
def test_also_with_every_scoring_strategy(type, shape, pod, cluster):
    if (shape is None) == (type == "RequestedToCapacityRatio"):
        return
    strategy = {"type": type, "resources": [{"name": "cpu"}, {"name": "example.com/gpu", "weight": 3}]}
    if shape is not None:
        points = [{"utilization": utilization, "score": score} for utilization, score in shape]
        strategy["requestedToCapacityRatio"] = {"shape": points}
    plugin = a_plugin(NodeResourcesFit, scoring_strategy=strategy)
    assert scored_at_once(plugin, pod, cluster) == scored_one_by_one(plugin, pod, cluster)
