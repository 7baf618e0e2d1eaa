"""A simulation from a snapshot decides as kube-scheduler does on the cluster: every placement, refusal and victim."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from tests.cli.programs import Program
from tests.real_apiserver.cluster import PODS, PRIORITIES, Cluster, Document
from tests.real_apiserver.control_plane import ADMIN
from tests.simulator import without_ties
from tests.simulator.without_ties import URGENT, Placed

from mooring import simulator


@pytest.mark.parametrize("seed", without_ties.SEEDS)
def test_pods_are_placed_as_kube_scheduler_places_them(cluster: Cluster, seed: int, tmp_path: Path):
    for document in without_ties.priority_classes(seed):
        cluster.api.create(PRIORITIES, document)
    cluster.nodes_of(without_ties.nodes())
    snapshot = tmp_path / "cluster.snapshot"
    kubeconfig = cluster.control_plane.kubeconfig(ADMIN)
    with Program("snapshot", str(snapshot), f"--kubeconfig={kubeconfig}", home=tmp_path) as taking:
        assert taking.ended() == 0
    cluster.kube_scheduler(cluster.configuration(percentageOfNodesToScore=100))

    assert placed(cluster, seed) == without_ties.simulated(simulator.Cluster.read(snapshot), seed, tmp_path)


def placed(cluster: Cluster, seed: int) -> Placed:
    """By the scheduler that runs."""
    refusals = {}
    for document in without_ties.pods(seed):
        name = document["metadata"]["name"]
        cluster.api.create(PODS, document)
        condition = cluster.until(partial(decided, cluster, name), what=f"a decision about {name}")
        if condition["status"] == "False" and name != URGENT:
            refusals[name] = condition["message"]
    cluster.bound(URGENT)
    nodes = {pod["metadata"]["name"]: pod["spec"].get("nodeName") for pod in cluster.pods()}
    return Placed({name: node for name, node in nodes.items() if node}, refusals)


def decided(cluster: Cluster, name: str) -> Document | None:
    """Its condition PodScheduled, once it has one."""
    conditions = cluster.api.get(f"{PODS}/{name}").get("status", {}).get("conditions", ())
    return next((dict(each) for each in conditions if each["type"] == "PodScheduled"), None)
