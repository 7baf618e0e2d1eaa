"""The controllers on the embedded API server, with a simulated cluster."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from tests.simulated.conftest import POD, Bench, pod_document
from tests.simulated.conftest import bench as bench  # the fixture

from mooring.base.clock import SystemClock
from mooring.controllers import Controllers
from mooring.framework.definitions import definition_of
from mooring.objects.meta import Kind
from mooring.plugins.community.capacity_scheduling.quotas import ElasticQuota
from mooring.plugins.community.coscheduling.pod_groups import GROUP_LABEL, CoschedulingGroup

DEFINITION = Kind("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", False)
GROUPS, QUOTAS = CoschedulingGroup.KIND, ElasticQuota.KIND


@pytest.fixture
async def controllers(bench: Bench) -> AsyncIterator[Controllers]:
    await bench.start(2)
    for kind in (CoschedulingGroup, ElasticQuota):
        await bench.client.create(DEFINITION, definition_of(kind))
    running = Controllers(bench.client, clock=SystemClock())
    running.start()
    async with asyncio.timeout(60):
        for resource in (GROUPS, QUOTAS):
            await running.running[resource.name].wait()
    yield running
    await running.stop()


def a_document(kind: Kind, name: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": name}, "spec": spec}


async def until_status(bench: Bench, kind: Kind, name: str, **wanted: Any) -> dict[str, Any]:
    async with asyncio.timeout(60):
        while True:
            status = (await bench.client.get(kind, name, "default")).get("status") or {}
            if all(status.get(field) == value for field, value in wanted.items()):
                return status
            await asyncio.sleep(0.05)  # no watch of custom kinds in the fixture: read again


async def test_a_group_becomes_running_with_its_pods(bench, controllers):
    await bench.client.create(GROUPS, a_document(GROUPS, "train", {"minMember": 2}), "default")
    await until_status(bench, GROUPS, "train", phase="Pending")
    for name in ("a", "b"):
        document = pod_document(name)
        document["metadata"]["labels"] = {GROUP_LABEL: "train"}
        await bench.client.create(POD, document, "default")
    status = await until_status(bench, GROUPS, "train", phase="Running", running=2)
    assert status["scheduleStartTime"]
    await bench.client.delete(POD, "a", "default")
    await until_status(bench, GROUPS, "train", phase="Pending", running=1)


async def test_a_quota_shows_what_pods_use_and_is_reported_when_impossible(bench, controllers):
    await bench.client.create(QUOTAS, a_document(QUOTAS, "quota", {"min": {"cpu": 4}, "max": {"cpu": 2}}), "default")
    document = pod_document("a")
    document["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "250m"}}
    await bench.client.create(POD, document, "default")
    await until_status(bench, QUOTAS, "quota", used={"cpu": "250m"})
    await bench.seen.until(lambda: ("InvalidQuota", "spec.min.cpu is 4, more than spec.max.cpu 2") in bench.seen.events)
