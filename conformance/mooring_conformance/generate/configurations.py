"""Cases about configuration: enabling and disabling at every point, weights, arguments; some invalid on purpose."""

from __future__ import annotations

from typing import Any

from mooring_conformance.generate.dice import Dice, Json
from mooring_conformance.generate.mixed import a_rich_cluster, a_rich_pod
from mooring_conformance.generate.node_rules import a_node_term
from mooring_conformance.generate.objects import CONFIG_API, HOSTNAME, ZONE, a_case, a_config
from mooring_conformance.generate.resources import a_scoring_strategy, balanced_arguments

SCORERS = [
    "TaintToleration",
    "NodeAffinity",
    "NodeResourcesFit",
    "NodeResourcesBalancedAllocation",
    "ImageLocality",
    "PodTopologySpread",
    "InterPodAffinity",
    "VolumeBinding",
    "DynamicResources",
]


FILTERS = [
    "NodeUnschedulable",
    "NodeName",
    "TaintToleration",
    "NodeAffinity",
    "NodePorts",
    "NodeResourcesFit",
    "VolumeRestrictions",
    "NodeVolumeLimits",
    "VolumeBinding",
    "VolumeZone",
    "PodTopologySpread",
    "InterPodAffinity",
]


DEFAULT_PLUGINS = [
    "SchedulingGates",
    "PrioritySort",
    "NodeUnschedulable",
    "NodeName",
    "TaintToleration",
    "NodeAffinity",
    "NodePorts",
    "NodeResourcesFit",
    "VolumeRestrictions",
    "NodeVolumeLimits",
    "VolumeBinding",
    "VolumeZone",
    "PodTopologySpread",
    "InterPodAffinity",
    "DynamicResources",
    "DefaultPreemption",
    "NodeResourcesBalancedAllocation",
    "ImageLocality",
    "DefaultBinder",
    "NodeDeclaredFeatures",
]


PREFILTERS = [
    "NodeAffinity",
    "NodePorts",
    "NodeResourcesFit",
    "VolumeRestrictions",
    "NodeVolumeLimits",
    "VolumeBinding",
    "VolumeZone",
    "PodTopologySpread",
    "InterPodAffinity",
]


PRESCORERS = [
    "TaintToleration",
    "NodeAffinity",
    "NodeResourcesFit",
    "NodeResourcesBalancedAllocation",
    "PodTopologySpread",
    "InterPodAffinity",
]


def some_arguments(dice: Dice, names: list[str]) -> list[tuple[str, Json]]:
    arguments: list[Any] = []
    if dice.chance(0.5):
        a: Json = {"scoringStrategy": a_scoring_strategy(dice, ["example.com/gpu"])}
        if dice.chance(0.2):
            a["ignoredResources"] = ["example.com/gpu"]
        if dice.chance(0.1):
            a["ignoredResourceGroups"] = ["example.com"]
        arguments.append(("NodeResourcesFit", a))
    if dice.chance(0.3):
        arguments.append(("NodeResourcesBalancedAllocation", balanced_arguments(dice, ["example.com/gpu"])))
    if dice.chance(0.3):
        arguments.append(
            (
                "InterPodAffinity",
                {
                    "hardPodAffinityWeight": dice.choice([0, 1, 10, 100]),
                    "ignorePreferredTermsOfExistingPods": dice.chance(0.5),
                },
            )
        )
    if dice.chance(0.3):
        arguments.append(
            (
                "PodTopologySpread",
                dice.choice(
                    [
                        {"defaultingType": "System"},
                        {"defaultingType": "List"},
                        {},
                        {
                            "defaultingType": "List",
                            "defaultConstraints": [
                                {
                                    "maxSkew": dice.choice([1, 2, 5]),
                                    "topologyKey": dice.choice([ZONE, HOSTNAME]),
                                    "whenUnsatisfiable": dice.choice(["ScheduleAnyway", "DoNotSchedule"]),
                                }
                            ],
                        },
                    ]
                ),
            )
        )
    if dice.chance(0.25):
        arguments.append(
            (
                "NodeAffinity",
                {
                    "addedAffinity": {
                        "preferredDuringSchedulingIgnoredDuringExecution": [
                            {"weight": dice.randint(1, 100), "preference": a_node_term(dice, names, False)}
                        ]
                    }
                },
            )
        )
    elif dice.chance(0.15):
        arguments.append(
            (
                "NodeAffinity",
                {
                    "addedAffinity": {
                        "requiredDuringSchedulingIgnoredDuringExecution": {
                            "nodeSelectorTerms": [a_node_term(dice, names, False) for _ in range(3)]
                        }
                    }
                },
            )
        )
    if dice.chance(0.15):
        arguments.append(("DefaultPreemption", {"minCandidateNodesPercentage": 100}))
    if dice.chance(0.1):
        arguments.append(("VolumeBinding", {"bindTimeoutSeconds": dice.choice([0, 300])}))
    dice.shuffle(arguments)
    return arguments


