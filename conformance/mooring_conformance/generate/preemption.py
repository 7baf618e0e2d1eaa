"""Cases where pods must go to make room."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mooring_conformance.generate.dice import GIB, Dice, Json, timestamp
from mooring_conformance.generate.objects import (
    HOSTNAME,
    ZONE,
    a_case,
    a_config,
    a_container,
    a_namespace,
    a_node,
    a_pod,
    an_object,
    nominated,
)
from mooring_conformance.generate.spreading import a_selector, some_labels


def a_budget(name: str, ns: str, sel: Any, allowed: int, disrupted: Sequence[str] | None = None) -> Json:
    o = an_object("policy/v1", "PodDisruptionBudget", name, ns)
    o["spec"] = {"minAvailable": 1}
    if sel is not None:
        o["spec"]["selector"] = sel
    o["status"] = {
        "disruptionsAllowed": allowed,
        "currentHealthy": 3,
        "desiredHealthy": 1,
        "expectedPods": 3,
        "observedGeneration": 1,
    }
    if disrupted:
        o["status"]["disruptedPods"] = {d: timestamp(9000) for d in disrupted}
    return o


def a_priority_class(name: str, value: int, policy: str = "PreemptLowerPriority") -> Json:
    o = an_object("scheduling.k8s.io/v1", "PriorityClass", name)
    o["value"] = value
    o["preemptionPolicy"] = policy
    return o


def some_nominated(dice: Dice, count: int, nodes: Sequence[str]) -> list[Json]:
    """Pods that wait for a node of these to become free for them."""
    return [
        nominated(
            a_pod(
                f"nom{i}",
                labels=some_labels(dice),
                containers=[a_container("c", requests={"cpu": f"{dice.choice([250, 500, 1000])}m"})],
                priority=dice.choice([0, 10, 100, 1000]),
                schedulerName=dice.choice(["default-scheduler"] * 6 + ["other-scheduler"]),
            ),
            dice.choice(nodes),
        )
        for i in range(count)
    ]


NO_SELECTOR: list[Any] = [None, {}]
PRIORITIES = [-100, 0, 0, 0, 5, 10, 10, 50, 100]


def preemption_case(dice: Dice, name: str) -> Json:
    node_count = dice.randint(3, 12)
    objects = [a_namespace("default", {"team": "red"}), a_namespace("other", {"team": "blue"})]
    objects += [a_priority_class("low", 5), a_priority_class("high", 100)]
    nodes, pods, free = [], [], {}
    uniform = dice.chance(0.5)
    for i in range(node_count):
        cpu = 4000 if uniform else dice.choice([2000, 4000, 8000])
        t = [{"key": "dedicated", "value": "x", "effect": "NoSchedule"}] if dice.chance(0.1) else None
        n = a_node(
            dice,
            f"node-{i:02d}",
            cpu,
            8 * GIB,
            dice.choice([110, 110, 110, 5]),
            taints=t,
            odd=0,
            zone=f"z{i % 3}",
            labels={"pool": dice.choice(["p1", "p2"])},
            unschedulable=dice.chance(0.05),
        )
        nodes.append(n)
        free[n["metadata"]["name"]] = cpu
    k = 0
    need = dice.choice([500, 1000, 1000, 1500, 2000, 3000, 4000])
    mode = dice.choice(["cpu", "cpu", "cpu", "cpu", "ports", "anti", "spread", "mixed"])
    ties = dice.chance(0.3)
    for n in nodes:
        node_name = n["metadata"]["name"]
        limit = int(n["status"]["allocatable"]["pods"])
        starts = dice.sample(range(40), 20)
        j = 0
        fill = dice.choice([0.7, 0.9, 1.0, 1.0])
        total = free[node_name]
        while j < min(limit, 8) and free[node_name] > total * (1 - fill) and free[node_name] > 0:
            c = dice.choice([100, 250, 500, 500, 1000, 1000, 2000])
            c = min(c, free[node_name])
            free[node_name] -= c
            pr = dice.choice(PRIORITIES) if not ties else dice.choice([0, 10])
            lab = some_labels(dice)
            ports = (
                [{"containerPort": 80, "hostPort": 80, "protocol": "TCP"}]
                if mode in ("ports", "mixed") and dice.chance(0.3)
                else None
            )
            pod = a_pod(
                f"e{k:03d}",
                dice.choice(["default", "default", "other"]),
                lab,
                [a_container("c", requests={"cpu": f"{c}m", "memory": "64Mi"}, ports=ports)],
                node=node_name,
                start=(starts[j] if not ties else starts[j] // 2 * 2) * 60,
                priority=pr,
            )
            if ties:
                pod["status"]["startTime"] = timestamp(j * 60)
            if pr == 5:
                pod["spec"]["priorityClassName"] = "low"
            if dice.chance(0.06):
                pod["metadata"]["deletionTimestamp"] = timestamp(9000)
                pod["metadata"]["deletionGracePeriodSeconds"] = 30
                if dice.chance(0.6):
                    pod["status"]["conditions"] = [
                        {
                            "type": "DisruptionTarget",
                            "status": "True",
                            "reason": "PreemptionByScheduler",
                            "message": "default-scheduler: preempting to accommodate a higher priority pod",
                            "lastTransitionTime": timestamp(8000),
                        }
                    ]
            if mode in ("anti", "mixed") and dice.chance(0.15):
                pod["spec"]["affinity"] = {
                    "podAntiAffinity": {
                        "requiredDuringSchedulingIgnoredDuringExecution": [
                            {
                                "topologyKey": dice.choice([HOSTNAME, ZONE]),
                                "labelSelector": {"matchLabels": {"app": dice.choice(["a", "b"])}},
                            }
                        ]
                    }
                }
            pods.append(pod)
            k += 1
            j += 1
    for i in range(dice.choice([0, 1, 1, 2, 3])):
        sel = a_selector(dice)
        if dice.chance(0.1):
            sel = dice.choice(NO_SELECTOR)
        objects.append(
            a_budget(
                f"pdb{i}",
                dice.choice(["default", "default", "other"]),
                sel,
                dice.choice([0, 0, 1, 2]),
                [dice.choice(pods)["metadata"]["name"]] if pods and dice.chance(0.2) else None,
            )
        )
    names = [n["metadata"]["name"] for n in nodes]
    nominated_pods = some_nominated(dice, dice.choice([0, 0, 0, 1, 2]), names)
    spec: Json = {}
    labels = some_labels(dice)
    prio = dice.choice([0, 10, 50, 100, 100, 1000, 1000])
    cport = None
    if mode in ("ports", "mixed") and dice.chance(0.8):
        cport = [{"containerPort": 80, "hostPort": 80, "protocol": "TCP"}]
        need = dice.choice([100, need])
    if mode in ("anti", "mixed") and dice.chance(0.7):
        spec["affinity"] = {
            "podAntiAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": [
                    {
                        "topologyKey": dice.choice([HOSTNAME, HOSTNAME, ZONE]),
                        "labelSelector": {"matchLabels": {"app": dice.choice(["a", "b"])}},
                    }
                ]
            }
        }
        need = dice.choice([100, need])
    if mode in ("spread", "mixed") and dice.chance(0.7):
        spec["topologySpreadConstraints"] = [
            {
                "maxSkew": 1,
                "topologyKey": dice.choice([ZONE, HOSTNAME]),
                "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": {"matchLabels": {"app": dice.choice(["a", "b"])}},
            }
        ]
    if dice.chance(0.15):
        spec["nodeSelector"] = {"pool": dice.choice(["p1", "p2"])}
    pod = a_pod(
        "incoming",
        labels=labels,
        containers=[a_container("c", requests={"cpu": f"{need}m", "memory": "64Mi"}, ports=cport)],
        priority=prio,
        created=9500,
        **spec,
    )
    if prio == 100 and dice.chance(0.5):
        pod["spec"]["priorityClassName"] = "high"
    if dice.chance(0.07):
        pod["spec"]["preemptionPolicy"] = "Never"
    if dice.chance(0.15):
        nominated(pod, dice.choice(names))
    config = None
    if dice.chance(0.2):
        config = a_config(
            [
                (
                    "DefaultPreemption",
                    {"minCandidateNodesPercentage": 100, "minCandidateNodesAbsolute": dice.choice([1, 100])},
                )
            ]
        )
    return a_case(name, objects + nodes + pods + nominated_pods, pod, config)
