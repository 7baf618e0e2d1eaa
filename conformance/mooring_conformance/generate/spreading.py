"""Cases about topology spread, with the workloads and services that default constraints come from."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from mooring_conformance.generate.dice import GIB, Dice, Json, timestamp
from mooring_conformance.generate.node_rules import EFFECTS
from mooring_conformance.generate.objects import (
    HOSTNAME,
    REGION,
    ZONE,
    a_case,
    a_config,
    a_container,
    a_namespace,
    a_node,
    a_pod,
    an_object,
    end_some,
)


def a_selector(dice: Dice, apps: Sequence[str] = ("a", "b", "c"), allow_empty: bool = True) -> Json:
    roll = dice.random()
    if roll < 0.55:
        return {"matchLabels": {"app": dice.choice(apps)}}
    if roll < 0.65:
        return {"matchLabels": {"app": dice.choice(apps), "tier": dice.choice(["x", "y"])}}
    if roll < 0.8:
        return {
            "matchExpressions": [
                {
                    "key": "app",
                    "operator": dice.choice(["In", "NotIn"]),
                    "values": dice.sample(list(apps), dice.randint(1, 2)),
                }
            ]
        }
    if roll < 0.88:
        return {
            "matchExpressions": [
                {"key": dice.choice(["tier", "app", "missing"]), "operator": dice.choice(["Exists", "DoesNotExist"])}
            ]
        }
    if roll < 0.94 and allow_empty:
        return {}
    return {
        "matchLabels": {"app": dice.choice(apps)},
        "matchExpressions": [{"key": "tier", "operator": "In", "values": ["x", "y"]}],
    }


def some_labels(dice: Dice, apps: Sequence[str] = ("a", "b", "c")) -> Json:
    lab: Json = {}
    if dice.chance(0.92):
        lab["app"] = dice.choice(apps)
    if dice.chance(0.6):
        lab["tier"] = dice.choice(["x", "y"])
    if dice.chance(0.6):
        lab["pod-template-hash"] = dice.choice(["h1", "h2"])
    return lab


def a_constraint(dice: Dice, keys: Sequence[str], own_app: str, hard: float = 0.55) -> Json:
    c: Json = {
        "maxSkew": dice.choice([1, 1, 1, 2, 3, 5]),
        "topologyKey": dice.choice(keys),
        "whenUnsatisfiable": "DoNotSchedule" if dice.chance(hard) else "ScheduleAnyway",
    }
    roll = dice.random()
    if roll < 0.6:
        c["labelSelector"] = {"matchLabels": {"app": own_app}}
    elif roll < 0.95:
        c["labelSelector"] = a_selector(dice)
    if c["whenUnsatisfiable"] == "DoNotSchedule" and dice.chance(0.3):
        c["minDomains"] = dice.randint(1, 6)
    if dice.chance(0.2) and "labelSelector" in c:
        used = json.dumps(c["labelSelector"])
        ks = [k for k in ("pod-template-hash", "tier") if f'"{k}"' not in used]
        if ks:
            c["matchLabelKeys"] = dice.sample(ks, dice.randint(1, len(ks)))
    if dice.chance(0.3):
        c["nodeAffinityPolicy"] = dice.choice(["Honor", "Ignore"])
    if dice.chance(0.3):
        c["nodeTaintsPolicy"] = dice.choice(["Honor", "Ignore"])
    return c


def distinct(cs: list[Json]) -> list[Json]:
    out, seen = [], set()
    for c in cs:
        k = (c["topologyKey"], c["whenUnsatisfiable"])
        if k in seen:
            continue
        seen.add(k)
        out.append(c)
    return out


def nodes_in_zones(
    dice: Dice,
    node_count: int,
    zones: int = 3,
    taint: float = 0.1,
    miss: float = 0.12,
    cpu: int = 8000,
    racks: bool = True,
    uns: float = 0.05,
) -> list[Json]:
    out: list[Any] = []
    for i in range(node_count):
        lab: Json = {}
        if racks and dice.chance(0.85):
            lab["rack"] = f"r{dice.randrange(4)}"
        if dice.chance(0.5):
            lab["pool"] = dice.choice(["p1", "p2"])
        t = [{"key": "dedicated", "value": "x", "effect": dice.choice(EFFECTS)}] if dice.chance(taint) else None
        out.append(
            a_node(
                dice,
                f"node-{i:02d}",
                dice.choice([cpu, cpu, cpu // 2]),
                16 * GIB,
                labels=lab,
                taints=t,
                odd=0,
                zone=f"z{dice.randrange(zones)}" if not dice.chance(miss) else None,
                region="r1" if dice.chance(0.8) else "r2",
                hostname=not dice.chance(0.05),
                unschedulable=dice.chance(uns),
            )
        )
    return out


def running_pods(
    dice: Dice,
    nodes: list[Json],
    count: int,
    namespaces: Sequence[str] = ("default",),
    term: float = 0.05,
    prio: Sequence[int] = (0,),
    req: Sequence[int] = (50, 100, 200),
    apps: Sequence[str] = ("a", "b", "c"),
    prefix: str = "e",
) -> list[Json]:
    out: list[Any] = []
    names = [n["metadata"]["name"] for n in nodes]
    # skewed: some nodes get many
    weights = [dice.choice([1, 1, 3, 6, 0.3]) for _ in names]
    for i in range(count):
        pod = a_pod(
            f"{prefix}{i:03d}",
            dice.choice(namespaces),
            some_labels(dice, apps),
            [a_container("c", requests={"cpu": f"{dice.choice(req)}m"})],
            node=dice.choices(names, weights)[0],
            start=i * 3,
            priority=dice.choice(prio),
        )
        if dice.chance(term):
            pod["metadata"]["deletionTimestamp"] = timestamp(9000)
            pod["metadata"]["deletionGracePeriodSeconds"] = 30
        out.append(pod)
    end_some(dice, out)
    return out


def owned_by(o: Json, controller: bool = True) -> Json:
    return {
        "apiVersion": o["apiVersion"],
        "kind": o["kind"],
        "name": o["metadata"]["name"],
        "uid": o["metadata"]["uid"],
        "controller": controller,
        "blockOwnerDeletion": True,
    }


def a_service(name: str, ns: str, sel: Any) -> Json:
    o = an_object("v1", "Service", name, ns)
    o["spec"] = {
        "ports": [{"port": 80, "protocol": "TCP", "targetPort": 80}],
        "selector": sel,
        "type": "ClusterIP",
        "sessionAffinity": "None",
        "clusterIP": "None",
        "clusterIPs": ["None"],
        "ipFamilies": ["IPv4"],
        "ipFamilyPolicy": "SingleStack",
        "internalTrafficPolicy": "Cluster",
    }
    o["status"] = {"loadBalancer": {}}
    return o


def a_pod_template(labels: Json) -> Json:
    return {
        "metadata": {"labels": labels},
        "spec": {
            "containers": [a_container("c")],
            "restartPolicy": "Always",
            "terminationGracePeriodSeconds": 30,
            "dnsPolicy": "ClusterFirst",
            "securityContext": {},
            "schedulerName": "default-scheduler",
        },
    }


def a_workload(dice: Dice, kind: str, name: str, ns: str, labels: Json) -> Json:
    if kind == "ReplicationController":
        o = an_object("v1", kind, name, ns, labels)
        o["spec"] = {"replicas": 3, "selector": labels, "template": a_pod_template(labels)}
        o["status"] = {"replicas": 3}
    elif kind == "ReplicaSet":
        o = an_object("apps/v1", kind, name, ns, labels)
        o["spec"] = {"replicas": 3, "selector": {"matchLabels": labels}, "template": a_pod_template(labels)}
        if dice.chance(0.2) and "tier" in labels:
            o["spec"]["selector"] = {
                "matchLabels": {k: v for k, v in labels.items() if k != "tier"},
                "matchExpressions": [{"key": "tier", "operator": "In", "values": ["x", "y"]}],
            }
        o["status"] = {"replicas": 3}
    else:
        o = an_object("apps/v1", "StatefulSet", name, ns, labels)
        o["spec"] = {
            "replicas": 3,
            "serviceName": "svc",
            "selector": {"matchLabels": labels},
            "template": a_pod_template(labels),
            "podManagementPolicy": "OrderedReady",
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}},
            "revisionHistoryLimit": 10,
            "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Retain", "whenScaled": "Retain"},
        }
        o["status"] = {"replicas": 3}
    return o


def topologyspread_case(dice: Dice, name: str) -> Json:
    node_count = dice.choice([dice.randint(3, 8), dice.randint(3, 24)])
    nodes = nodes_in_zones(
        dice, node_count, zones=dice.choice([2, 3, 4]), taint=dice.choice([0, 0.15]), miss=dice.choice([0, 0, 0.15])
    )
    namespaces = ("default", "default", "default", "other")
    objects = [a_namespace("default"), a_namespace("other"), *nodes]
    objects += running_pods(
        dice, nodes, dice.choice([0, 3, 8, 15, 30, 60] if node_count > 8 else [0, 2, 5, 10, 20]), namespaces
    )
    keys = dice.choice(
        [[ZONE], [ZONE, HOSTNAME], [ZONE, HOSTNAME, "rack"], [HOSTNAME], [ZONE, "rack", REGION, "missing-topology"]]
    )
    own = dice.choice(["a", "b"])
    labels: Json = {**some_labels(dice), "app": own if dice.chance(0.85) else dice.choice(["a", "b", "c"])}
    spec: Json = {}
    config = None
    defaults = dice.chance(0.25)
    if not defaults:
        spec["topologySpreadConstraints"] = distinct(
            [
                a_constraint(dice, keys, own, dice.choice([0, 0, 0.5, 0.5, 1, 1]))
                for _ in range(dice.choice([1, 2, 2, 3]))
            ]
        )
    if dice.chance(0.1):
        spec["nodeSelector"] = {"pool": dice.choice(["p1", "p2"])}
    elif dice.chance(0.12):
        spec["affinity"] = {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [
                        {
                            "matchExpressions": [
                                {"key": ZONE, "operator": dice.choice(["In", "NotIn"]), "values": ["z0"]}
                            ]
                        }
                    ]
                }
            }
        }
    tols = [{"key": "dedicated", "operator": "Exists"}] if dice.chance(0.3) else None
    pod = a_pod(
        "incoming", containers=[a_container("c", requests={"cpu": "100m"})], labels=labels, tolerations=tols, **spec
    )
    if defaults or dice.chance(0.2):
        for i in range(dice.choice([1, 1, 2])):
            sel = {k: labels[k] for k in dice.sample(sorted(labels), dice.randint(1, len(labels)))}
            objects.append(a_service(f"svc{i}", dice.choice(["default", "default", "default", "other"]), sel))
        if dice.chance(0.6):
            w = a_workload(
                dice,
                dice.choice(["ReplicaSet", "ReplicaSet", "StatefulSet", "ReplicationController"]),
                "owner",
                "default",
                {k: v for k, v in labels.items() if k != "tier" or dice.chance(0.5)},
            )
            objects.append(w)
            if dice.chance(0.85):
                pod["metadata"]["ownerReferences"] = [owned_by(w)]
        roll = dice.random()
        if roll < 0.5:
            cs: list[Any] = []
            for _ in range(dice.choice([0, 1, 2, 3])):
                c: Json = {
                    "maxSkew": dice.choice([1, 2, 3]),
                    "topologyKey": dice.choice(keys),
                    "whenUnsatisfiable": dice.choice(["DoNotSchedule", "ScheduleAnyway"]),
                }
                cs.append(c)
            config = a_config([("PodTopologySpread", {"defaultingType": "List", "defaultConstraints": distinct(cs)})])
        elif roll < 0.6:
            config = a_config([("PodTopologySpread", {"defaultingType": "System"})])
    return a_case(name, objects, pod, config)
