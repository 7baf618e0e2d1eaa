"""Autoscalers: conversion between autoscaling/v1 and v2 without loss."""

from __future__ import annotations

from typing import Any

import pytest
from tests.apiserver.conftest import Client

PATH = "/apis/autoscaling/{}/namespaces/default/horizontalpodautoscalers"
V1, V2 = PATH.format("v1"), PATH.format("v2")
TARGET = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
CPU = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 60}}}
MEMORY = {"type": "Resource", "resource": {"name": "memory", "target": {"type": "AverageValue", "averageValue": "1Gi"}}}


def an_autoscaler(version: str, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": f"autoscaling/{version}",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "web", "annotations": {"by": "hand"}},
        "spec": {"maxReplicas": 5, "scaleTargetRef": TARGET, **spec},
    }


async def test_what_v1_writes_v2_shows(api: Client):
    created = (await api.post(V1, an_autoscaler("v1", targetCPUUtilizationPercentage=60))).body
    assert (created["apiVersion"], created["spec"]["targetCPUUtilizationPercentage"]) == ("autoscaling/v1", 60)
    assert created["spec"]["minReplicas"] == 1
    shown = (await api.get(f"{V2}/web")).body
    assert (shown["apiVersion"], shown["spec"]["metrics"]) == ("autoscaling/v2", [CPU])


async def test_a_write_through_v1_keeps_what_only_v2_has(api: Client):
    behavior = {"scaleDown": {"stabilizationWindowSeconds": 60}}
    await api.post(V2, an_autoscaler("v2", metrics=[MEMORY, CPU], behavior=behavior))
    await api.patch(f"{V2}/web/status", {"status": {"conditions": [{"type": "AbleToScale", "status": "True"}]}})
    before = (await api.get(f"{V2}/web")).body
    assert before["spec"]["behavior"]["scaleUp"]["selectPolicy"] == "Max"

    shown = (await api.get(f"{V1}/web")).body
    assert shown["spec"]["targetCPUUtilizationPercentage"] == 60
    assert "metrics" not in shown["spec"]
    assert "autoscaling.alpha.kubernetes.io/behavior" in shown["metadata"]["annotations"]
    shown["spec"]["maxReplicas"] = 9
    assert (await api.put(f"{V1}/web", shown)).code == 200

    after = (await api.get(f"{V2}/web")).body
    assert after["spec"] == before["spec"] | {"maxReplicas": 9}
    assert after["status"] == before["status"]
    assert after["metadata"]["annotations"] == {"by": "hand"}


async def test_without_a_metric_the_target_is_eighty_percent_of_cpu(api: Client):
    created = (await api.post(V1, an_autoscaler("v1"))).body
    assert created["spec"]["targetCPUUtilizationPercentage"] == 80


async def test_an_annotation_that_is_not_json_is_ignored(api: Client):
    odd = an_autoscaler("v1")
    odd["metadata"]["annotations"]["autoscaling.alpha.kubernetes.io/metrics"] = "{"
    assert (await api.post(V1, odd)).code == 201


async def test_a_watch_of_v1_brings_what_v2_writes(api: Client):
    watch = await api.watch(V1)
    await api.post(V2, an_autoscaler("v2", metrics=[CPU]))
    event = await watch.next()
    assert event is not None
    assert event["object"]["apiVersion"] == "autoscaling/v1"
    assert event["object"]["spec"]["targetCPUUtilizationPercentage"] == 60


async def test_v2_is_the_preferred_version(api: Client):
    group = (await api.get("/apis/autoscaling")).body
    assert group["preferredVersion"]["version"] == "v2"
    assert [each["version"] for each in group["versions"]] == ["v2", "v1"]


WRONG = {
    "fewer at most than at least": ({"minReplicas": 7}, "spec.maxReplicas: Invalid value: 5"),
    "no replicas at most": ({"maxReplicas": 0}, "spec.maxReplicas: Invalid value: 0: must be greater than 0"),
    "fewer than none": ({"minReplicas": -1}, "spec.minReplicas: Invalid value: -1"),
    "nothing to scale": ({"scaleTargetRef": None}, "spec.scaleTargetRef: Required value"),
}


@pytest.mark.parametrize(("spec", "message"), WRONG.values(), ids=WRONG.keys())
@pytest.mark.parametrize("version", ["v1", "v2"])
async def test_mistakes_are_named(api: Client, version: str, spec: dict[str, Any], message: str):
    response = await api.post(PATH.format(version), an_autoscaler(version, **spec))
    assert response.code == 422
    assert message in response.message
