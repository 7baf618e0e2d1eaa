"""Pod groups on a real API server with their gates on: kube-scheduler and Mooring, one after the other, end alike.

Each scheduler runs once for all stories of a set of gates: to start it takes longer than a story.
"""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from tests.cli.programs import Program
from tests.real_apiserver.cluster import Cluster, Document
from tests.real_apiserver.group_stories import (
    NODES,
    WITH_GROUP_PREEMPTION,
    WITHOUT_GROUP_PREEMPTION,
    Stage,
    Story,
)

GATES = "--feature-gates=GenericWorkload=true,GangScheduling=true,TopologyAwareWorkloadScheduling=true"
SETS = {
    "pods preempt": (GATES, WITHOUT_GROUP_PREEMPTION),
    "groups preempt": (f"{GATES},WorkloadAwarePreemption=true", WITH_GROUP_PREEMPTION),
}
PROFILES = [{"schedulerName": "default-scheduler"}, {"schedulerName": "other"}]
DISRUPTED = (
    '{.metadata.namespace} {.metadata.name} {.status.conditions[?(@.type=="DisruptionTarget")].reason} '
    '{.status.conditions[?(@.type=="DisruptionTarget")].message}{"\\n"}'
)
"""What is there only until a victim is gone: read from a watch."""


def a_node(name: str, rack: str, cpu: str) -> Document:
    labels = {"kubernetes.io/hostname": name, "rack": rack}
    amounts = {"cpu": cpu, "memory": "16Gi", "pods": "110"}
    return {
        "kind": "Node",
        "apiVersion": "v1",
        "metadata": {"name": name, "labels": labels},
        "status": {"allocatable": amounts},
    }


def outcomes(cluster: Cluster, stories: Mapping[str, Story], who: str) -> dict[str, Document]:
    """How each story ends."""
    found = {}
    everywhere = cluster.kubectl.command("get", "pods", "--all-namespaces", "--watch", f"--output=jsonpath={DISRUPTED}")
    with Program(home=cluster.home, program=everywhere) as watch:
        for number, (name, story) in enumerate(stories.items()):
            stage = Stage(cluster, f"{who}-{number}")
            story(stage)
            stage.others_are_scheduled()
            found[name] = stage.outcome() | {"disrupted": disrupted(watch, stage)}
            stage.end()
    return found


def disrupted(watch: Program, stage: Stage) -> list[str]:
    """Victims with reason and message of their condition, once the watch has shown the last pod."""
    watch.mentions(f"{stage.namespace} last")
    found = {line.partition(" ")[2] for line in watch.out if line.startswith(f"{stage.namespace} ")}
    return sorted(line for line in found if "PreemptionByScheduler" in line)


@pytest.mark.parametrize("chosen", SETS)
def test_both_schedulers_end_alike(cluster_of_groups: Cluster, chosen: str):
    cluster, (gates, stories) = cluster_of_groups, SETS[chosen]
    where = chosen.replace(" ", "-")
    cluster.nodes_of([a_node(name, rack, cpu) for name, (rack, cpu) in NODES.items()])
    configuration = cluster.configuration(profiles=PROFILES)
    kube_scheduler = cluster.kube_scheduler(configuration, gates)
    theirs = outcomes(cluster, stories, f"{where}-theirs")
    kube_scheduler.end()
    cluster.scheduler(configuration, gates)
    assert outcomes(cluster, stories, f"{where}-ours") == theirs
