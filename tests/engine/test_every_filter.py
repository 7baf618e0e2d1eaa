"""Every filter on every node: the first that rejects one is the one that a decision names."""

from __future__ import annotations

import pytest
from tests.why.clusters import recomputing

from mooring.framework import OnlyNodes, Plugin, Refusal, Skip
from mooring.testing import a_node_object, a_pod
from mooring.testing.builders import a_constraint, a_taint, a_term, pod_rules, requires

ZONES = ("a", "b", "")
NODES = [
    a_node_object(
        f"node-{number}",
        cpu=str(1 + number % 4),
        pods=1 + number % 3,
        labels={"zone": ZONES[number % 3]} if number % 5 else {},
        taints=[a_taint("gpu=true:NoSchedule")] if number % 4 == 1 else [],
        unschedulable=number % 7 == 3,
    )
    for number in range(40)
]
RUNNING = [
    a_pod(
        f"pod-{number}",
        cpu="700m",
        labels={"app": "web" if number % 2 else "db"},
        ports=[80] if number % 5 == 2 else [],
        node=f"node-{number}",
        affinity=pod_rules(away=[a_term({"app": "web"})]) if number == 11 else None,
    )
    for number in range(0, 40, 3)
]
PODS = {
    "plain": a_pod(cpu="1"),
    "with a port": a_pod(cpu="1", ports=[80]),
    "with node affinity": a_pod(cpu="1", affinity=requires([("zone", "In", ["a"])])),
    "with spread": a_pod(cpu="1", labels={"app": "web"}, spread=[a_constraint(labels={"app": "web"})]),
    "with anti-affinity": a_pod(cpu="1", labels={"app": "web"}, affinity=pod_rules(away=[a_term({"app": "db"})])),
    "too large": a_pod(cpu="9"),
}


@pytest.mark.parametrize("pod", PODS.values(), ids=PODS.keys())
def test_a_decision_names_the_first_filter_that_rejects_a_node(pod):
    with recomputing(NODES, [*RUNNING, pod]) as recomputation:
        decision = recomputation.decide(pod)
        _, results = recomputation.results(pod)
    first = {
        node.name: next((name for name, result in results.items() if node.name in result.rejected), None)
        for node in NODES
    }
    assert {node: plugin for node, plugin in first.items() if plugin} == {
        node: verdict.plugin for node, verdict in decision.rejections.items()
    }
    for node, verdict in decision.rejections.items():
        assert results[verdict.plugin].rejected[node].reasons == verdict.refusal.reasons


@pytest.mark.parametrize("pod", PODS.values(), ids=PODS.keys())
def test_one_node_alone_gets_the_same_verdicts_as_among_all(pod):
    with recomputing(NODES, [*RUNNING, pod]) as recomputation:
        _, results = recomputation.results(pod)
        for node in NODES:
            _, alone = recomputation.results(pod, node.name)
            assert {name: result.rejected.get(node.name) for name, result in alone.items()} == {
                name: result.rejected.get(node.name) for name, result in results.items()
            }


class NeverThere(Plugin):
    """Refuses the pod as a whole."""

    def pre_filter(self, pod, cycle):
        return Refusal("nowhere")


class OnlyTwo(Plugin):
    """Names the only nodes."""

    def pre_filter(self, pod, cycle):
        return OnlyNodes({"node-0", "node-1"})

    def filter(self, pod, node, cycle):
        return None


class Broken(Plugin):
    """Fails on every node."""

    def pre_filter(self, pod, cycle):
        return Skip() if pod.name == "skipped" else None

    def filter(self, pod, node, cycle):
        raise ValueError("broken")


def results_of(*plugins, pod):
    from mooring.config import load_configuration
    from mooring.plugins.catalogue import catalogue
    from mooring.simulator import Cluster, profile
    from mooring.why import Recomputation

    registry = catalogue()
    for plugin in plugins:
        registry.add(plugin, __name__)
    document = profile(enable=plugins)
    import json

    loaded = load_configuration(json.dumps(document), source="the test", registry=registry).configuration
    with Recomputation(Cluster(NODES[:3], [pod]), loaded, registry) as recomputation:
        return recomputation.results(pod)[1]


def test_a_plugin_that_refuses_the_pod_rejects_every_node_and_the_others_still_run():
    results = results_of(NeverThere, pod=a_pod(cpu="9"))
    assert {refusal.reasons for refusal in results["NeverThere"].rejected.values()} == {("nowhere",)}
    assert len(results["NodeResourcesFit"].rejected) == 3


def test_nodes_that_a_plugin_did_not_name_are_rejected_by_it():
    results = results_of(OnlyTwo, pod=a_pod())
    assert list(results["OnlyTwo"].rejected) == ["node-2"]


def test_a_plugin_that_fails_has_a_fault_and_the_others_still_run():
    results = results_of(Broken, pod=a_pod(cpu="9"))
    assert "ValueError: broken" in str(results["Broken"].fault)
    assert len(results["NodeResourcesFit"].rejected) == 3
    assert results_of(Broken, pod=a_pod("skipped"))["Broken"].is_skipped
