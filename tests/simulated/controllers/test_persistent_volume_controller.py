"""The persistent volume controller: which claims are bound to which volumes, and when."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from tests.simulated.conftest import PATIENCE_SECONDS, POD, Bench

from mooring.base.errors import ApiError
from mooring.client.informer import Informer
from mooring.objects.storage import (
    BIND_COMPLETED,
    NO_PROVISIONER,
    SELECTED_NODE,
    WAIT_FOR_FIRST_CONSUMER,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
)

MADE_BY = "csi.example.com"


class Storage:
    """What a client does and sees of volumes."""

    def __init__(self, bench: Bench) -> None:
        self._client = bench.client
        self._moved = asyncio.Event()
        self.claims = Informer(bench.client, PersistentVolumeClaim)
        self.volumes = Informer(bench.client, PersistentVolume)
        for informer in (self.claims, self.volumes):
            informer.subscribe(changed=self._news, deleted=self._news)
        self._tasks = [asyncio.ensure_future(each.reflector.run()) for each in (self.claims, self.volumes)]

    def _news(self, _: Any) -> None:
        self._moved.set()

    def stop(self) -> None:
        for task in self._tasks:
            task.cancel()

    async def until(self, happened: Callable[[], object]) -> None:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not happened():
                self._moved.clear()
                await self._moved.wait()

    async def storage_class(self, provisioner: str = MADE_BY, mode: str = "Immediate", policy: str = "Delete") -> None:
        body = {"metadata": {"name": "disks"}, "provisioner": provisioner}
        await self._client.create(StorageClass.KIND, body | {"volumeBindingMode": mode, "reclaimPolicy": policy})

    async def claim(self, name: str = "data", size: str = "1Gi", **spec: Any) -> None:
        spec |= {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}}
        body = {"metadata": {"name": name}, "spec": {"storageClassName": "disks"} | spec}
        await self._client.create(PersistentVolumeClaim.KIND, body, "default")

    async def volume(self, name: str, size: str = "1Gi", **spec: Any) -> None:
        spec |= {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": size}, "hostPath": {"path": "/mnt"}}
        body = {"metadata": {"name": name}, "spec": {"storageClassName": "disks"} | spec}
        await self._client.create(PersistentVolume.KIND, body)

    async def bound(self, name: str = "data") -> str:
        """Wait until claim and volume are bound; returns the volume's name."""

        def both() -> bool:
            claim = self.claims.get(f"default/{name}")
            volume = self.volumes.get(claim.spec.volume_name) if claim is not None else None
            return (
                claim is not None
                and volume is not None
                and claim.is_bound
                and volume.is_claimed_by(claim)
                and (claim.status.phase, volume.status.phase) == ("Bound", "Bound")
            )

        await self.until(both)
        claim = self.claims.get(f"default/{name}")
        assert claim is not None
        return claim.spec.volume_name

    def phase(self, name: str) -> str:
        volume = self.volumes.get(name)
        return volume.status.phase if volume is not None else "gone"


@pytest.fixture
async def storage(bench: Bench):
    await bench.start(1)
    storage = Storage(bench)
    yield storage
    storage.stop()


async def test_a_claim_that_need_not_wait_gets_a_new_volume(bench: Bench, storage: Storage):
    await storage.claim()
    await storage.storage_class()
    name = await storage.bound()
    claim = storage.claims.get("default/data")
    assert claim is not None
    assert name == f"pvc-{claim.uid}"
    volume = await bench.client.get(PersistentVolume.KIND, name)
    assert volume["spec"]["csi"] == {"driver": MADE_BY, "volumeHandle": name}
    assert volume["spec"]["persistentVolumeReclaimPolicy"] == "Delete"
    await bench.seen.until(
        lambda: ("ProvisioningSucceeded", f"Successfully provisioned volume {name}") in bench.seen.events
    )


async def test_a_claim_that_waits_for_a_pod_gets_it_when_a_node_is_selected(bench: Bench, storage: Storage):
    await storage.storage_class(mode=WAIT_FOR_FIRST_CONSUMER)
    await storage.claim()
    await storage.volume("free")
    await storage.until(lambda: storage.phase("free") == "Available")
    selected = {"metadata": {"annotations": {SELECTED_NODE: "node-1"}}}
    await bench.client.patch(PersistentVolumeClaim.KIND, "data", "default", selected, form="merge")
    assert (await storage.bound()).startswith("pvc-")
    assert storage.phase("free") == "Available"


@pytest.mark.parametrize("mode", ["Immediate", WAIT_FOR_FIRST_CONSUMER])
async def test_a_claim_gets_the_volume_that_is_kept_for_it(storage: Storage, mode: str):
    await storage.storage_class(NO_PROVISIONER, mode)
    await storage.volume("kept", claimRef={"namespace": "default", "name": "data"})
    await storage.claim()
    assert await storage.bound() == "kept"


async def test_a_claim_that_need_not_wait_gets_the_smallest_free_volume_that_will_do(storage: Storage):
    await storage.storage_class(NO_PROVISIONER)
    for name, size in (("small", "1Gi"), ("large", "9Gi"), ("right", "5Gi")):
        await storage.volume(name, size)
    await storage.volume("block", "5Gi", volumeMode="Block")
    for name in ("small", "large", "right", "block"):
        await storage.until(lambda name=name: storage.phase(name) == "Available")  # type: ignore[misc]
    await storage.claim(size="4Gi")
    assert await storage.bound() == "right"


async def test_a_claim_gets_the_volume_that_it_names(storage: Storage):
    await storage.storage_class(NO_PROVISIONER)
    await storage.claim(volumeName="mine")
    await storage.volume("mine")
    assert await storage.bound() == "mine"
    claim = storage.claims.get("default/data")
    assert claim is not None
    assert set(claim.metadata.annotations) == {BIND_COMPLETED}


@pytest.mark.parametrize(("policy", "fate"), [("Delete", "gone"), ("Retain", "Released")])
async def test_a_volume_that_was_made_follows_its_claim_unless_it_is_to_stay(bench, storage, policy, fate):
    await storage.storage_class(policy=policy)
    await storage.claim()
    name = await storage.bound()
    await bench.client.delete(PersistentVolumeClaim.KIND, "data", "default")
    await storage.until(lambda: storage.phase(name) == fate)
    if fate == "gone":
        with pytest.raises(ApiError):
            await bench.client.get(PersistentVolume.KIND, name)


async def test_a_pod_that_brings_its_own_volume_gets_a_claim_that_goes_with_it(bench: Bench, storage: Storage):
    await storage.storage_class()
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "disks",
        "resources": {"requests": {"storage": "1Gi"}},
    }
    template = {"metadata": {"labels": {"for": "scratch"}}, "spec": spec}
    pod = {
        "metadata": {"name": "web"},
        "spec": {
            "containers": [{"name": "main", "image": "pause"}],
            "volumes": [{"name": "scratch", "ephemeral": {"volumeClaimTemplate": template}}, {"name": "empty"}],
        },
    }
    created = await bench.client.create(POD, pod, "default")
    await storage.bound("web-scratch")
    claim = storage.claims.get("default/web-scratch")
    assert claim is not None
    assert claim.labels == {"for": "scratch"}
    assert [owner.uid for owner in claim.metadata.owner_references] == [created["metadata"]["uid"]]
    await bench.client.delete(POD, "web", "default", grace_seconds=0)
    await storage.until(lambda: storage.claims.get("default/web-scratch") is None)
    await storage.until(lambda: storage.phase(claim.spec.volume_name) == "gone")
