"""NodeResourcesFit: what fits, what does not and why, how nodes are ranked, and what requeues a refused pod."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.plugins.verdicts import requeues, verdict

from mooring.base.errors import OperatorMistake
from mooring.framework import UNRESOLVABLE, UNSCHEDULABLE
from mooring.framework.nodes import Capacity
from mooring.objects.placed import placed
from mooring.plugins.default.node_resources_fit import TOO_MANY_PODS, NodeResourcesFit, insufficient
from mooring.plugins.default.resource_scores import EXACT, ResourceScorer, ScoringStrategy, Usage
from mooring.testing import a_cycle, a_node, a_node_object, a_plugin, a_pod

GPU = "example.com/gpu"
FULL = a_pod(cpu="3", memory="1Gi")

FITTING = {
    "a pod that leaves nothing fits": (a_pod(cpu="4"), a_node(cpu="4"), None),
    "pods already on the node count": (
        a_pod(cpu="2"),
        a_node(cpu="4", running=[FULL]),
        (UNSCHEDULABLE, (insufficient("cpu"),)),
    ),
    "more than the empty node has is unresolvable": (
        a_pod(cpu="5"),
        a_node(cpu="4"),
        (UNRESOLVABLE, (insufficient("cpu"),)),
    ),
    "every resource that falls short is named": (
        a_pod(cpu="2", memory="16Gi"),
        a_node(cpu="4", running=[FULL], pods=1),
        (UNSCHEDULABLE, (TOO_MANY_PODS, insufficient("cpu"), insufficient("memory"))),
    ),
    "one unresolvable resource makes the node unresolvable": (
        a_pod(cpu="2", requests={GPU: 1}),
        a_node(cpu="4", running=[FULL]),
        (UNRESOLVABLE, (insufficient("cpu"), insufficient(GPU))),
    ),
    "too many pods alone can be cured": (a_pod(), a_node(pods=0), (UNSCHEDULABLE, (TOO_MANY_PODS,))),
    "a request of zero is no request": (a_pod(requests={GPU: 0}), a_node(), None),
    "an ignored resource is not looked at": (a_pod(requests={"ignored.example/nic": 1}), a_node(), None),
    "nor is one of an ignored group": (a_pod(requests={"group.example/nic": 1}), a_node(), None),
}


@pytest.mark.parametrize(("pod", "node", "refusal"), FITTING.values(), ids=FITTING.keys())
def test_fit(pod, node, refusal):
    fit = a_plugin(
        NodeResourcesFit, ignored_resources=["ignored.example/nic"], ignored_resource_groups=["group.example"]
    )
    assert verdict(fit.filter(pod, node, a_cycle(pod))) == refusal


def strategy(type: str, *resources: tuple[str, int], shape: list[tuple[int, int]] | None = None) -> dict[str, object]:
    ratio = {"shape": [{"utilization": utilization, "score": score} for utilization, score in shape or []]}
    return {
        "type": type,
        "resources": [{"name": name, "weight": weight} for name, weight in resources],
        **({"requestedToCapacityRatio": ratio} if shape else {}),
    }


HALF = a_pod(cpu="2", memory="4Gi")
SCORES = {
    "least allocated: the mean of what stays free": (strategy("LeastAllocated"), HALF, (50 + 75) // 2),
    "most allocated: the mean of what is used": (strategy("MostAllocated"), HALF, (50 + 25) // 2),
    "weights count": (strategy("MostAllocated", ("cpu", 3), ("memory", 1)), HALF, (3 * 50 + 25) // 4),
    "a container without requests counts as 100m and 200Mi": (strategy("MostAllocated", ("cpu", 1)), a_pod(), 2),
    "an extended resource that the pod does not request is not scored": (
        strategy("MostAllocated", (GPU, 1), ("cpu", 1)),
        HALF,
        50,
    ),
    "what the node lacks is not scored": (strategy("MostAllocated", ("ephemeral-storage", 1)), HALF, 0),
    "a shape is straight between its points": (
        strategy("RequestedToCapacityRatio", ("cpu", 1), shape=[(0, 0), (100, 10)]),
        HALF,
        50,
    ),
    "a falling shape divides towards zero": (
        strategy("RequestedToCapacityRatio", ("memory", 1), shape=[(0, 10), (70, 3)]),
        HALF,
        75,
    ),
    "zero on the shape does not pull the mean down": (
        strategy("RequestedToCapacityRatio", ("cpu", 1), ("memory", 1), shape=[(30, 0), (50, 10)]),
        HALF,
        100,
    ),
}


@pytest.mark.parametrize(("scoring", "pod", "expected"), SCORES.values(), ids=SCORES.keys())
def test_score(scoring, pod, expected):
    fit = a_plugin(NodeResourcesFit, scoring_strategy=scoring)
    assert fit.score(pod, a_node(cpu="4", memory="16Gi", resources={GPU: 4}), a_cycle(pod)) == expected


WAKING = {
    "a deleted pod frees room": (placed(a_pod(cpu="1"), "node"), None, True),
    "a pod without a node held none": (a_pod(cpu="1"), None, False),
    "a nominated pod held some": (a_pod(cpu="1", nominated="node"), None, True),
    "an assigned pod that requests less frees room": (
        placed(a_pod("x", uid="x", cpu="2"), "node"),
        placed(a_pod("x", uid="x", cpu="1"), "node"),
        True,
    ),
    "less of something else does not help": (
        placed(a_pod("x", uid="x", memory="2Gi"), "node"),
        placed(a_pod("x", uid="x", memory="1Gi"), "node"),
        False,
    ),
    "a new node that it fits helps": (None, a_node_object(cpu="2"), True),
    "a new node that is too small does not": (None, a_node_object(cpu="1"), False),
    "more of what it wants helps": (a_node_object(cpu="1"), a_node_object(cpu="2"), True),
    "more of what it does not want does not": (
        a_node_object(cpu="2", memory="1Gi"),
        a_node_object(cpu="2", memory="2Gi"),
        False,
    ),
    "room for more pods helps": (a_node_object(cpu="2", pods=1), a_node_object(cpu="2", pods=2), True),
}


@pytest.mark.parametrize(("before", "after", "expected"), WAKING.values(), ids=WAKING.keys())
def test_what_wakes_a_refused_pod(before, after, expected):
    assert requeues(a_plugin(NodeResourcesFit), a_pod("refused", cpu="2"), before, after) is expected


def test_the_pods_own_scale_down_wakes_it():
    before, after = a_pod("refused", uid="me", cpu="9"), a_pod("refused", uid="me", cpu="1")
    assert requeues(a_plugin(NodeResourcesFit), before, before, after)


MISTAKES = {
    "resources[0].weight": strategy("LeastAllocated", ("cpu", 101)),
    "requestedToCapacityRatio.shape": strategy("RequestedToCapacityRatio"),
    "shape[1].utilization": strategy("RequestedToCapacityRatio", shape=[(50, 1), (50, 2)]),
    "shape[0].score": strategy("RequestedToCapacityRatio", shape=[(50, 11)]),
    "requestedToCapacityRatio": strategy("LeastAllocated", shape=[(50, 1)]),
}


@pytest.mark.parametrize(("path", "scoring"), MISTAKES.items(), ids=MISTAKES.keys())
def test_mistakes_in_the_strategy_are_named_by_their_path(path, scoring):
    with pytest.raises(OperatorMistake) as raised:
        a_plugin(NodeResourcesFit, scoring_strategy=scoring)
    assert any(problem.path.endswith(path) for problem in raised.value.problems)


IGNORED = {
    "a name is missing": (
        {"ignored_resources": ["example.com/"]},
        "ignoredResources[0]",
        "name part must be non-empty",
    ),
    "a name is too long": (
        {"ignored_resources": ["foo", "x" * 64]},
        "ignoredResources[1]",
        "name part must be no more than 63 bytes",
    ),
    "a group is too long": (
        {"ignored_resource_groups": ["x" * 64]},
        "ignoredResourceGroups[0]",
        "name part must be no more than 63 bytes",
    ),
    "a group is none": (
        {"ignored_resource_groups": ["a/b"]},
        "ignoredResourceGroups[0]",
        'resource group name can\'t contain "/", got "a/b"',
    ),
}


@pytest.mark.parametrize(("args", "path", "message"), IGNORED.values(), ids=IGNORED.keys())
def test_what_to_ignore_is_named_like_a_label(args, path, message):
    with pytest.raises(OperatorMistake) as raised:
        a_plugin(NodeResourcesFit, **args)
    [problem] = [each for each in raised.value.problems if each.path.endswith(path)][:1]
    assert message in problem.message


@given(st.integers(1, EXACT) | st.integers(EXACT - 2**20, EXACT))
def test_percents_of_many_nodes_are_cut_off_where_whole_numbers_are(capacity):
    """Every whole percent, one unit more and one less: where rounding could show."""
    at_percents = [capacity - -(-percent * capacity // 100) + unit for percent in range(101) for unit in (-1, 0, 1)]
    requested = [each for each in at_percents if 0 <= each <= capacity]
    scorer = ResourceScorer(ScoringStrategy())
    usage = Usage(
        np.array(requested, np.float64), 0, Capacity(np.full(len(requested), capacity)), weight=1, can_exceed=False
    )
    assert scorer.score_rows([usage], len(requested)).tolist() == [
        scorer.score([(each, capacity, 1)]) for each in requested
    ]


@pytest.mark.parametrize("strategy", ["LeastAllocated", "MostAllocated"])
@pytest.mark.parametrize("capacity", [2**56, 2**56 + 1, 2**60, 2**63 - 1])
def test_the_greatest_quantities_give_scores_like_others(capacity: int, strategy):
    """A hundred times as much has more than 64 bits. A quantity such as 1e999 counts as the greatest."""
    scorer = ResourceScorer(ScoringStrategy(type=strategy))
    for requested, least in ((0, 100), (capacity // 2, 50), (capacity, 0)):
        expected = least if strategy == "LeastAllocated" else 100 - least
        usage = Usage(np.array([requested], np.float64), 0, Capacity(np.array([capacity])), 1, can_exceed=True)
        [of_rows] = scorer.score_rows([usage], 1).tolist()
        assert of_rows == pytest.approx(expected, abs=1)
        assert scorer.score([(requested, capacity, 1)]) == pytest.approx(expected, abs=1)


@given(
    st.lists(st.tuples(st.integers(0, 2**62), st.integers(0, 2**62), st.integers(1, 100)), min_size=1, max_size=6),
    st.sampled_from(["LeastAllocated", "MostAllocated"]),
)
def test_dividing_many_at_once_is_exact_however_large_the_numbers(resources, strategy):
    small = [(requested % 2**40, capacity % 2**40, weight) for requested, capacity, weight in resources]
    scorer = ResourceScorer(ScoringStrategy(type=strategy))
    for given_resources in (small, [each for each in resources if each[1] < 2**53]):
        rows = [
            Usage(np.array([used], np.float64), 0, Capacity(np.array([capacity])), weight, used > capacity)
            for used, capacity, weight in given_resources
        ]
        assert scorer.score_rows(rows, 1).tolist() == [scorer.score(given_resources)]
