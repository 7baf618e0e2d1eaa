"""Pod groups on a real API server with their gates on: kube-scheduler and Mooring, one after the other, end alike."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from tests.cli.programs import private_home
from tests.real_apiserver.cluster import PODS, Cluster, Document
from tests.real_apiserver.control_plane import SCHEDULER, ControlPlane

GATES = "--feature-gates=GenericWorkload=true,GangScheduling=true,TopologyAwareWorkloadScheduling=true"
SERVED = "--runtime-config=scheduling.k8s.io/v1alpha2=true"
GROUPS = "/apis/scheduling.k8s.io/v1alpha2/namespaces/default/podgroups"
GANG, LAST = "training", "last"
NODES = {"node-a": ("rack-1", "4"), "node-b": ("rack-1", "2"), "node-c": ("rack-2", "4"), "node-d": ("rack-2", "4")}


@dataclass(frozen=True)
class Scenario:
    """A group and the cpu that each of its pods requests, the first one with the highest priority."""

    spec: Document
    pods: tuple[str, ...]
    running: tuple[tuple[str, str], ...] = ()
    """Pods that run already: node and cpu."""
    is_gated: bool = False
    """Whether its pods do not enter the queue: neither they nor the group get a condition."""


def a_gang(count: int, **more: Any) -> Document:
    return {"schedulingPolicy": {"gang": {"minCount": count}}, **more}


IN_ONE_RACK = {"schedulingConstraints": {"topology": [{"key": "rack"}]}}
SCENARIOS = {
    "G21, G24: a gang that fits": Scenario(a_gang(3), ("1", "1", "1")),
    "G14, G22: a gang that is too large": Scenario(a_gang(4), ("3", "3", "3", "3")),
    "G28: more pods than the gang needs, of which one does not fit": Scenario(a_gang(2), ("3", "3", "9")),
    "G26: a gang whose pods are not all there": Scenario(a_gang(3), ("1", "1"), is_gated=True),
    "G19: a group that is no gang": Scenario({"schedulingPolicy": {"basic": {}}}, ("9", "2", "2")),
    "G31: a gang that fits one rack": Scenario(a_gang(2, **IN_ONE_RACK), ("3", "3")),
    "G34: of two racks the fuller one": Scenario(a_gang(2, **IN_ONE_RACK), ("1", "1"), (("node-d", "2"),)),
    "G33: a gang that fits no rack": Scenario(a_gang(2, **IN_ONE_RACK), ("9", "9")),
}


@pytest.fixture(scope="module")
def with_gates() -> Iterator[ControlPlane]:
    with private_home() as folder, ControlPlane(folder, GATES, SERVED) as running:
        yield running


@pytest.fixture
def gated(with_gates: ControlPlane) -> Iterator[Cluster]:
    with private_home() as home, Cluster(with_gates, home) as empty:
        yield empty
        empty.wipe()


def a_node(name: str, rack: str, cpu: str) -> Document:
    labels = {"kubernetes.io/hostname": name, "rack": rack}
    amounts = {"cpu": cpu, "memory": "16Gi", "pods": "110"}
    return {
        "kind": "Node",
        "apiVersion": "v1",
        "metadata": {"name": name, "labels": labels},
        "status": {"allocatable": amounts},
    }


def set_up(cluster: Cluster, scenario: Scenario) -> None:
    for group in cluster.api.items(GROUPS):
        path = f"{GROUPS}/{group['metadata']['name']}"
        cluster.api.merge(path, {"metadata": {"finalizers": None}})  # no controller removes it here
        cluster.api.delete(path)
    cluster.nodes_of([a_node(name, rack, cpu) for name, (rack, cpu) in NODES.items()])
    for number, (node, cpu) in enumerate(scenario.running):
        cluster.pod(f"running-{number}", cpu=cpu, nodeName=node)
        cluster.running(f"running-{number}")
    cluster.priority(LAST, 1000)
    for number in range(len(scenario.pods)):
        cluster.priority(f"place-{number}", 100 - number)
    cluster.api.create(GROUPS, {"metadata": {"name": GANG}, "spec": scenario.spec})
    for number, cpu in enumerate(scenario.pods):
        group = {"podGroupName": GANG}
        cluster.pod(f"worker-{number}", cpu=cpu, priorityClassName=f"place-{number}", schedulingGroup=group)


def outcome(cluster: Cluster, scenario: Scenario) -> Document:
    """After another pod, which comes last and is no victim of the group, has run: by then the group was tried."""
    cluster.pod(LAST, cpu="10m", priorityClassName=LAST)
    cluster.running(LAST)
    if not scenario.is_gated:
        cluster.until(lambda: conditions(cluster.api.get(f"{GROUPS}/{GANG}")), what="the group's condition")
        cluster.until(lambda: all(map(condition, members(cluster).values())), what="the members' conditions")
    return {
        "group": conditions(cluster.api.get(f"{GROUPS}/{GANG}")),
        "pods": {name: seen(pod) for name, pod in sorted(members(cluster).items())},
        "racks": {NODES[pod["spec"]["nodeName"]][0] for pod in members(cluster).values() if "nodeName" in pod["spec"]}
        if "schedulingConstraints" in scenario.spec
        else None,
    }


def members(cluster: Cluster) -> dict[str, Document]:
    return {pod["metadata"]["name"]: pod for pod in cluster.api.items(PODS) if "schedulingGroup" in pod["spec"]}


def condition(pod: Document) -> Document | None:
    found = [each for each in pod["status"].get("conditions", ()) if each["type"] == "PodScheduled"]
    return found[0] if found else None


def conditions(group: Document) -> list[tuple[str, str, str, str]]:
    found = group.get("status", {}).get("conditions", ())
    return [(each["type"], each["status"], each["reason"], each["message"]) for each in found]


def seen(pod: Document) -> tuple[bool, str, str]:
    """Whether it has a node, for of equal ones any may be chosen; else why it has none."""
    if pod["spec"].get("nodeName"):
        return True, "", ""
    found = condition(pod) or {}
    return False, found.get("reason", ""), found.get("message", "")


@pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=SCENARIOS.keys())
def test_both_schedulers_end_alike(gated: Cluster, with_gates: ControlPlane, scenario: Scenario):
    kubeconfig = f"--kubeconfig={with_gates.kubeconfig(SCHEDULER)}"
    set_up(gated, scenario)
    kube_scheduler = gated.kube_scheduler(kubeconfig, GATES, "--leader-elect=false")
    theirs = outcome(gated, scenario)
    kube_scheduler.end()
    gated.wipe()
    set_up(gated, scenario)
    gated.scheduler(GATES, "--leader-elect=false")
    assert outcome(gated, scenario) == theirs