def config_case(dice: Dice, name: str) -> Json:
    objects, names, zones, v = a_rich_cluster(dice, dice.randint(4, 14), dice.randint(5, 40))
    pod = a_rich_pod(dice, names, zones, v, 0.5)
    plugins: Json = {}

    def entry(n: str, w: bool = True) -> Json:
        e: Json = {"name": n}
        if w and dice.chance(0.7):
            e["weight"] = dice.choice([1, 2, 3, 5, 10, 50, 100])
        return e

    style = dice.random()
    if style < 0.25:
        # only some plugins, at all of their points
        keep = dice.sample(
            [x for x in DEFAULT_PLUGINS if x not in ("PrioritySort", "DefaultBinder")], dice.randint(2, 12)
        )
        en = [{"name": "PrioritySort"}] + [entry(k, k in SCORERS) for k in keep] + [{"name": "DefaultBinder"}]
        dice.shuffle(en)
        plugins["multiPoint"] = {"enabled": en, "disabled": [{"name": "*"}]}
    elif style < 0.55:
        mp: Json = {}
        if dice.chance(0.6):
            mp["disabled"] = [{"name": x} for x in dice.sample(SCORERS[:7] + FILTERS, dice.randint(1, 4))]
            mp["disabled"] = [x for i, x in enumerate(mp["disabled"]) if x not in mp["disabled"][:i]]
        if dice.chance(0.7):
            mp["enabled"] = [entry(x) for x in dice.sample(SCORERS[:7], dice.randint(1, 3))]
        plugins["multiPoint"] = mp
    if style > 0.35:
        if dice.chance(0.6):
            sc: Json = {}
            roll = dice.random()
            if roll < 0.3:
                sc["disabled"] = [{"name": "*"}]
                sc["enabled"] = [entry(k) for k in dice.sample(SCORERS[:7], dice.randint(0, 5))]
            else:
                sc["disabled"] = [{"name": k} for k in dice.sample(SCORERS[:7], dice.randint(0, 3))]
                sc["enabled"] = [entry(k) for k in dice.sample(SCORERS[:7], dice.randint(0, 3))]
            plugins["score"] = {k: w for k, w in sc.items() if w}
        if dice.chance(0.4):
            ds = dice.sample(FILTERS, dice.randint(1, 4))
            plugins["filter"] = {"disabled": [{"name": k} for k in ds]}
            if dice.chance(0.1):
                plugins["filter"] = {
                    "disabled": [{"name": "*"}],
                    "enabled": [{"name": k} for k in dice.sample(FILTERS, dice.randint(0, 4))],
                }
            elif dice.chance(0.4):
                plugins["preFilter"] = {"disabled": [{"name": k} for k in ds if k in PREFILTERS]}
        if dice.chance(0.08):
            plugins.setdefault("preFilter", {"disabled": [{"name": dice.choice(PREFILTERS)}]})
        if dice.chance(0.12):
            k = dice.choice(PRESCORERS)
            plugins["preScore"] = {"disabled": [{"name": k}]}
        if dice.chance(0.15):
            plugins["postFilter"] = {
                "disabled": [{"name": dice.choice(["*", "DefaultPreemption", "DynamicResources"])}]
            }
        if dice.chance(0.1):
            plugins["preEnqueue"] = {"disabled": [{"name": "SchedulingGates"}]}
            pod["spec"]["schedulingGates"] = [{"name": "example.com/gate"}]
    if dice.chance(0.03):
        pod["spec"]["schedulingGates"] = [{"name": "example.com/gate"}]
    plugins = {k: w for k, w in plugins.items() if w}
    arguments = some_arguments(dice, names)
    top: Json = {}
    if dice.chance(0.2):
        top["percentageOfNodesToScore"] = 100
    if dice.chance(0.1):
        top["parallelism"] = 4
    config = a_config(arguments, plugins, **top)
    if dice.chance(0.2):
        del config["profiles"][0]["schedulerName"]
    if dice.chance(0.04):
        # refused by the validation
        bad = dice.choice(["unknown", "weight", "shape", "twice", "field"])
        prof = config["profiles"][0]
        if bad == "unknown":
            prof.setdefault("plugins", {}).setdefault("filter", {}).setdefault("enabled", []).append(
                {"name": "NoSuchPlugin"}
            )
        elif bad == "weight":
            prof["pluginConfig"] = [
                {
                    "name": "InterPodAffinity",
                    "args": {"apiVersion": CONFIG_API, "kind": "InterPodAffinityArgs", "hardPodAffinityWeight": 101},
                }
            ]
        elif bad == "shape":
            prof["pluginConfig"] = [
                {
                    "name": "NodeResourcesFit",
                    "args": {
                        "apiVersion": CONFIG_API,
                        "kind": "NodeResourcesFitArgs",
                        "scoringStrategy": {
                            "type": "RequestedToCapacityRatio",
                            "requestedToCapacityRatio": {
                                "shape": [{"utilization": 50, "score": 1}, {"utilization": 10, "score": 2}]
                            },
                        },
                    },
                }
            ]
        elif bad == "twice":
            prof["plugins"] = {"score": {"enabled": [{"name": "ImageLocality"}, {"name": "ImageLocality"}]}}
        else:
            prof["noSuchField"] = 1
    return a_case(name, objects, pod, config)
