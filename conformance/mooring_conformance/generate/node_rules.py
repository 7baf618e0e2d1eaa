"""Cases about node affinity and taints."""

from __future__ import annotations

from typing import Any

from mooring_conformance.generate.dice import GIB, Dice, Json, timestamp
from mooring_conformance.generate.objects import (
    HOSTNAME,
    UNSCHEDULABLE_TAINT,
    ZONE,
    a_case,
    a_config,
    a_container,
    a_namespace,
    a_node,
    a_pod,
)

NODE_LABELS = {
    ZONE: ["z0", "z1", "z2"],
    "disktype": ["ssd", "hdd", "nvme"],
    "gpu-count": ["0", "1", "2", "4", "8", "16", "1", "2", "many", "007", "1.5"],
    "example.com/tier": ["gold", "silver", "bronze", ""],
    "example.com/rack": ["1", "2", "3", "10"],
}


def a_requirement(dice: Dice) -> Json:
    k = dice.choice([*list(NODE_LABELS), "kubernetes.io/arch", "missing-key"])
    vals = NODE_LABELS.get(k, ["amd64", "arm64"])
    op = dice.choice(["In", "In", "In", "NotIn", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"])
    if op in ("Gt", "Lt"):
        k = dice.choice(["gpu-count", "gpu-count", "example.com/rack", "disktype"])
        return {"key": k, "operator": op, "values": [dice.choice(["0", "1", "2", "4", "8", "3", "003"])]}
    e: Json = {"key": k, "operator": op}
    if op in ("In", "NotIn"):
        e["values"] = dice.sample(vals, dice.randint(1, min(3, len(vals))))
        if dice.chance(0.1):
            e["values"].append("nowhere")
    return e


def a_node_term(dice: Dice, nodes: list[str], allow_empty: bool = True) -> Json:
    t: Json = {}
    n = dice.choice([0, 1, 1, 1, 2, 3]) if allow_empty else dice.choice([1, 1, 2])
    if n:
        t["matchExpressions"] = [a_requirement(dice) for _ in range(n)]
    if dice.chance(0.25) or (not n and dice.chance(0.7)):
        t["matchFields"] = [
            {
                "key": "metadata.name",
                "operator": dice.choice(["In", "In", "NotIn"]),
                "values": [dice.choice([*nodes, "no-such-node"])],
            }
        ]
    return t


def a_node_affinity(dice: Dice, nodes: list[str], required: float = 0.6, preferred: float = 0.6) -> Json:
    a: Json = {}
    if dice.chance(required):
        a["requiredDuringSchedulingIgnoredDuringExecution"] = {
            "nodeSelectorTerms": [a_node_term(dice, nodes) for _ in range(dice.choice([1, 1, 2, 3]))]
        }
    if dice.chance(preferred):
        a["preferredDuringSchedulingIgnoredDuringExecution"] = [
            {"weight": dice.choice([1, 5, 10, 50, 100, dice.randint(1, 100)]), "preference": a_node_term(dice, nodes)}
            for _ in range(dice.choice([1, 2, 3, 4]))
        ]
    return a


def labelled_nodes(dice: Dice, node_count: int) -> list[Json]:
    out: list[Any] = []
    for i in range(node_count):
        lab = {k: dice.choice(v) for k, v in NODE_LABELS.items() if k != ZONE and dice.chance(0.75)}
        z = dice.choice(NODE_LABELS[ZONE]) if dice.chance(0.85) else None
        out.append(
            a_node(
                dice,
                f"node-{i:02d}",
                dice.choice([2000, 4000, 8000]),
                dice.choice([4, 8, 16]) * GIB,
                labels=lab,
                zone=z,
                odd=0,
            )
        )
    return out


def nodeaffinity_case(dice: Dice, name: str) -> Json:
    node_count = dice.randint(3, 20)
    nodes = labelled_nodes(dice, node_count)
    names = [n["metadata"]["name"] for n in nodes]
    spec: Json = {}
    if dice.chance(0.35):
        n = dice.choice(nodes)
        ks = [k for k in n["metadata"]["labels"] if k != HOSTNAME]
        spec["nodeSelector"] = {
            k: n["metadata"]["labels"][k] for k in dice.sample(ks, min(len(ks), dice.randint(1, 2)))
        }
        if dice.chance(0.1):
            spec["nodeSelector"]["missing-key"] = "x"
    a = a_node_affinity(dice, names, 0.65, 0.65)
    if a:
        spec["affinity"] = {"nodeAffinity": a}
    elif dice.chance(0.3):
        spec["affinity"] = {"nodeAffinity": {}}
    pod = a_pod("incoming", containers=[a_container("c", requests={"cpu": "100m", "memory": "128Mi"})], **spec)
    config = None
    if dice.chance(0.3):
        added = a_node_affinity(dice, names, 0.6, 0.7)
        if added:
            # A required term without anything is refused in the arguments only if empty as a whole.
            req = added.get("requiredDuringSchedulingIgnoredDuringExecution")
            if req:
                req["nodeSelectorTerms"] = [a_node_term(dice, names, False) for _ in req["nodeSelectorTerms"]]
            config = a_config([("NodeAffinity", {"addedAffinity": added})])
    objects = [a_namespace("default"), *nodes]
    for i in range(dice.choice([0, 0, 3, 6])):
        objects.append(
            a_pod(
                f"e{i}",
                containers=[a_container("c", requests={"cpu": f"{dice.choice([100, 500])}m"})],
                node=dice.choice(names),
                start=i,
            )
        )
    return a_case(name, objects, pod, config)


TAINT_KEYS = ["dedicated", "gpu", "maintenance", "node.kubernetes.io/not-ready", "node.kubernetes.io/disk-pressure"]


TAINT_VALUES = ["", "true", "a", "b"]


EFFECTS = ["NoSchedule", "PreferNoSchedule", "NoExecute"]


def some_taints(dice: Dice, n: int, numeric: bool = False) -> list[Json]:
    out, seen = [], set()
    for _ in range(n):
        k, e = dice.choice(TAINT_KEYS), dice.choice(EFFECTS)
        if (k, e) in seen:
            continue
        seen.add((k, e))
        t: Json = {"key": k, "effect": e}
        v = dice.choice(TAINT_VALUES)
        if numeric:
            v = dice.choice(["1", "5", "10", "950", "x"])
        if v:
            t["value"] = v
        if e == "NoExecute":
            t["timeAdded"] = timestamp(100)
        out.append(t)
    return out


def a_toleration(dice: Dice, numeric: bool = False) -> Json:
    t: Json = {}
    roll = dice.random()
    if roll < 0.07:
        t["operator"] = "Exists"  # an empty key tolerates everything
    elif roll < 0.45:
        t.update(key=dice.choice(TAINT_KEYS), operator="Exists")
    else:
        t.update(key=dice.choice(TAINT_KEYS), operator="Equal")
        v = dice.choice(TAINT_VALUES)
        if numeric:
            t["operator"] = dice.choice(["Lt", "Gt", "Equal"])
            v = dice.choice(["1", "5", "9", "950"])
        if v:
            t["value"] = v
    if dice.chance(0.7):
        t["effect"] = dice.choice(EFFECTS)
        if t["effect"] == "NoExecute" and dice.chance(0.5):
            t["tolerationSeconds"] = dice.choice([0, 60, 3600])
    return t


def tolerations_for(dice: Dice, taints: list[Json]) -> list[Json]:
    """Tolerations for (most of) these taints."""
    out: list[Any] = []
    for t in taints:
        x: Json = {"key": t["key"]}
        if dice.chance(0.5):
            x["operator"] = "Exists"
        else:
            x["operator"] = "Equal"
            if t.get("value"):
                x["value"] = t["value"]
        if dice.chance(0.6):
            x["effect"] = t["effect"]
        out.append(x)
    if out and dice.chance(0.2):
        out.pop(dice.randrange(len(out)))
    return out


def taints_case(dice: Dice, name: str) -> Json:
    node_count = dice.randint(3, 20)
    numeric = dice.chance(0.06)
    hard = dice.chance(0.6)
    if hard:
        node_count = dice.randint(3, 8)
    names, objects, tl = [], [a_namespace("default")], []
    for i in range(node_count):
        t = some_taints(dice, dice.choice([0, 1, 1, 2, 3, 4] if not hard else [1, 2, 3, 4]), numeric)
        unsched = dice.chance(0.12)
        if unsched and dice.chance(0.7):
            t.append({"key": UNSCHEDULABLE_TAINT, "effect": "NoSchedule", "timeAdded": timestamp(50)})
        tl.append(t)
        names.append(f"node-{i:02d}")
        objects.append(a_node(dice, names[-1], taints=t, unschedulable=unsched, odd=0))
    tols: list[Any] = []
    if dice.chance(0.6 if hard else 0.75):
        for t in dice.sample(tl, min(len(tl), dice.choice([1, 2, 3]) if not hard else 1)):
            tols += tolerations_for(dice, t)
    tols += [a_toleration(dice, numeric) for _ in range(dice.choice([0, 0, 1, 2, 3]))]
    if dice.chance(0.2):
        tols.append(
            dice.choice(
                [
                    {"key": UNSCHEDULABLE_TAINT, "operator": "Exists", "effect": "NoSchedule"},
                    {"key": UNSCHEDULABLE_TAINT, "operator": "Exists"},
                    {"key": UNSCHEDULABLE_TAINT, "operator": "Exists", "effect": "PreferNoSchedule"},
                ]
            )
        )
    uniq: list[Any] = []
    for t in tols:
        if t not in uniq:
            uniq.append(t)
    pod = a_pod(
        "incoming",
        containers=[a_container("c", requests={"cpu": "100m"})],
        tolerations=uniq,
        default_tols=dice.chance(0.7),
    )
    for i in range(dice.choice([0, 2, 5])):
        objects.append(
            a_pod(
                f"e{i}",
                containers=[a_container("c", requests={"cpu": "500m"})],
                node=dice.choice(names),
                start=i,
                tolerations=[{"operator": "Exists"}],
            )
        )
    return a_case(name, objects, pod, None, {"TaintTolerationComparisonOperators": True} if numeric else None)
