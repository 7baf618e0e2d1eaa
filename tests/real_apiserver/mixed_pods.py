"""A cluster of unlike nodes, and pods that together use most of what a pod spec can require; the same for a seed.

Every pod has a priority of its own, so that the choice of victims does not depend on when pods started.
"""

from __future__ import annotations

from random import Random
from typing import Any

Document = dict[str, Any]

ZONE, HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
IMAGE = "pause:3.14"
"""Small enough for ImageLocality to overlook: nodes report what they pulled at no given moment."""


def nodes() -> list[Document]:
    """Ten nodes in three zones: large and small, with disks, taints, devices, and one that is cordoned."""
    shapes: list[Document] = [
        {"cpu": "4", "labels": {"disk": "ssd"}},
        {"cpu": "4", "labels": {"disk": "hdd"}},
        {"cpu": "6", "labels": {"disk": "ssd"}},
        {"cpu": "2"},
        {"cpu": "2", "taints": [{"key": "busy", "effect": "PreferNoSchedule"}]},
        {"cpu": "4", "taints": [{"key": "dedicated", "value": "batch", "effect": "NoSchedule"}]},
        {"cpu": "8", "unschedulable": True},
        {"cpu": "4", "devices": "2"},
        {"cpu": "3", "memory": "4Gi"},
        {"cpu": "3", "labels": {"disk": "hdd"}, "pods": "4"},
    ]
    return [_node(f"node-{number + 1}", f"zone-{'abc'[number % 3]}", **shape) for number, shape in enumerate(shapes)]


def _node(
    name: str,
    zone: str,
    *,
    cpu: str,
    memory: str = "16Gi",
    pods: str = "110",
    devices: str = "0",
    labels: dict[str, str] | None = None,
    taints: list[Document] | None = None,
    unschedulable: bool = False,
) -> Document:
    resources = {
        "cpu": cpu,
        "memory": memory,
        "pods": pods,
        "ephemeral-storage": "100Gi",
        "example.com/device": devices,
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {ZONE: zone, HOST: name} | (labels or {})},
        "spec": {"taints": taints or [], "unschedulable": unschedulable},
        "status": {"allocatable": resources, "capacity": resources},
    }


def priority_classes(count: int, seed: int) -> list[Document]:
    """One for each pod, in no order; a third of them may take the place of others."""
    chance = Random(f"{seed} priorities")
    values = chance.sample(range(10, 10 * count + 10, 10), count)
    return [
        {
            "metadata": {"name": f"of-pod-{number}"},
            "value": value,
            "preemptionPolicy": "PreemptLowerPriority" if chance.random() < 0.33 else "Never",
        }
        for number, value in enumerate(values)
    ]


def pods(count: int, seed: int) -> list[Document]:
    chance = Random(f"{seed} pods")
    return [_pod(number, chance) for number in range(count)]


def _pod(number: int, chance: Random) -> Document:
    app = chance.choice(["shop", "web", "db"])
    requests: Document = {"cpu": chance.choice(["100m", "250m", "500m", "1", "1500m"])}
    if chance.random() < 0.6:
        requests["memory"] = chance.choice(["64Mi", "512Mi", "1Gi", "3Gi"])
    container: Document = {"name": "main", "image": IMAGE, "resources": {"requests": requests}}
    spec: Document = {
        "priorityClassName": f"of-pod-{number}",
        "terminationGracePeriodSeconds": 1,
        "containers": [container],
    }
    for require in chance.sample(REQUIREMENTS, chance.choice([0, 1, 1, 2])):
        require(spec, app, chance)
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"pod-{number}", "labels": {"app": app}},
        "spec": spec,
    }


def _picks_a_disk(spec: Document, app: str, chance: Random) -> None:
    spec["nodeSelector"] = {"disk": chance.choice(["ssd", "ssd", "hdd", "tape"])}


def _tolerates(spec: Document, app: str, chance: Random) -> None:
    spec["tolerations"] = [chance.choice([{"operator": "Exists"}, {"key": "dedicated", "value": "batch"}])]


def _likes_or_needs_a_zone(spec: Document, app: str, chance: Random) -> None:
    zones = chance.sample(["zone-a", "zone-b", "zone-c"], 2)
    term = {"matchExpressions": [{"key": ZONE, "operator": chance.choice(["In", "NotIn"]), "values": zones}]}
    affinity: Document = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 40, "preference": term}]}
    if chance.random() < 0.5:
        affinity["requiredDuringSchedulingIgnoredDuringExecution"] = {"nodeSelectorTerms": [term]}
    spec.setdefault("affinity", {})["nodeAffinity"] = affinity


def _spreads(spec: Document, app: str, chance: Random) -> None:
    spec["topologySpreadConstraints"] = [
        {
            "maxSkew": chance.choice([1, 2]),
            "topologyKey": chance.choice([ZONE, HOST]),
            "whenUnsatisfiable": chance.choice(["DoNotSchedule", "ScheduleAnyway"]),
            "labelSelector": {"matchLabels": {"app": app}},
        }
    ]


def _keeps_company(spec: Document, app: str, chance: Random) -> None:
    term = {"topologyKey": ZONE, "labelSelector": {"matchLabels": {"app": chance.choice([app, "db", "none"])}}}
    spec.setdefault("affinity", {})["podAffinity"] = _hard_or_soft(term, chance)


def _keeps_apart(spec: Document, app: str, chance: Random) -> None:
    term = {"topologyKey": chance.choice([HOST, HOST, ZONE]), "labelSelector": {"matchLabels": {"app": app}}}
    spec.setdefault("affinity", {})["podAntiAffinity"] = _hard_or_soft(term, chance)


def _hard_or_soft(term: Document, chance: Random) -> Document:
    if chance.random() < 0.5:
        return {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    return {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 70, "podAffinityTerm": term}]}


def _has_a_port(spec: Document, app: str, chance: Random) -> None:
    spec["containers"][0]["ports"] = [{"containerPort": 80, "hostPort": 8080}]


def _has_a_device(spec: Document, app: str, chance: Random) -> None:
    resources = spec["containers"][0]["resources"]
    resources["requests"]["example.com/device"] = "1"
    resources["limits"] = {"example.com/device": "1"}


def _needs_a_claim_that_is_not_there(spec: Document, app: str, chance: Random) -> None:
    spec["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": "missing"}}]


REQUIREMENTS = [
    _picks_a_disk,
    _picks_a_disk,
    _tolerates,
    _tolerates,
    _likes_or_needs_a_zone,
    _likes_or_needs_a_zone,
    _spreads,
    _spreads,
    _keeps_company,
    _keeps_company,
    _keeps_apart,
    _keeps_apart,
    _has_a_port,
    _has_a_device,
    _needs_a_claim_that_is_not_there,
]
