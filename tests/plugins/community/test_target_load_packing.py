"""TargetLoadPacking: nodes are filled up to a target load."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from msgspec.structs import force_setattr
from tests.plugins.community.trimaran_loads import a_load_plugin, cpu, memory, score, services_with

from mooring.base.clock import timestamp
from mooring.base.errors import OperatorMistake
from mooring.objects.core import Container, ResourceRequirements
from mooring.plugins.community.trimaran import TargetLoadPacking
from mooring.testing import Services, a_cluster, a_node, a_plugin, a_pod, scored_one_by_one

NOW = 1_700_000_000.0


def a_pod_using(request=None, limit=None, **more):
    resources = ResourceRequirements(
        requests={} if request is None else {"cpu": request}, limits={} if limit is None else {"cpu": limit}
    )
    pod = a_pod(**more)
    force_setattr(pod.spec, "containers", (Container(name="main", resources=resources),))
    return pod


def running(name, cpu="1", started=None):
    pod = a_pod(name, cpu=cpu)
    force_setattr(pod.status, "start_time", None if started is None else timestamp(NOW + started))
    return pod


CASES = {
    "below the target, more is better": (cpu(0), a_pod_using(limit="400m"), 40 + 15),
    "at the target it is best": (cpu(30), a_pod_using(limit="400m"), 100),
    "beyond it the score falls": (cpu(60), a_pod_using(limit="400m"), 20),
    "a full node has 0": (cpu(95), a_pod_using(limit="400m"), 0),
    "a limit counts before a request": (cpu(30), a_pod_using(request="4", limit="400m"), 100),
    "a request counts one and a half times": (cpu(10), a_pod_using(request="800m"), 100),
    "without either a container counts one CPU": (cpu(15), a_pod_using(), 100),
    "the last load counts": ([*cpu(95), *cpu(30)], a_pod_using(limit="400m"), 100),
    "without a load of the CPU it is 0": (memory(30), a_pod_using(limit="400m"), 0),
    "without any it is 0": ([], a_pod_using(limit="400m"), 0),
    "before the first fetch it is 0": (None, a_pod_using(limit="400m"), 0),
}


@pytest.mark.parametrize(("loads", "pod", "expected"), CASES.values(), ids=CASES.keys())
def test_the_score_follows_from_the_predicted_load(loads, pod, expected):
    assert score(TargetLoadPacking, loads, pod) == expected


def test_the_target_may_be_another():
    assert score(TargetLoadPacking, cpu(60), a_pod_using(limit="400m"), target_utilization=70) == 100


@pytest.mark.parametrize("compatibility", ["mooring", "scheduler-plugins"])
def test_each_profile_has_its_own_arguments(compatibility):
    services = services_with({"node": cpu(50)})
    cluster = a_cluster(a_node("node", cpu="4"), services=services)
    scores = {60: {"node": 100}, 30: {"node": 17}}
    profiles = {
        target: a_load_plugin(TargetLoadPacking, services, target_utilization=target, compatibility=compatibility)
        for target in scores
    }
    pod = a_pod_using(limit="400m")
    assert {target: scored_one_by_one(plugin, pod, cluster) for target, plugin in profiles.items()} == scores


def test_a_pod_that_started_long_ago_is_in_the_measurements():
    assert score(TargetLoadPacking, cpu(30), a_pod_using(limit="400m"), running=[running("old", started=-3600)]) == 100


@pytest.mark.parametrize("started", [-30, None], ids=["just started", "bound and not started"])
def test_a_new_pod_is_predicted_too(started):
    new = running("new", cpu="400m", started=started)
    assert score(TargetLoadPacking, cpu(30), a_pod_using(limit="400m"), running=[new]) == rounded_beyond(30 + 10 + 15)


def rounded_beyond(use):
    return int(40 * (100 - use) / 60 + 0.5)


def test_after_its_start_scheduler_plugins_predicts_old_pods_too():
    old = running("old", cpu="400m", started=-3600)
    arguments: dict[str, Any] = {"running": [old], "compatibility": "scheduler-plugins"}
    assert score(TargetLoadPacking, cpu(30), a_pod_using(limit="400m"), **arguments) == rounded_beyond(55)


WRONG = {
    "a multiplier that is no number": (
        {"default_requests_multiplier": "x"},
        'unable to parse DefaultRequestsMultiplier: strconv.ParseFloat: parsing "x": invalid syntax',
    ),
    "a target beyond 100": ({"target_utilization": 101}, "must be between 1 and 100, got 101"),
    "an unknown provider": ({"metric_provider": {"type": "Datadog"}}, "invalid MetricProvider.Type, got Datadog"),
    "one that is not supported": ({"metric_provider": {"type": "SignalFx"}}, "give watcherAddress"),
    "an address that is no URL": ({"watcher_address": "load-watcher:2020"}, "must be a URL"),
}


@pytest.mark.parametrize(("arguments", "message"), WRONG.values(), ids=WRONG.keys())
def test_mistakes_are_reported(arguments, message):
    with pytest.raises(OperatorMistake) as mistake:
        a_plugin(TargetLoadPacking, Services(), **arguments)
    assert message in str(mistake.value)


def test_a_target_of_zero_counts_as_the_default():
    assert score(TargetLoadPacking, cpu(30), a_pod_using(limit="400m"), target_utilization=0) == 100


def test_overhead_counts():
    pod = a_pod_using(limit="200m")
    force_setattr(pod, "spec", msgspec.structs.replace(pod.spec, overhead={"cpu": "200m"}))
    assert score(TargetLoadPacking, cpu(30), pod) == 100
