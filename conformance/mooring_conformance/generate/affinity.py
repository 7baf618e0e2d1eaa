"""Cases about affinity between pods."""

from __future__ import annotations

import json
from collections.abc import Sequence

from mooring_conformance.generate.dice import Dice, Json
from mooring_conformance.generate.objects import (
    HOSTNAME,
    ZONE,
    a_case,
    a_config,
    a_container,
    a_namespace,
    a_pod,
    merge_label_keys,
)
from mooring_conformance.generate.spreading import a_selector, nodes_in_zones, running_pods, some_labels


def a_pod_term(dice: Dice, keys: Sequence[str], apps: Sequence[str] = ("a", "b", "c")) -> Json:
    t: Json = {"topologyKey": dice.choice(keys)}
    if dice.chance(0.95):
        t["labelSelector"] = a_selector(dice, apps)
    roll = dice.random()
    if roll < 0.2:
        t["namespaces"] = dice.sample(["default", "other", "third", "no-such-ns"], dice.randint(1, 2))
    if 0.12 < roll < 0.35:
        t["namespaceSelector"] = dice.choice(
            [
                {},
                {"matchLabels": {"team": "red"}},
                {"matchLabels": {"team": "blue"}},
                {"matchExpressions": [{"key": "team", "operator": "Exists"}]},
                {"matchExpressions": [{"key": "team", "operator": "NotIn", "values": ["red"]}]},
            ]
        )
    if dice.chance(0.15) and "labelSelector" in t:
        used = json.dumps(t["labelSelector"])
        if '"pod-template-hash"' not in used:
            t[dice.choice(["matchLabelKeys", "mismatchLabelKeys"])] = ["pod-template-hash"]
    return t


def a_pod_affinity(
    dice: Dice,
    keys: Sequence[str],
    req: float = 0.5,
    pref: float = 0.5,
    anti_req: float = 0.5,
    anti_pref: float = 0.5,
    apps: Sequence[str] = ("a", "b", "c"),
    most: int = 2,
) -> Json:
    a: Json = {}

    def weighted() -> list[Json]:
        return [
            {
                "weight": dice.choice([1, 10, 50, 100, dice.randint(1, 100)]),
                "podAffinityTerm": a_pod_term(dice, keys, apps),
            }
            for _ in range(dice.randint(1, most))
        ]

    near, anti = {}, {}
    if dice.chance(req):
        near["requiredDuringSchedulingIgnoredDuringExecution"] = [
            a_pod_term(dice, keys, apps) for _ in range(dice.choice([1, 1, 1, most]))
        ]
    if dice.chance(pref):
        near["preferredDuringSchedulingIgnoredDuringExecution"] = weighted()
    if dice.chance(anti_req):
        anti["requiredDuringSchedulingIgnoredDuringExecution"] = [
            a_pod_term(dice, keys, apps) for _ in range(dice.choice([1, 1, most]))
        ]
    if dice.chance(anti_pref):
        anti["preferredDuringSchedulingIgnoredDuringExecution"] = weighted()
    if near:
        a["podAffinity"] = near
    if anti:
        a["podAntiAffinity"] = anti
    return a


def interpod_case(dice: Dice, name: str) -> Json:
    node_count = dice.randint(3, 20)
    nodes = nodes_in_zones(dice, node_count, zones=dice.choice([2, 3, 5]), taint=0, miss=dice.choice([0, 0.15]), uns=0)
    objects = [
        a_namespace("default", {"team": "red"}),
        a_namespace("other", {"team": "blue"}),
        a_namespace("third"),
        *nodes,
    ]
    namespaces = ("default", "default", "default", "other", "third")
    keys = dice.choice(
        [[HOSTNAME], [ZONE], [ZONE, HOSTNAME], [ZONE, HOSTNAME, "rack"], [HOSTNAME, HOSTNAME, ZONE, "missing-topology"]]
    )
    running = running_pods(dice, nodes, dice.choice([0, 1, 4, 10, 20, 40]), namespaces, term=0.03)
    style = dice.random()
    few_keys = [HOSTNAME, HOSTNAME, HOSTNAME, "rack", ZONE] if style < 0.7 else keys
    for pod in running:
        if dice.chance(0.3):
            a = a_pod_affinity(dice, few_keys, 0.3, 0.4, 0.15 if len(running) > 10 else 0.3, 0.4)
            if a:
                pod["spec"]["affinity"] = a
                merge_label_keys(pod)
    objects += running
    labels = some_labels(dice)
    a = {}
    roll = dice.random()
    if roll < 0.12:
        # first pod of a group: affinity to itself
        t: Json = {
            "topologyKey": dice.choice(keys),
            "labelSelector": {"matchLabels": {"app": dice.choice([labels.get("app", "z"), "z"])}},
        }
        if dice.chance(0.3):
            t["labelSelector"] = {"matchLabels": {"group": "g"}}
            labels["group"] = "g"
        a = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [t]}}
        if dice.chance(0.3):
            a["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"].append(
                {"topologyKey": dice.choice(keys), "labelSelector": a_selector(dice)}
            )
    elif roll < 0.4:
        a = a_pod_affinity(dice, keys, 0.9, 0.3, 0.0, 0.3)
    elif roll < 0.65:
        a = a_pod_affinity(dice, keys, 0, 0.3, 0.9, 0.3)
    elif roll < 0.92:
        a = a_pod_affinity(dice, keys, 0.15, 0.7, 0.15, 0.7, most=3)
    pod = a_pod(
        "incoming",
        dice.choice(["default", "default", "other"]),
        containers=[a_container("c", requests={"cpu": "100m"})],
        labels=labels,
        affinity=a or None,
    )
    config = None
    if dice.chance(0.35):
        args: Json = {"ignorePreferredTermsOfExistingPods": dice.chance(0.5)}
        if dice.chance(0.8):
            args["hardPodAffinityWeight"] = dice.choice([0, 1, 5, 50, 100])
        config = a_config([("InterPodAffinity", args)])
    return a_case(name, objects, pod, config)
