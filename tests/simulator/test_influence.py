"""How often a plugin decided or stood in the way: against the plain rule, over all nodes of each decision."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from tests.simulator.scenarios import a_cluster_of, arriving

from mooring.engine import Decision
from mooring.framework import Plugin, Pod
from mooring.objects.core import Taint
from mooring.simulator import Arrival, Cluster, profile, simulate
from mooring.simulator.influence import PluginInfluence
from mooring.simulator.outcome import SimulationResult
from mooring.testing import a_node_object


def deciding_by_the_rule(decision: Decision) -> set[str]:
    """Score plugins without which other nodes would be among the best."""
    columns = decision.columns()
    if columns is None:
        return set()
    chosen = columns.nodes.index(str(decision.node))
    found = set()
    for plugin, scores in columns.normalized.items():
        without = columns.total - scores * columns.weights[plugin]
        if set(columns.total[without == without.max()]) != {columns.total[chosen]}:
            found.add(plugin)
    return found


def check(pod: Pod, decision: Decision, at: float) -> None:
    assert {plugin for plugin, decided in decision.deciding().items() if decided} == deciding_by_the_rule(decision)
    rejected = Counter(verdict.plugin for verdict in dict(decision.rejections.items()).values())
    assert decision.rejected_counts() == rejected


def a_mixed_workload(seed: int, node_count: int) -> tuple[Cluster, list[Arrival]]:
    generator = random.Random(seed)
    nodes = [
        a_node_object(
            f"node-{number}",
            cpu=generator.choice(("2", "4")),
            memory=generator.choice(("4Gi", "8Gi")),
            labels={"disk": generator.choice(("ssd", "hdd")), "topology.kubernetes.io/zone": f"z{number % 3}"},
            taints=[Taint(key="gpu", effect="NoSchedule")] if generator.random() < 0.2 else [],
        )
        for number in range(node_count)
    ]
    pods = [
        arriving(
            number,
            f"pod-{number}",
            cpu=generator.choice(("500m", "1", "3")),
            memory=generator.choice(("1Gi", "3Gi")),
            owner=f"owner-{number % 4}",
            labels={"app": f"app-{number % 4}"},
            seconds=generator.choice((None, 5.0)),
            node_selector={"disk": "ssd"} if generator.random() < 0.3 else None,
        )
        for number in range(60)
    ]
    return Cluster(nodes), pods


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("node_count", "percentage"), [(12, None), (130, 10)], ids=["all nodes", "sampled nodes"])
def test_what_is_computed_at_once_is_what_the_rule_means(seed: int, node_count: int, percentage: int | None):
    cluster, pods = a_mixed_workload(seed, node_count)
    simulate(cluster, pods, profile(percentage_of_nodes_to_score=percentage), on_decided=check)


def influence_of(outcome: SimulationResult, plugin: str) -> PluginInfluence:
    return next((each for each in outcome.influence if each.plugin == plugin), PluginInfluence(plugin))


class PrefersB(Plugin):
    """Scores node b."""

    def score(self, pod, node, cycle):
        return 100 if node.name == "b" else 0


class PrefersBToo(PrefersB):
    """The same."""


def test_a_score_decided_if_other_nodes_would_be_among_the_best_without_it():
    one = profile(enable=[PrefersB], disable=["*"])
    outcome = simulate(a_cluster_of("a", "b"), [arriving(0, "pod")], one, ties="first")
    assert outcome.pods[0].node == "b"
    assert influence_of(outcome, "PrefersB") == PluginInfluence("PrefersB", scored=1, decided=1)
    both = profile(enable=[PrefersB, PrefersBToo], disable=["*"])
    outcome = simulate(a_cluster_of("a", "b"), [arriving(0, "pod")], both, ties="first")
    assert influence_of(outcome, "PrefersB") == PluginInfluence("PrefersB", scored=1, decided=0)


def test_the_last_obstacle_rejected_the_nodes_that_came_furthest():
    nodes = [
        a_node_object("tainted", cpu="8", taints=[Taint(key="gpu", effect="NoSchedule")]),
        a_node_object("small", cpu="1"),
    ]
    outcome = simulate(Cluster(nodes), [arriving(0, "large", cpu="4")])
    taints, fit = influence_of(outcome, "TaintToleration"), influence_of(outcome, "NodeResourcesFit")
    assert (taints.rejecting, taints.rejected_nodes, taints.last, taints.alone) == (1, 1, 0, 0)
    assert (fit.rejecting, fit.rejected_nodes, fit.last, fit.alone) == (1, 1, 1, 0)
    alone = influence_of(simulate(a_cluster_of("a"), [arriving(0, "large", cpu="4")]), "NodeResourcesFit")
    assert (alone.last, alone.alone) == (1, 1)


def test_influence_can_be_left_out():
    assert simulate(a_cluster_of("a", "b"), [arriving(0, "pod")], influence=False).influence == []
