"""The fast form of a rule means what its plain form means, for every plugin that has both."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, assume, given, settings

from mooring.plugins.default.node_affinity import NodeAffinity, NodeAffinityArgs
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

few = settings(
    max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much]
)
ARGUMENTS = {
    "NodeMetadata": {
        "metadata_key": "zone",
        "metadata_source": "Label",
        "metadata_type": "Number",
        "scoring_strategy": "Highest",
    },
}
"""Of plugins that require some."""
BOTH = plugins_with_both_forms(arguments=ARGUMENTS)
FILTERS = [plugin for plugin in BOTH if hasattr(plugin, "filter")]
SCORES = [plugin for plugin in BOTH if hasattr(plugin, "score")]


@few
@pytest.mark.parametrize("plugin", FILTERS, ids=name_of)
@given(pods(), clusters())
def test_the_fast_filter_means_what_the_plain_filter_means(plugin, pod, cluster):
    assert refused_at_once(plugin, pod, cluster) == refused_one_by_one(plugin, pod, cluster)


@few
@pytest.mark.parametrize("plugin", SCORES, ids=name_of)
@given(pods(), clusters())
def test_the_fast_score_means_what_the_plain_score_means(plugin, pod, cluster):
    assert scored_at_once(plugin, pod, cluster) == scored_one_by_one(plugin, pod, cluster)


def test_no_plugin_with_both_forms_is_left_out():
    assert {*ARGUMENTS} <= {plugin.name for plugin in BOTH}
    assert len(BOTH) == len(plugins_with_both_forms()) + len(ARGUMENTS)


@few
@given(pods(), clusters(), affinities())
def test_also_with_affinity_that_the_operator_adds(pod, cluster, affinity):
    assume(not list(NodeAffinityArgs(added_affinity=affinity.node_affinity).mistakes()))
    plugin = a_plugin(NodeAffinity, added_affinity=affinity.node_affinity)
    assert refused_at_once(plugin, pod, cluster) == refused_one_by_one(plugin, pod, cluster)
    assert scored_at_once(plugin, pod, cluster) == scored_one_by_one(plugin, pod, cluster)


RATIO = {"shape": [{"utilization": 0, "score": 0}, {"utilization": 33, "score": 10}, {"utilization": 70, "score": 3}]}
STRATEGIES = [
    {"type": "LeastAllocated"},
    {"type": "MostAllocated"},
    {"type": "RequestedToCapacityRatio", "requestedToCapacityRatio": RATIO},
]


@few
@given(pods(), clusters())
@pytest.mark.parametrize("strategy", STRATEGIES, ids=lambda strategy: strategy["type"])
def test_also_with_every_scoring_strategy(strategy, pod, cluster):
    resources = [{"name": "cpu"}, {"name": "example.com/gpu", "weight": 3}]
    plugin = a_plugin(NodeResourcesFit, scoring_strategy=strategy | {"resources": resources})
    assert scored_at_once(plugin, pod, cluster) == scored_one_by_one(plugin, pod, cluster)
