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

GATES = read_gates(["GenericWorkload=true,GangScheduling=true,DRAWorkloadResourceClaims=true"]).gates
BY_TEMPLATE = {"name": "gpu", "resourceClaimTemplateName": "gpu"}
CLAIMS = "resourceclaims.resource.k8s.io"


@asynccontextmanager
async def a_cluster() -> AsyncIterator[tuple[EmbeddedApiServer, Live]]:
    """Two nodes with one device each, and a template of claims for one."""
    server = EmbeddedApiServer(features=GATES.enabled())
    await server.start()
    try:
        async with a_live_scheduler(server, gates=GATES) as live:
            simulated = SimulatedCluster(
                live.client, clock=SystemClock(), heartbeat_seconds=0, features=GATES.enabled()
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


async def a_gang(live: Live, name: str, *claims: dict[str, Any], pods: int = 3) -> None:
    spec = {"schedulingPolicy": {"gang": {"minCount": pods}}, "resourceClaims": list(claims)}
    await live.client.create(PodGroup.KIND, a_document(PodGroup, name, spec), "default")
    for number in range(pods):
        member = {
            "schedulingGroup": {"podGroupName": name},
            "resourceClaims": list(claims),
            "containers": [{"name": "main", "image": "pause"}],
            "terminationGracePeriodSeconds": 0,
        }
        await live.client.create(Pod.KIND, a_document(Pod, f"{name}-{number}", member), "default")


def names(gang: str, pods: int = 3) -> list[str]:
    return [f"{gang}-{number}" for number in range(pods)]


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
