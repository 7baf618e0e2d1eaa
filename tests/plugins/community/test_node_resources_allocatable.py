"""NodeResourcesAllocatable: small nodes or large ones, by what they have to offer."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from mooring.base.errors import OperatorMistake
from mooring.plugins.community.node_resources_allocatable import NodeResourcesAllocatable
from mooring.testing import a_cluster, a_node, a_plugin, a_pod
from mooring.testing.forms import scored_at_once, scored_one_by_one
from mooring.testing.strategies import clusters, pods

GI = 2**30
SMALL, LARGE = a_node("small", cpu="1", memory="1Gi"), a_node("large", cpu="4", memory="16Gi")


def weigh(**weights: int) -> list[dict[str, object]]:
    return [{"name": name, "weight": weight} for name, weight in weights.items()]


CASES = {
    "by default a thousandth of a CPU counts as 1 MiB, and less is better": ({}, -((1000 * 2**20 + GI) // (2**20 + 1))),
    "in the mode Most, more is better": ({"mode": "Most"}, (1000 * 2**20 + GI) // (2**20 + 1)),
    "a resource alone": ({"mode": "Most", "resources": weigh(memory=7)}, GI),
    "the mean by weight": ({"mode": "Most", "resources": weigh(cpu=1, memory=3)}, (1000 + 3 * GI) // 4),
    "pods count nothing, and their weight divides": ({"mode": "Most", "resources": weigh(cpu=1, pods=1)}, 500),
    "what leaves 64 bits wraps around, as in Go": ({"mode": "Most", "resources": weigh(memory=2**33)}, -(2**30)),
}


@pytest.mark.parametrize(("arguments", "raw"), CASES.values(), ids=CASES.keys())
def test_the_raw_score_is_a_weighted_mean(arguments, raw):
    plugin, cluster = a_plugin(NodeResourcesAllocatable, **arguments), a_cluster(SMALL)
    assert scored_one_by_one(plugin, a_pod(), cluster) == {"small": raw}
    assert scored_at_once(plugin, a_pod(), cluster) == scored_one_by_one(plugin, a_pod(), cluster)


@pytest.mark.parametrize(("mode", "chosen"), [("Least", "small"), ("Most", "large")])
def test_the_extremes_become_0_and_100(mode, chosen):
    cluster = a_cluster(SMALL, LARGE, plugins=[a_plugin(NodeResourcesAllocatable, mode=mode)])
    decision = cluster.schedule(a_pod())
    assert (decision.node, decision.scores["NodeResourcesAllocatable"].normalized) == (chosen, 100)


def test_equal_nodes_score_nothing():
    cluster = a_cluster(a_node("one"), a_node("other"), plugins=[a_plugin(NodeResourcesAllocatable)])
    assert cluster.schedule(a_pod()).scores["NodeResourcesAllocatable"].normalized == 0


WRONG = {
    "mode": ({"mode": "least"}, 'Invalid value: "least": invalid support ModeType'),
    "weight": (
        {"resources": [{"name": "cpu", "weight": 0}]},
        "Invalid value: 0: resource weight of cpu should be a positive value, got :0",
    ),
}


@pytest.mark.parametrize(("arguments", "message"), WRONG.values(), ids=WRONG.keys())
def test_mistakes_are_reported_in_the_words_of_the_original(arguments, message):
    with pytest.raises(OperatorMistake) as mistake:
        a_plugin(NodeResourcesAllocatable, **arguments)
    assert message in str(mistake.value)


@settings(max_examples=30, deadline=None)
@given(pods(), clusters())
def test_both_forms_agree_with_other_resources(pod, cluster):
    plugin = a_plugin(
        NodeResourcesAllocatable,
        mode="Most",
        resources=[{"name": "example.com/gpu", "weight": 3}, {"name": "memory", "weight": 2**40}],
    )
    assert scored_at_once(plugin, pod, cluster) == scored_one_by_one(plugin, pod, cluster)
