"""NodeResourcesBalancedAllocation: the improvement of a node's balance, and the pods it does not score."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import force_setattr

from mooring.base.errors import OperatorMistake
from mooring.framework import Skip
from mooring.objects.core import ContainerStatus, PodCondition, ResourceRequirements
from mooring.plugins.default.balanced_allocation import NodeResourcesBalancedAllocation
from mooring.testing import a_cluster, a_cycle, a_node, a_plugin, a_pod
from mooring.testing.forms import scored_at_once, scored_one_by_one

GPU = "example.com/gpu"
NODE = a_node(cpu="10", memory="10Gi", resources={GPU: 10, "ephemeral-storage": "10Gi"})


def balanced(*resources: str):
    given = {"resources": [{"name": name, "weight": 1} for name in resources]} if resources else {}
    return a_plugin(NodeResourcesBalancedAllocation, **given)


def score(plugin, pod, node):
    cluster = a_cluster(node)
    plain = scored_one_by_one(plugin, pod, cluster)
    assert scored_at_once(plugin, pod, cluster) == plain
    return None if plain is None else plain[node.name]


def a_node_that_runs(**requests):
    return a_node(cpu="10", memory="10Gi", resources={GPU: 10}, running=[a_pod(**requests)])


CASES = {
    "a pod that requests the same share of everything changes nothing": (
        balanced(),
        a_pod(cpu="5", memory="5Gi"),
        NODE,
        75,
    ),
    "one that requests CPU only upsets the balance": (balanced(), a_pod(cpu="10"), NODE, 50 + (50 + 50 - 100) // 2),
    "one that requests what was idle restores it": (
        balanced(),
        a_pod(cpu="10"),
        a_node_that_runs(memory="10Gi"),
        50 + (50 + 100 - 50) // 2,
    ),
    "shares beyond the whole node count as the whole": (
        balanced(),
        a_pod(cpu="20"),
        NODE,
        50 + (50 + 50 - 100) // 2,
    ),
    "half a point is dropped": (balanced(), a_pod(cpu="1", memory="2Gi"), NODE, 50 + (50 + 95 - 100) // 2),
    "other pods' missing requests are not made up": (balanced(), a_pod(cpu="1"), a_node_that_runs(), 72),
    "of three resources it is the standard deviation": (
        balanced("cpu", "memory", GPU),
        a_pod(cpu="9", requests={GPU: 3}),
        NODE,
        50 + (50 + 62 - 100) // 2,
    ),
    "an extended resource counts only for pods that request it": (
        balanced("cpu", "memory", GPU),
        a_pod(cpu="10"),
        a_node_that_runs(requests={GPU: 10}),
        50 + (50 + 50 - 100) // 2,
    ),
    "CPU, memory and ephemeral storage count for every pod": (
        balanced("cpu", "ephemeral-storage"),
        a_pod(cpu="10"),
        NODE,
        50 + (50 + 50 - 100) // 2,
    ),
    "what the node lacks is left out": (
        balanced("cpu", "memory", GPU),
        a_pod(cpu="10", memory="10Gi", requests={GPU: 1}),
        a_node(cpu="10", memory="10Gi"),
        75,
    ),
    "of one resource alone there is no balance": (
        balanced("cpu", GPU),
        a_pod(cpu="5", requests={GPU: 1}),
        a_node(cpu="10"),
        75,
    ),
    "nor of none": (balanced(GPU), a_pod(requests={GPU: 1}), a_node(), 75),
    "the number of pods is no resource to balance": (
        balanced("cpu", "memory", "pods"),
        a_pod(cpu="10"),
        NODE,
        50 + (50 + 50 - 100) // 2,
    ),
    "a pod that requests nothing is not scored": (balanced(), a_pod(), NODE, None),
    "nor one that requests 0": (balanced(), a_pod(cpu="0"), NODE, None),
    "nor one that requests something else": (balanced(), a_pod(requests={GPU: 1}), NODE, None),
}


@pytest.mark.parametrize(("plugin", "pod", "node", "expected"), CASES.values(), ids=CASES.keys())
def test_score(plugin, pod, node, expected):
    assert score(plugin, pod, node) == expected


def test_pod_level_requests_count():
    pod = a_pod()
    force_setattr(pod.spec, "resources", ResourceRequirements(requests={"cpu": "10"}))
    assert score(balanced(), pod, NODE) == 50


HELD = {
    "what a container holds counts, though the pod is on no node": ("5", "10", None, 50),
    "what it requests counts, where that is more": ("10", "5", None, 50),
    "but not what was found infeasible": ("10", "5", "Infeasible", 50 + (50 + 75 - 100) // 2),
    "a pod that holds nothing and cannot get more is not scored": ("10", "0", "Infeasible", None),
}


@pytest.mark.parametrize(("requested", "held", "pending", "expected"), HELD.values(), ids=HELD.keys())
def test_a_pending_pod_counts_by_its_container_statuses(requested, held, pending, expected):
    pod = a_pod(cpu=requested)
    resources = ResourceRequirements(requests={"cpu": held})
    force_setattr(
        pod.status, "container_statuses", (ContainerStatus(name=pod.spec.containers[0].name, resources=resources),)
    )
    if pending:
        force_setattr(pod.status, "conditions", (PodCondition(type="PodResizePending", status="True", reason=pending),))
    assert score(balanced(), pod, NODE) == expected
    assert balanced().sign(pod) != balanced().sign(a_pod(cpu="7"))


def test_without_its_pre_score_it_scores_the_same_and_0_where_that_would_skip(monkeypatch):
    from mooring.base.errors import StateMissing

    plugin = balanced()
    for pod, expected in ((a_pod(cpu="10"), 50), (a_pod(), 0)):
        cycle = a_cycle(pod, cluster := a_cluster(NODE))

        def no_state(_plugin):
            raise StateMissing("pre_score is switched off")

        monkeypatch.setattr(cycle, "score_state", no_state)
        assert plugin.score(pod, NODE, cycle) == expected
        assert plugin.score_nodes(pod, cluster.nodes, cycle).tolist() == [expected]


def test_the_plugin_skips_best_effort_pods():
    assert isinstance(balanced().pre_score(a_pod(), a_cluster(NODE).nodes, a_cycle(a_pod())), Skip)


amounts = st.integers(0, 12)


@settings(deadline=None)
@given(
    st.lists(st.sampled_from(["cpu", "memory", GPU, "example.com/nic", "ephemeral-storage"]), min_size=1, unique=True),
    st.lists(st.tuples(amounts, amounts, amounts, amounts), min_size=1, max_size=5),
    st.tuples(amounts, amounts, amounts),
)
def test_both_forms_agree_to_the_last_bit(resources, sizes, requested):
    nodes = [
        a_node(
            f"n{at}",
            cpu=cpu,
            memory=memory,
            resources={GPU: gpu, "example.com/nic": 3},
            running=[a_pod(cpu=used, memory=used, requests={GPU: used})],
        )
        for at, (cpu, memory, gpu, used) in enumerate(sizes)
    ]
    pod = a_pod(cpu=requested[0], memory=requested[1], requests={GPU: requested[2]})
    plugin, cluster = balanced(*resources), a_cluster(*nodes)
    assert scored_at_once(plugin, pod, cluster) == scored_one_by_one(plugin, pod, cluster)


MISTAKES = {
    "resources[1].name": [{"name": "cpu"}, {"name": "cpu"}],
    "resources[0].weight": [{"name": "cpu", "weight": 2}],
}


@pytest.mark.parametrize(("path", "resources"), MISTAKES.items(), ids=MISTAKES.keys())
def test_mistakes_are_named_by_their_path(path, resources):
    with pytest.raises(OperatorMistake) as raised:
        a_plugin(NodeResourcesBalancedAllocation, resources=resources)
    assert [problem.path for problem in raised.value.problems] == [path]


def test_weight_0_is_none_given():
    cluster, pod = (
        a_cluster(a_node("even", cpu="4"), a_node("odd", cpu="2", memory="1Gi")),
        a_pod(cpu="1", memory="512Mi"),
    )
    scores = [
        scored_one_by_one(a_plugin(NodeResourcesBalancedAllocation, resources=resources), pod, cluster)
        for resources in (
            [{"name": "cpu", "weight": 0}, {"name": "memory", "weight": 0}],
            [{"name": "cpu", "weight": 1}, {"name": "memory", "weight": 1}],
        )
    ]
    assert scores[0] == scores[1]
