"""Gangs that share devices, on the embedded cluster: its API server, its controllers, and a live scheduler."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from tests.scheduler.conftest import Live, a_live_scheduler
from tests.scheduler.plugins.test_claims_of_devices import DRIVER, REQUEST, a_document, users_of

from mooring.apiserver import EmbeddedApiServer
from mooring.base.clock import SystemClock
from mooring.framework.gates import read_gates
from mooring.objects import Pod
from mooring.objects.pod_groups import PodGroup
from mooring.objects.resource import DeviceClass, ResourceClaim, ResourceSlice
from mooring.simulated.cluster import SimulatedCluster
from mooring.simulated.records import ClaimTemplate

GATES = "GenericWorkload=true,GangScheduling=true,DRAWorkloadResourceClaims=true"
BY_TEMPLATE = {"name": "gpu", "resourceClaimTemplateName": "gpu"}
CLAIMS = "resourceclaims.resource.k8s.io"


@asynccontextmanager
async def a_cluster(*more_gates: str) -> AsyncIterator[tuple[EmbeddedApiServer, Live]]:
    """Two nodes, the first with one device, and a template of claims for one."""
    gates = read_gates([GATES, *(f"{gate}=true" for gate in more_gates)]).gates
    server = EmbeddedApiServer(features=gates.enabled())
    await server.start()
    try:
        async with a_live_scheduler(server, gates=gates) as live:
            simulated = SimulatedCluster(
                live.client, clock=SystemClock(), heartbeat_seconds=0, features=gates.enabled()
            )
            await simulated.start()
            spec = {"selectors": [{"cel": {"expression": f'device.driver == "{DRIVER}"'}}]}
            await live.client.create(DeviceClass.KIND, a_document(DeviceClass, "gpu", spec))
            for node in ("node-1", "node-2"):
                await live.node(node)
            await a_device(live, "node-1")
            claim = {"spec": {"devices": {"requests": [REQUEST]}}}
            await live.client.create(ClaimTemplate.KIND, a_document(ClaimTemplate, "gpu", claim), "default")
            yield server, live
            await simulated.stop()
    finally:
        await server.stop()


async def a_device(live: Live, node: str) -> None:
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": DRIVER, "nodeName": node, "pool": pool, "devices": [{"name": "gpu-0"}]}
    await live.client.create(ResourceSlice.KIND, a_document(ResourceSlice, node, spec))


async def a_gang(live: Live, name: str, *claims: dict[str, Any], cpu: str = "100m", **spec: Any) -> None:
    """A gang of three. `spec`: of the group and of its pods."""
    of_group = {"schedulingPolicy": {"gang": {"minCount": 3}}, "resourceClaims": list(claims), **spec}
    await live.client.create(PodGroup.KIND, a_document(PodGroup, name, of_group), "default")
    for member in names(name):
        group = {"podGroupName": name}
        await a_pod(live, member, cpu, schedulingGroup=group, resourceClaims=list(claims), **spec)


async def a_pod(live: Live, name: str, cpu: str = "100m", **spec: Any) -> None:
    container = {"name": "main", "image": "pause", "resources": {"requests": {"cpu": cpu}}}
    whole = {"containers": [container], "terminationGracePeriodSeconds": 0, **spec}
    await live.client.create(Pod.KIND, a_document(Pod, name, whole), "default")


def names(gang: str) -> list[str]:
    return [f"{gang}-{number}" for number in range(3)]


def refused(live: Live, gang: str) -> bool:
    conditions = [live.pods[name].condition("PodScheduled") for name in names(gang) if name in live.pods]
    return len(conditions) == 3 and all(each is not None and each.status == "False" for each in conditions)


async def test_gangs_share_one_claim_each_and_the_second_waits_for_the_first():
    """G46, G47, G49, G50: all pods of a gang on the node of its device, which the deletion of the group releases."""
    async with a_cluster() as (server, live):
        await a_gang(live, "first", BY_TEMPLATE)
        assert await live.bound(*names("first")) == ["node-1"] * 3
        [claim] = server.store.list(CLAIMS)
        assert claim["metadata"]["generateName"] == "first-gpu-"
        assert users_of(claim) == ["first"]

        await a_gang(live, "second", BY_TEMPLATE)
        await live.until(lambda: refused(live, "second"))

        for name in names("first"):
            await live.client.delete(Pod.KIND, name, "default")
        await live.client.delete(PodGroup.KIND, "first", "default")
        assert await live.bound(*names("second")) == ["node-1"] * 3
        await live.until(lambda: len(server.store.list(CLAIMS)) == 1)
        [claim] = server.store.list(CLAIMS)
        assert users_of(claim) == ["second"]


async def test_pods_share_a_claim_by_name_that_stays():
    """G45, G50: the claim is created by a user; it is deallocated with the group, and not deleted."""
    async with a_cluster() as (server, live):
        spec = {"devices": {"requests": [REQUEST]}}
        await live.client.create(ResourceClaim.KIND, a_document(ResourceClaim, "mine", spec), "default")
        await a_gang(live, "gang", {"name": "gpu", "resourceClaimName": "mine"})
        assert await live.bound(*names("gang")) == ["node-1"] * 3
        [claim] = server.store.list(CLAIMS)
        assert users_of(claim) == ["gang"]
        for name in names("gang"):
            await live.client.delete(Pod.KIND, name, "default")
        await live.client.delete(PodGroup.KIND, "gang", "default")
        await live.until(lambda: not users_of(server.store.list(CLAIMS)[0]))
        assert "allocation" not in server.store.list(CLAIMS)[0]["status"]


async def test_a_gang_that_does_not_fit_the_node_of_its_device_holds_no_device():
    """G47: two of three pods fit there; what was tried is undone, and another pod gets the device."""
    async with a_cluster() as (server, live):
        await a_gang(live, "large", BY_TEMPLATE, cpu="2")
        await live.until(lambda: refused(live, "large"))
        assert "allocation" not in server.store.list(CLAIMS)[0].get("status", {})
        await a_pod(live, "single", resourceClaims=[BY_TEMPLATE])
        assert await live.bound("single") == ["node-1"]
        users = [users_of(claim) for claim in server.store.list(CLAIMS)]
        assert sorted(users) == [[], ["single"]]


async def test_preemption_makes_room_for_a_gang_on_the_node_of_its_device():
    """G41, G47: each trial of the group shares the claim, and none leaves it in flight."""
    async with a_cluster("WorkloadAwarePreemption") as (server, live):
        for name, value in (("low", 1), ("high", 100)):
            body = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}}
            server.store.create({**body, "value": value})
        selector = {"kubernetes.io/hostname": "node-1"}
        await a_pod(live, "victim", "3", priorityClassName="low", nodeSelector=selector)
        assert await live.bound("victim") == ["node-1"]
        await a_gang(live, "urgent", BY_TEMPLATE, cpu="1", priorityClassName="high")
        assert await live.bound(*names("urgent")) == ["node-1"] * 3
        assert "victim" not in live.pods
