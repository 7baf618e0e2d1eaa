"""Clusters with a bit of everything, and cases in them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mooring_conformance.generate.affinity import a_pod_affinity
from mooring_conformance.generate.dice import GIB, MIB, Dice, Json, bytes_quantity, cpu_quantity, timestamp
from mooring_conformance.generate.node_rules import NODE_LABELS, a_node_affinity, a_toleration, some_taints
from mooring_conformance.generate.objects import (
    HOSTNAME,
    ZONE,
    a_case,
    a_container,
    a_namespace,
    a_node,
    a_pod,
    end_some,
    resized,
)
from mooring_conformance.generate.ports_and_images import IMAGES, as_reported, some_ports
from mooring_conformance.generate.preemption import a_budget, a_priority_class, some_nominated
from mooring_conformance.generate.spreading import a_constraint, a_selector, a_service, distinct, some_labels
from mooring_conformance.generate.storage import CAPACITY_DRIVER, CSI_DRIVER, Volumes, a_csi_node


def a_rich_cluster(dice: Dice, node_count: int, pod_count: int) -> tuple[list[Json], list[str], list[str], Volumes]:
    """Objects of a cluster with a bit of everything; its nodes, its zones, and what makes more volumes."""
    zones = [f"z{i}" for i in range(3)]
    objects = [
        a_namespace("default", {"team": "red"}),
        a_namespace("other", {"team": "blue"}),
        a_namespace("third"),
        a_namespace("kube-system"),
    ]
    objects += [a_priority_class("low", 5), a_priority_class("high", 100)]
    nodes, free = [], {}
    for i in range(node_count):
        lab = {k: dice.choice(v) for k, v in NODE_LABELS.items() if k != ZONE and dice.chance(0.6)}
        if dice.chance(0.85):
            lab["rack"] = f"r{dice.randrange(4)}"
        cpu = dice.choice([2000, 3920, 4000, 8000])
        imgs = [
            {"names": [as_reported(im)], "sizeBytes": dice.choice([23, 80, 350, 999]) * MIB}
            for im in IMAGES
            if dice.chance(0.25)
        ]
        t = some_taints(dice, dice.choice([1, 2])) if dice.chance(0.18) else None
        node_name = f"node-{i:02d}"
        extra = {"example.com/gpu": dice.choice([1, 2, 4])} if dice.chance(0.3) else None
        nodes.append(
            a_node(
                dice,
                node_name,
                cpu,
                dice.choice([4, 8, 16]) * GIB,
                dice.choice([110, 110, 110, 6]),
                labels=lab,
                zone=dice.choice(zones) if not dice.chance(0.05) else None,
                region="r1",
                taints=t,
                unschedulable=dice.chance(0.04),
                images=imgs,
                extra=extra,
                eph=dice.choice([None, 50 * GIB]),
            )
        )
        free[node_name] = cpu
    objects += nodes
    names = [n["metadata"]["name"] for n in nodes]
    for n in names:
        if dice.chance(0.85):
            objects.append(a_csi_node(n, [(CSI_DRIVER, dice.choice([1, 3, 10])), (CAPACITY_DRIVER, None)]))
    v = Volumes(dice, objects, names, zones)
    pods: list[Any] = []
    for k in range(pod_count):
        node_name = dice.choice(names)
        c = min(free[node_name], dice.choice([50, 100, 250, 500, 1000, 1500]))
        if free[node_name] <= 0:
            c = 0
        free[node_name] -= c
        ns = dice.choice(["default", "default", "other", "third"])
        ports = some_ports(dice, 1) if dice.chance(0.1) else None
        req = {"cpu": f"{c}m", "memory": f"{dice.choice([64, 128, 512])}Mi"} if c or dice.chance(0.5) else None
        spec: Json = {}
        if dice.chance(0.15):
            spec["affinity"] = a_pod_affinity(dice, [HOSTNAME, HOSTNAME, "rack", ZONE], 0.3, 0.4, 0.2, 0.4) or None
        if dice.chance(0.06):
            spec["volumes"] = [v.bound("v", ns, ["ReadWriteOnce"])]
        pod = a_pod(
            f"e{k:03d}",
            ns,
            some_labels(dice),
            [a_container("c", requests=req, ports=ports, image=dice.choice(IMAGES))],
            node=node_name,
            start=k * 11,
            priority=dice.choice([0, 0, 0, 5, 10, 100]),
            **spec,
        )
        if dice.chance(0.03):
            pod["metadata"]["deletionTimestamp"] = timestamp(9000)
            pod["metadata"]["deletionGracePeriodSeconds"] = 30
        if dice.chance(0.02):
            resized(dice, pod)
        pods.append(pod)
    end_some(dice, pods)
    if dice.chance(0.2):
        pods.append(
            a_pod(
                "orphan",
                labels=some_labels(dice),
                containers=[a_container("c", requests={"cpu": "1"})],
                node="node-gone",
                start=1,
            )
        )
    objects += pods
    for i in range(dice.choice([0, 1, 2, 3])):
        objects.append(
            a_budget(f"pdb{i}", dice.choice(["default", "other"]), a_selector(dice), dice.choice([0, 0, 1, 3]))
        )
    for i in range(dice.choice([0, 1, 2])):
        objects.append(a_service(f"svc{i}", "default", {"app": dice.choice(["a", "b", "c"])}))
    objects += some_nominated(dice, dice.choice([0, 0, 1, 2]), names)
    return objects, names, zones, v


def a_rich_pod(
    dice: Dice,
    names: list[str],
    zones: list[str],
    v: Volumes,
    busy: float = 0.4,
) -> Json:
    labels = some_labels(dice)
    spec: Json = {}
    aff: Json = {}
    if dice.chance(busy):
        a = a_node_affinity(dice, names, 0.3, 0.8)
        # mostly satisfiable
        if a.get("requiredDuringSchedulingIgnoredDuringExecution") and dice.chance(0.7):
            a["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"].append(
                {"matchExpressions": [{"key": ZONE, "operator": "In", "values": dice.sample(zones, 2)}]}
            )
        if a:
            aff["nodeAffinity"] = a
    if dice.chance(busy):
        aff.update(a_pod_affinity(dice, [HOSTNAME, ZONE, "rack"], 0.15, 0.7, 0.3, 0.7))
    if aff:
        spec["affinity"] = aff
    if dice.chance(busy):
        spec["topologySpreadConstraints"] = distinct(
            [
                a_constraint(dice, [ZONE, HOSTNAME, "rack"], labels.get("app", "a"), 0.4)
                for _ in range(dice.choice([1, 2]))
            ]
        )
    if dice.chance(0.15):
        spec["nodeSelector"] = (
            {"kubernetes.io/os": "linux"} if dice.chance(0.5) else {"disktype": dice.choice(["ssd", "hdd"])}
        )
    tols = [a_toleration(dice) for _ in range(dice.choice([0, 0, 1, 2, 3]))]
    uniq: list[Any] = []
    for t in tols:
        if t not in uniq:
            uniq.append(t)
    ports = some_ports(dice, dice.choice([1, 2])) if dice.chance(0.25) else None
    c = dice.choice([0, 50, 100, 250, 500, 1000, 2000, 4000])
    req = (
        {"cpu": cpu_quantity(dice, c), "memory": bytes_quantity(dice, dice.choice([64, 256, 1024]) * MIB)}
        if c
        else None
    )
    lim = {"example.com/gpu": str(dice.choice([1, 2]))} if dice.chance(0.12) else None
    if dice.chance(0.25):
        kinds: list[Callable[[str], Json]] = [v.bound, v.dynamic, v.local, v.capacity]
        spec["volumes"] = [dice.choice(kinds)("v0")]
    return a_pod(
        "incoming",
        "default",
        labels,
        [a_container("c", requests=req, limits=lim, ports=ports, image=dice.choice(IMAGES))],
        tolerations=uniq,
        priority=dice.choice([0, 0, 10, 100, 1000]),
        created=9500,
        **spec,
    )


def mixed_case(dice: Dice, name: str) -> Json:
    objects, names, zones, v = a_rich_cluster(dice, dice.randint(20, 60), dice.randint(50, 200))
    pod = a_rich_pod(dice, names, zones, v)
    return a_case(name, objects, pod)
