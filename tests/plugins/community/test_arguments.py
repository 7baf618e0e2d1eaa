"""Arguments of the community plugins, as files of scheduler-plugins have them: names, defaults, mistakes."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from mooring.base.errors import OperatorMistake
from mooring.config import load_configuration
from mooring.framework import Args
from mooring.plugins.catalogue import catalogue

SORTS = ("Coscheduling", "QOSSort", "TopologicalSort")
MODEL = {"NodePowerModel": {"node": {"k0": 1, "k1": 2, "k2": 3}}}
METADATA = {"metadataKey": "k", "metadataSource": "Label", "metadataType": "Number", "scoringStrategy": "Highest"}


def a_file(plugin: str, args: dict[str, Any]) -> str:
    """One profile with the plugin; JSON is YAML."""
    plugins: dict[str, Any] = {"multiPoint": {"enabled": [{"name": plugin}]}}
    if plugin in SORTS:
        plugins["queueSort"] = {"enabled": [{"name": plugin}], "disabled": [{"name": "*"}]}
    profile = {"plugins": plugins, "pluginConfig": [{"name": plugin, "args": args}]}
    kind = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    return json.dumps({**kind, "profiles": [profile]})


def read(plugin: str, args: dict[str, Any]) -> Args:
    loaded = load_configuration(a_file(plugin, args), source="file", registry=catalogue())
    assert not loaded.warnings
    found: Args = loaded.configuration.profiles[0].args[plugin]
    return found


# Lists and maps that are empty mean a default, too; tests of the plugins show which.
DEFAULTS: dict[str, dict[str, Any]] = {
    "Coscheduling": {
        "permitWaitingTimeSeconds": 60,
        "podGroupBackoffSeconds": 0,
        "podGroupRejectPercentage": 10,
    },
    "NodeResourcesAllocatable": {"mode": "Least"},
    "NodeResourceTopologyMatch": {
        "cacheResyncPeriodSeconds": 0,
        "discardReservedNodes": False,
        "cache": {
            "foreignPodsDetect": "All",
            "resyncMethod": "Autodetect",
            "informerMode": "Dedicated",
            "resyncScope": "All",
        },
    },
    "PreemptionToleration": {"minCandidateNodesPercentage": 10, "minCandidateNodesAbsolute": 100},
    "TargetLoadPacking": {"targetUtilization": 40, "defaultRequestsMultiplier": "1.5"},
    "LoadVariationRiskBalancing": {"safeVarianceMargin": 1.0, "safeVarianceSensitivity": 1.0},
    "LowRiskOverCommitment": {"smoothingWindowSize": 5},
    "NetworkOverhead": {"weightsName": "UserDefined", "networkTopologyName": "nt-default"},
    "SySched": {"defaultProfileNamespace": "default", "defaultProfileName": "all-syscalls"},
}


@pytest.mark.parametrize(("plugin", "defaults"), DEFAULTS.items())
def test_what_is_not_given_has_the_default_of_the_original(plugin, defaults):
    written = msgspec.to_builtins(read(plugin, {}))
    assert {name: written[name] for name in defaults} == defaults


@pytest.mark.parametrize(("plugin", "defaults"), DEFAULTS.items())
def test_a_file_may_name_version_kind_and_null(plugin, defaults):
    named = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": f"{plugin}Args"}
    assert read(plugin, {**named, **dict.fromkeys(defaults)}) == read(plugin, {})


ACCEPTED: dict[str, tuple[str, dict[str, Any]]] = {
    "all of Coscheduling": (
        "Coscheduling",
        {"permitWaitingTimeSeconds": 0, "podGroupBackoffSeconds": 3, "podGroupRejectPercentage": 100},
    ),
    "NodeResourcesAllocatable without resources": ("NodeResourcesAllocatable", {"mode": "Most", "resources": []}),
    "NodeResourcesAllocatable with an empty mode": ("NodeResourcesAllocatable", {"mode": ""}),
    "a target of 0": ("TargetLoadPacking", {"targetUtilization": 0}),
    "requests without a unit": ("TargetLoadPacking", {"defaultRequests": {"cpu": 2}}),
    "a watcher beside any provider": (
        "TargetLoadPacking",
        {"watcherAddress": "http://127.0.0.1:2020", "metricProvider": {"type": "Other"}},
    ),
    "all of a provider": (
        "LoadVariationRiskBalancing",
        {
            "metricProvider": {
                "type": "Prometheus",
                "address": "https://prometheus:9090",
                "token": "t",
                "insecureSkipVerify": False,
            },
            "safeVarianceMargin": -1,
            "safeVarianceSensitivity": 0.5,
        },
    ),
    "weights out of range": (
        "LowRiskOverCommitment",
        {"smoothingWindowSize": 0, "riskLimitWeights": {"cpu": 2, "memory": -1}},
    ),
    "Peaks by its own names": ("Peaks", {"WatcherAddress": "http://watcher:2020", **MODEL}),
    "all of NodeResourceTopologyMatch": (
        "NodeResourceTopologyMatch",
        {
            "scoringStrategy": {"type": "LeastNUMANodes", "resources": [{"name": "cpu", "weight": 0}]},
            "cacheResyncPeriodSeconds": 5,
            "discardReservedNodes": True,
            "cache": {
                "foreignPodsDetect": "OnlyExclusiveResources",
                "resyncMethod": "OnlyExclusiveResources",
                "informerMode": "Shared",
                "resyncScope": "OnlyResources",
            },
        },
    ),
    "no namespaces": ("NetworkOverhead", {"namespaces": []}),
    "all of NodeMetadata": ("NodeMetadata", {**METADATA, "timestampFormat": "2006-01-02"}),
}


@pytest.mark.parametrize(("plugin", "args"), ACCEPTED.values(), ids=ACCEPTED.keys())
def test_what_the_original_accepts_is_accepted(plugin, args):
    read(plugin, args)


NOT_POSITIVE = "resource weight of cpu should be a positive value, got :0"
NO_STRATEGY = 'Invalid value: "": invalid ScoringStrategyType'
MISTAKES: dict[str, tuple[str, dict[str, Any], str, str]] = {
    "a negative time to wait": (
        "Coscheduling",
        {"permitWaitingTimeSeconds": -1},
        "permitWaitingTimeSeconds",
        "Invalid value: -1: must be greater than 0",
    ),
    "a negative backoff": (
        "Coscheduling",
        {"podGroupBackoffSeconds": -2},
        "podGroupBackoffSeconds",
        "Invalid value: -2: must be greater than 0",
    ),
    "a percentage beyond 100": (
        "Coscheduling",
        {"podGroupRejectPercentage": 101},
        "podGroupRejectPercentage",
        "Invalid value: 101: must be between 0 and 100",
    ),
    "a negative percentage": (
        "Coscheduling",
        {"podGroupRejectPercentage": -1},
        "podGroupRejectPercentage",
        "Invalid value: -1: must be between 0 and 100",
    ),
    "another mode": (
        "NodeResourcesAllocatable",
        {"mode": "least"},
        "mode",
        'Invalid value: "least": invalid support ModeType',
    ),
    "a weight of 0": (
        "NodeResourcesAllocatable",
        {"resources": [{"name": "cpu", "weight": 0}]},
        "resources[0].weight",
        f"Invalid value: 0: {NOT_POSITIVE}",
    ),
    "no weight": (
        "NodeResourcesAllocatable",
        {"resources": [{"name": "cpu"}]},
        "resources[0].weight",
        f"Invalid value: 0: {NOT_POSITIVE}",
    ),
    "a strategy without a type": (
        "NodeResourceTopologyMatch",
        {"scoringStrategy": {}},
        "scoringStrategy.type",
        NO_STRATEGY,
    ),
    "another strategy": (
        "NodeResourceTopologyMatch",
        {"scoringStrategy": {"type": "Best"}},
        "scoringStrategy.type",
        'Invalid value: "Best": invalid ScoringStrategyType',
    ),
    "another provider": (
        "TargetLoadPacking",
        {"metricProvider": {"type": "Datadog"}},
        "metricProvider.type",
        "invalid MetricProvider.Type, got Datadog",
    ),
    "a multiplier that is no number": (
        "TargetLoadPacking",
        {"defaultRequestsMultiplier": "many"},
        "defaultRequestsMultiplier",
        'unable to parse DefaultRequestsMultiplier: strconv.ParseFloat: parsing "many": invalid syntax',
    ),
    "a request that is no quantity": (
        "TargetLoadPacking",
        {"defaultRequests": {"cpu": "many"}},
        "defaultRequests.cpu",
        "'many' is not a quantity",
    ),
    "neither percentage nor number of candidates": (
        "PreemptionToleration",
        {"minCandidateNodesPercentage": 0, "minCandidateNodesAbsolute": 0},
        "minCandidateNodesPercentage",
        "both minCandidateNodesPercentage and minCandidateNodesAbsolute cannot be zero",
    ),
    "no key": (
        "NodeMetadata",
        {**METADATA, "metadataKey": ""},
        "metadataKey",
        'Invalid value: "": metadataKey cannot be empty',
    ),
    "another source": (
        "NodeMetadata",
        {**METADATA, "metadataSource": "Taint"},
        "metadataSource",
        'Invalid value: "Taint": metadataSource must be either "Label" or "Annotation"',
    ),
    "another type": (
        "NodeMetadata",
        {**METADATA, "metadataType": "Text"},
        "metadataType",
        'Invalid value: "Text": metadataType must be either "Number" or "Timestamp"',
    ),
    "a strategy of times for numbers": (
        "NodeMetadata",
        {**METADATA, "scoringStrategy": "Newest"},
        "scoringStrategy",
        'Invalid value: "Newest": scoringStrategy "Newest" and "Oldest" are only valid for metadataType "Timestamp"',
    ),
    "no power model": ("Peaks", {}, "nodePowerModel", "open : no such file or directory"),
    "arguments of another plugin": (
        "Coscheduling",
        {"kind": "PeaksArgs"},
        "kind",
        'has to match plugin args: must be "CoschedulingArgs", got "PeaksArgs"',
    ),
}


@pytest.mark.parametrize(("plugin", "args", "field", "message"), MISTAKES.values(), ids=MISTAKES.keys())
def test_mistakes_are_reported_by_field_in_the_words_of_the_original(plugin, args, field, message, monkeypatch):
    monkeypatch.delenv("NODE_POWER_MODEL", raising=False)
    with pytest.raises(OperatorMistake) as mistake:
        read(plugin, args)
    [problem] = mistake.value.problems
    assert problem.path == f"profiles[0].pluginConfig[0].args.{field}"
    assert problem.message.startswith(message)
