"""Claims that wait for a pod, in a live scheduler: volumes are found or made, waited for, and never promised twice."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from tests.scheduler.conftest import PATIENCE_SECONDS, Live, a_configuration, a_live_scheduler, a_profile

from mooring.apiserver import EmbeddedApiServer
from mooring.base.clock import SystemClock
from mooring.client import Reflector
from mooring.objects import Pod
from mooring.objects.object_store import Present
from mooring.objects.storage import (
    NO_PROVISIONER,
    SELECTED_NODE,
    WAIT_FOR_FIRST_CONSUMER,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
)
from mooring.plugins.default.volume_binding.search import BIND_CONFLICT
from mooring.scheduler import shutdown
from mooring.simulated.cluster import SimulatedCluster

DRIVER = "csi.example.com"
HURRY = 20.0


class HurriedClock:
    """The scheduler checks every second whether claims are bound; here a second is short."""

    def now(self) -> float:
        return time.time() * HURRY

    def monotonic(self) -> float:
        return time.monotonic() * HURRY

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds / HURRY)


class Claims:
    """What the API server shows of claims."""

    def __init__(self) -> None:
        self.claims: dict[str, PersistentVolumeClaim] = {}
        self._changed = asyncio.Event()

    def found(self, claim: PersistentVolumeClaim) -> None:
        self.changed(claim)

    def listed(self, present: Present) -> None: ...

    def changed(self, claim: PersistentVolumeClaim) -> None:
        self.claims[claim.name] = claim
        self._changed.set()

    def deleted(self, claim: PersistentVolumeClaim) -> None:
        self.claims.pop(claim.name, None)

    async def until(self, name: str, test: Callable[[PersistentVolumeClaim], bool]) -> PersistentVolumeClaim:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while name not in self.claims or not test(self.claims[name]):
                self._changed.clear()
                await self._changed.wait()
        return self.claims[name]


@asynccontextmanager
async def watching_claims(live: Live) -> AsyncIterator[Claims]:
    claims = Claims()
    watching = asyncio.ensure_future(Reflector(live.client, PersistentVolumeClaim, claims).run())
    try:
        yield claims
    finally:
        watching.cancel()


@asynccontextmanager
async def a_provisioner(live: Live) -> AsyncIterator[None]:
    """The simulated volume controller and provisioner."""
    cluster = SimulatedCluster(live.client, clock=SystemClock(), all_nodes_are_simulated=False, heartbeat_seconds=0)
    await cluster.start()
    try:
        yield
    finally:
        await cluster.stop()


def a_scheduler(server: EmbeddedApiServer, *, timeout: int = 600) -> Any:
    args = f"[{{name: VolumeBinding, args: {{bindTimeoutSeconds: {timeout}}}}}]"
    config = a_configuration(a_profile("default-scheduler", args=args))
    return a_live_scheduler(server, config, clock=HurriedClock())


async def a_class(live: Live, provisioner: str = DRIVER) -> None:
    body = {
        "metadata": {"name": "slow"},
        "provisioner": provisioner,
        "volumeBindingMode": WAIT_FOR_FIRST_CONSUMER,
    }
    await live.client.create(StorageClass.KIND, body)


async def a_claim(live: Live, name: str = "data") -> None:
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "slow",
        "resources": {"requests": {"storage": "1Gi"}},
    }
    await live.client.create(PersistentVolumeClaim.KIND, {"metadata": {"name": name}, "spec": spec}, "default")


async def a_local_volume(live: Live, node: str) -> None:
    here = {"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}
    spec = {
        "capacity": {"storage": "2Gi"},
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "slow",
        "local": {"path": "/mnt"},
        "mountOptions": ["noatime"],
        "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [here]}]}},
    }
    await live.client.create(PersistentVolume.KIND, {"metadata": {"name": "disk"}, "spec": spec})


async def a_pod(live: Live, name: str, claim: str = "data") -> None:
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": claim}}
    spec = {"containers": [{"name": "main", "image": "pause"}], "volumes": [volume]}
    await live.client.create(Pod.KIND, {"metadata": {"name": name}, "spec": spec}, "default")


async def two_nodes(live: Live) -> None:
    for name in ("node-1", "node-2"):
        await live.node(name, labels={"kubernetes.io/hostname": name})


async def test_a_pod_goes_where_its_free_volume_is(server: EmbeddedApiServer):
    async with a_scheduler(server) as live, a_provisioner(live):
        await two_nodes(live)
        await a_class(live, NO_PROVISIONER)
        await a_local_volume(live, "node-2")
        await a_claim(live)
        await a_pod(live, "web")
        assert await live.bound("web") == ["node-2"]
        claim = await live.client.get(PersistentVolumeClaim.KIND, "data", "default")
        assert (claim["spec"]["volumeName"], claim["status"]["phase"]) == ("disk", "Bound")
        volume = await live.client.get(PersistentVolume.KIND, "disk")
        assert volume["spec"]["claimRef"]["uid"] == claim["metadata"]["uid"]
        # What we do not read is still there.
        assert (volume["spec"]["local"], volume["spec"]["mountOptions"]) == ({"path": "/mnt"}, ["noatime"])


async def test_a_pod_gets_a_new_volume(server: EmbeddedApiServer):
    async with a_scheduler(server) as live, a_provisioner(live):
        await two_nodes(live)
        await a_class(live)
        await a_claim(live)
        await a_pod(live, "web")
        [node] = await live.bound("web")
        claim = await live.client.get(PersistentVolumeClaim.KIND, "data", "default")
        assert claim["metadata"]["annotations"][SELECTED_NODE] == node
        volume = await live.client.get(PersistentVolume.KIND, claim["spec"]["volumeName"])
        assert volume["spec"]["csi"]["driver"] == DRIVER
        await a_pod(live, "second")  # the claim is bound by now: nothing to wait for
        assert await live.bound("second")


async def test_of_two_pods_that_want_one_volume_one_gets_it(server: EmbeddedApiServer):
    async with a_scheduler(server) as live, a_provisioner(live):
        await two_nodes(live)
        await a_class(live, NO_PROVISIONER)
        for name in ("first", "second"):
            await a_claim(live, name)
            await a_pod(live, name, name)
        for name in ("first", "second"):
            await live.refused(name, containing=BIND_CONFLICT)
        await a_local_volume(live, "node-1")
        await live.until(lambda: any(pod.spec.node_name for pod in live.pods.values()))
        [rejected] = [pod.name for pod in live.pods.values() if not pod.spec.node_name]
        await live.refused(rejected, containing=BIND_CONFLICT)
        assert not live.pods[rejected].spec.node_name


async def test_a_provisioner_that_never_responds_costs_an_attempt_and_leaves_nothing_behind(server: EmbeddedApiServer):
    async with a_scheduler(server, timeout=40) as live:
        await two_nodes(live)
        await a_class(live)
        await a_claim(live)
        await a_pod(live, "web")
        await live.until(lambda: "web" in live.pods and bool(live.pods["web"].status.nominated_node_name))
        late = 'running PreBind plugin "VolumeBinding": binding volumes: context deadline exceeded'
        assert await live.refused("web", containing="binding volumes") == late
        assert live.condition("web").reason == "SchedulerError"
        async with a_provisioner(live):
            assert await live.bound("web")
        plugin = next(each for each in live.scheduler.assembly.current.plugins if each.name == "VolumeBinding")
        assert not plugin._binder._claims.assumed


async def test_when_the_provisioner_gives_up_the_pod_is_tried_again(server: EmbeddedApiServer):
    async with a_scheduler(server) as live, watching_claims(live) as claims:
        await two_nodes(live)
        await a_class(live)
        await a_claim(live)
        await a_pod(live, "web")
        await claims.until("data", lambda claim: claim.selected_node is not None)
        given_up = {"metadata": {"annotations": {SELECTED_NODE: None, "example.com/tried": "yes"}}}
        await live.client.patch(PersistentVolumeClaim.KIND, "data", "default", given_up, form="merge")
        why = 'running PreBind plugin "VolumeBinding": binding volumes: provisioning failed for PVC "data"'
        assert await live.refused("web", containing="binding volumes") == why
        async with a_provisioner(live):
            assert await live.bound("web")


@pytest.mark.parametrize("gone", ["the claim", "the pod"])
async def test_what_is_deleted_while_it_is_waited_for_ends_the_waiting(server: EmbeddedApiServer, gone: str):
    async with a_scheduler(server) as live, watching_claims(live) as claims:
        await two_nodes(live)
        await a_class(live)
        await a_claim(live)
        await a_pod(live, "web")
        await claims.until("data", lambda claim: claim.selected_node is not None)
        uid = live.pods["web"].uid
        if gone == "the claim":
            await live.client.delete(PersistentVolumeClaim.KIND, "data", "default")
            await live.refused("web", containing='persistentvolumeclaim "data" not found')
        else:
            await live.client.delete(Pod.KIND, "web", "default", grace_seconds=0)
            await live.until(lambda: "web" not in live.pods)
        async with asyncio.timeout(PATIENCE_SECONDS):
            while live.core.bindings.is_binding(uid):  # noqa: ASYNC110  # nothing sets an event for it
                await asyncio.sleep(0.01)
        assert live.scheduler.state.pod_counts() == (0, 0)


async def test_a_scheduler_that_starts_in_the_middle_goes_on(
    server: EmbeddedApiServer, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(shutdown, "LAST_SECONDS", 0.1)  # the first one ends while it waits
    async with a_scheduler(server) as live, watching_claims(live) as claims:
        await two_nodes(live)
        await a_class(live)
        await a_claim(live)
        await a_pod(live, "web")
        claim = await claims.until("data", lambda claim: claim.selected_node is not None)
    async with a_scheduler(server) as live, a_provisioner(live):
        assert await live.bound("web") == [claim.selected_node]
