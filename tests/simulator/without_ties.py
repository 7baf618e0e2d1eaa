"""A cluster, and pods that arrive one after the other, such that every decision has one best node: schedulers that
break ties differently must agree. The last pod preempts. Refused pods are retried, always in vain.

A pod's message is that of its first refusal: later ones may come at any moment.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

from tests.real_apiserver import mixed_pods

from mooring.engine import Decision
from mooring.framework import Pod
from mooring.objects.quantity import exact
from mooring.simulator import Arrival, Cluster, Workload, profile, simulate

Document = dict[str, Any]

SEEDS = (62, 340, 379)
"""Few are without ties. Whether one is, `simulated` checks."""
COUNT = 60
URGENT = "urgent"
CPU_STEP, MEMORY_STEP = 137, 613 * 1024 * 1024
"""So much more has each node than the one before: no two are alike."""
APART_SECONDS = 60.0


class Placed(NamedTuple):
    """All that schedulers decide."""

    nodes: dict[str, str]
    """Pod → node, of the pods that exist in the end."""
    refusals: dict[str, str]
    """Pod → message, of the pods that were refused when they came. Not the last, which waits only for a moment."""


def nodes() -> list[Document]:
    found = mixed_pods.nodes()
    for number, node in enumerate(found):
        for resources in (node["status"]["allocatable"], node["status"]["capacity"]):
            resources["cpu"] = f"{int(exact(resources['cpu']) * 1000) + CPU_STEP * number}m"
            resources["memory"] = str(int(exact(resources["memory"])) + MEMORY_STEP * number)
    return found


def priority_classes(seed: int) -> list[Document]:
    """Only the last pod may take the place of another."""
    head = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass"}
    classes = [each | {"preemptionPolicy": "Never"} for each in mixed_pods.priority_classes(COUNT, seed)]
    return [head | each for each in (*classes, {"metadata": {"name": URGENT}, "value": 1_000_000})]


def pods(seed: int) -> list[Document]:
    found = mixed_pods.pods(COUNT, seed)
    for number, pod in enumerate(found):
        pod["spec"]["terminationGracePeriodSeconds"] = 0  # a victim is gone at once, as in a simulation
        requests = pod["spec"]["containers"][0]["resources"]["requests"]
        requests["cpu"] = f"{int(exact(requests['cpu']) * 1000) + 7 * number}m"
    container = {"name": "main", "image": "pause", "resources": {"requests": {"cpu": "1900m"}}}
    found[-1]["metadata"]["name"] = URGENT
    found[-1]["spec"] = {"priorityClassName": URGENT, "containers": [container]}
    return found


def simulated(cluster: Cluster, seed: int, folder: Path) -> Placed:
    """By the simulator, which reads the pods as manifests."""
    documents = pods(seed)
    path = folder / "pods.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": documents}))
    read = Workload.read(path, cluster=cluster)
    order = {pod["metadata"]["name"]: number for number, pod in enumerate(documents)}
    workload = Workload([Arrival(APART_SECONDS * order[each.pod.name], each.pod) for each in read], read.documents)
    refusals: dict[str, str] = {}

    def decided(pod: Pod, decision: Decision, now: float) -> None:
        columns = decision.columns()
        assert columns is None or (columns.total == columns.total.max()).sum() == 1, f"{pod.name}: a tie"
        if decision.node is None and pod.name != URGENT and now == APART_SECONDS * order[pod.name]:
            refusals[pod.name] = decision.message

    result = simulate(cluster, workload, profile(percentage_of_nodes_to_score=100), on_decided=decided)
    late = [pod.name for pod in result.bound if pod.attempts > 1 and pod.name != URGENT]
    assert not late, f"{late} were bound later than they came: that moment differs between schedulers"
    assert result.preemptions, "nothing was preempted"
    return Placed({pod.name: pod.node for pod in result.bound if pod.node and not pod.is_preempted}, refusals)
