"""Cases about what fits and how full nodes get."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mooring_conformance.generate.dice import GIB, MIB, Dice, Json
from mooring_conformance.generate.objects import a_case, a_config, a_namespace, a_node, end_some, resized
from mooring_conformance.generate.requesting import a_pod_requesting, effective_requests, without_note, without_notes

EXTENDED_RESOURCES = ["example.com/gpu", "example.com/fpga", "vendor.io/nic"]


def a_scoring_strategy(dice: Dice, extra: Sequence[str] = ()) -> Json:
    names = (
        ["cpu", "memory"] + (["ephemeral-storage"] if dice.chance(0.3) else []) + [e for e in extra if dice.chance(0.5)]
    )
    dice.shuffle(names)
    res: list[Any] = []
    for n in names[: dice.randint(1, len(names))]:
        e: Json = {"name": n}
        if dice.chance(0.85):
            e["weight"] = dice.choice([1, 1, 2, 3, 5, 10, 100])
        res.append(e)
    t = dice.choice(["LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"])
    s: Json = {"type": t}
    if dice.chance(0.85):
        s["resources"] = res
    if t == "RequestedToCapacityRatio":
        pts = sorted(dice.sample(range(101), dice.randint(1, 4)))
        if dice.chance(0.6):
            pts = sorted({0, *pts, 100})
        shape = [{"utilization": u, "score": dice.randint(0, 10)} for u in pts]
        if dice.chance(0.3):
            shape = dice.choice(
                [
                    [{"utilization": 0, "score": 0}, {"utilization": 100, "score": 10}],
                    [{"utilization": 0, "score": 10}, {"utilization": 100, "score": 0}],
                    [
                        {"utilization": 0, "score": 0},
                        {"utilization": 50, "score": 10},
                        {"utilization": 100, "score": 0},
                    ],
                ]
            )
        s["requestedToCapacityRatio"] = {"shape": shape}
    return s


def balanced_arguments(dice: Dice, extra: Sequence[str] = ()) -> Json:
    names = (
        ["cpu", "memory"] + (["ephemeral-storage"] if dice.chance(0.3) else []) + [e for e in extra if dice.chance(0.4)]
    )
    return {"resources": [{"name": n, "weight": 1} for n in dice.sample(names, dice.randint(1, len(names)))]}


def resources_case(dice: Dice, name: str) -> Json:
    node_count = dice.randint(3, 12)
    use_ext = [e for e in EXTENDED_RESOURCES if dice.chance(0.4)]
    huge = [h for h in ("hugepages-2Mi", "hugepages-1Gi") if dice.chance(0.15)]
    use_eph = dice.chance(0.4)
    big = dice.choice([1, 1, 1, 4])
    alike = dice.chance(0.55)
    objects, free, names = [a_namespace("default")], {}, []
    for i in range(node_count):
        cpu = dice.choice([500, 1000, 1930, 2000, 3920, 4000, 8000] if not alike else [3920, 4000, 4000, 8000]) * big
        mem = (
            dice.choice(
                [512 * MIB, GIB, 2 * GIB, 3 * GIB + 512 * MIB, 4 * GIB, 8 * GIB, 4 * 10**9, 7954829312]
                if not alike
                else [4 * GIB, 8 * GIB, 7954829312]
            )
            * big
        )
        extra = {e: dice.choice([0, 1, 2, 4, 8]) for e in use_ext if dice.chance(0.8)}
        for h in huge:
            if dice.chance(0.8):
                extra[h] = (2 * MIB if h == "hugepages-2Mi" else GIB) * dice.choice([0, 1, 2, 8])
        pods = dice.choice([2, 3, 4, 5, 110, 110, 110, 250] if not alike else [5, 110, 110, 250])
        eph = dice.choice([GIB, 10 * GIB, 50 * 10**9]) if use_eph else None
        node_name = f"node-{i:02d}"
        objects.append(a_node(dice, node_name, cpu, mem, pods, extra=extra, eph=eph, zone=f"z{i % 3}"))
        if dice.chance(0.02):
            for part in ("allocatable", "capacity"):  # a node that has just joined
                del objects[-1]["status"][part]
        elif dice.chance(0.02):
            objects[-1]["status"]["allocatable"].pop(dice.choice(["cpu", "memory", "pods"]))
        free[node_name] = {"cpu": cpu, "memory": mem, "pods": pods, **extra}
        if use_eph:
            free[node_name]["ephemeral-storage"] = eph or 0
        names.append(node_name)
    k = 0
    for node_name in names:
        for _ in range(dice.choice([0, 0, 1, 1, 2, 3, 5])):
            if free[node_name]["pods"] <= 0:
                break
            frac = dice.choice([0, 0.1, 0.25, 0.5])
            want: Json = {}
            for res, v in free[node_name].items():
                if res == "pods" or v <= 0 or dice.chance(0.25):
                    continue
                x = int(v * frac)
                if res == "memory" and dice.chance(0.8):
                    x = x // MIB * MIB
                if res == "cpu" and dice.chance(0.6):
                    x = x // 50 * 50
                if res.startswith("hugepages-"):
                    unit = 2 * MIB if res == "hugepages-2Mi" else GIB
                    x = x // unit * unit
                    if not want.get("cpu"):
                        continue
                if x or res in ("cpu", "memory"):
                    want[res] = x
            if dice.chance(0.03):
                want = {k2: v * 4 for k2, v in want.items()}  # more than there is
            pod = a_pod_requesting(dice, f"e{k:03d}", want, fancy=0.4, node=node_name, start=k * 7)
            k += 1
            objects.append(pod)
            if dice.chance(0.04):
                end_some(dice, [pod], 1)
                continue
            if dice.chance(0.08):
                resized(dice, pod)
            for res, v in effective_requests(pod).items():
                free[node_name][res] = free[node_name].get(res, 0) - v
            free[node_name]["pods"] -= 1
    # The incoming pod: near the border of some node.
    node_name = dice.choice(names)
    want = {}
    style = dice.random()
    for res in ("cpu", "memory") + (("ephemeral-storage",) if use_eph and dice.chance(0.6) else ()):
        f = max(0, free[node_name].get(res, 0))
        if style < 0.12:
            if dice.chance(0.5):
                want[res] = 0
        elif style < 0.52:
            want[res] = dice.choice([f, f, max(0, f - 1), f + 1, f // 2, f // 4])
        elif style < 0.95:
            want[res] = int(f * dice.choice([0.05, 0.1, 0.3, 0.6, 0.9]))
            if res != "cpu":
                want[res] = want[res] // MIB * MIB
        else:
            want[res] = f * 3 + 1
    for e in use_ext:
        if dice.chance(0.4):
            want[e] = max(0, free[node_name].get(e, 1)) + dice.choice([0, 0, 0, 1])
            if not want[e]:
                want[e] = dice.choice([0, 1])
    for h in huge:
        if dice.chance(0.5) and want.get("cpu", 0) > 0:
            want[h] = (2 * MIB if h == "hugepages-2Mi" else GIB) * dice.choice([1, 2, 8])
    pod = a_pod_requesting(dice, "incoming", want, fancy=0.7, limits=0.3, priority=dice.choice([0, 0, 0, 0, 10]))
    config = None
    if dice.chance(0.65):
        arguments: list[Any] = []
        if dice.chance(0.8):
            a: Json = {}
            if dice.chance(0.9):
                a["scoringStrategy"] = a_scoring_strategy(dice, use_ext + huge)
            if use_ext and dice.chance(0.25):
                a["ignoredResources"] = [dice.choice(use_ext)]
            if use_ext and dice.chance(0.15):
                a["ignoredResourceGroups"] = [dice.choice(["example.com", "vendor.io"])]
            arguments.append(("NodeResourcesFit", a))
        if dice.chance(0.5):
            arguments.append(("NodeResourcesBalancedAllocation", balanced_arguments(dice, use_ext)))
        config = a_config(arguments)
    return a_case(name, without_notes(objects), without_note(pod), config)
