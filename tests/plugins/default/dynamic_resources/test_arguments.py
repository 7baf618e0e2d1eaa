"""The arguments of DynamicResources: defaults, bounds, and the gates that they need."""

from __future__ import annotations

from datetime import timedelta

import pytest

from mooring.base.errors import OperatorMistake
from mooring.config import load_configuration
from mooring.framework import FeatureGates
from mooring.plugins.catalogue import catalogue
from mooring.plugins.default.dynamic_resources.plugin import DynamicResourcesArgs

CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: false}
profiles:
- pluginConfig:
  - name: DynamicResources
    args: {%s}
"""


def loaded(args: str, **gates: bool) -> object:
    configuration = load_configuration(
        CONFIG % args, source="test.yaml", registry=catalogue(), gates=FeatureGates(gates)
    ).configuration
    return configuration.profiles[0].args["DynamicResources"]


def test_the_defaults_are_upstreams():
    assert loaded("") == DynamicResourcesArgs(
        filter_timeout=timedelta(seconds=10), binding_timeout=timedelta(minutes=10)
    )


def test_no_time_limit_at_all():
    assert loaded("filterTimeout: 0s") == DynamicResourcesArgs(filter_timeout=timedelta(0))


LIMITS = {
    "a nanosecond is a limit": ("1ns", timedelta(microseconds=1)),
    "less than that is none": ("0.9ns", timedelta(0)),
    "what is more is cut to microseconds": ("1999ns", timedelta(microseconds=1)),
}


@pytest.mark.parametrize(("text", "limit"), LIMITS.values(), ids=LIMITS.keys())
def test_short_limits(text, limit):
    assert loaded(f"filterTimeout: {text}") == DynamicResourcesArgs(filter_timeout=limit)


MISTAKES: dict[str, tuple[str, dict[str, bool], str]] = {
    "no time is less than none": ("filterTimeout: -1s", {}, "must be zero or positive"),
    "not even a little": ("filterTimeout: -1ns", {}, "must be zero or positive"),
    "devices need a whole second": ("bindingTimeout: 999999999ns", {}, "must be at least 1 second"),
    "devices need a second": ("bindingTimeout: 999ms", {}, "must be at least 1 second"),
    "no limit without its gate": (
        "filterTimeout: 1s",
        {"DRASchedulerFilterTimeout": False},
        "Forbidden: needs the feature gate DRASchedulerFilterTimeout, which is off",
    ),
    "nor for devices": (
        "bindingTimeout: 1m",
        {"DRADeviceBindingConditions": False},
        "Forbidden: needs the feature gate DRADeviceBindingConditions, which is off",
    ),
}


@pytest.mark.parametrize(("args", "gates", "message"), MISTAKES.values(), ids=MISTAKES.keys())
def test_mistakes(args, gates, message):
    with pytest.raises(OperatorMistake, match=message):
        loaded(args, **gates)
