"""The persistent volume controller, with a provisioner of every class.

A claim is bound to the volume that is reserved for it; one with immediate binding, to the smallest matching volume.
Otherwise a volume is provisioned, if the claim's class has a provisioner: at once, or when a scheduler has selected a
node. It is accessible from every node. It is deleted with its claim, according to the reclaim policy.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from mooring.base.clock import Clock
from mooring.base.errors import ApiError
from mooring.base.log import Log
from mooring.client import ApiClient
from mooring.client.core_event_recorder import CoreEventRecorder, EventSource
from mooring.client.informer import Informer
from mooring.client.work_queue import WorkQueue
from mooring.objects.meta import KubeObject
from mooring.objects.storage import (
    BIND_COMPLETED,
    BOUND_BY_CONTROLLER,
    NO_PROVISIONER,
    WAIT_FOR_FIRST_CONSUMER,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
)
from mooring.simulated.records import Document

PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"
_WORKERS = 8

DEFAULT_CLASS: Document = {
    "apiVersion": "storage.k8s.io/v1",
    "kind": "StorageClass",
    "metadata": {"name": "standard", "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
    "provisioner": "mooring.dev/simulated",
    "volumeBindingMode": WAIT_FOR_FIRST_CONSUMER,
}
"""The default StorageClass of a cluster that has none of its own, as in clusters for development."""


class PersistentVolumeController:
    """Binds claims and volumes, and provisions volumes."""

    def __init__(
        self,
        client: ApiClient,
        claims: Informer[PersistentVolumeClaim],
        volumes: Informer[PersistentVolume],
        classes: Informer[StorageClass],
        events: CoreEventRecorder,
        *,
        clock: Clock,
    ) -> None:
        self._client = client
        self._claims = claims
        self._volumes = volumes
        self._classes = classes
        self._events = events
        log = Log("volumes")
        self._claim_queue = WorkQueue("claim", self._sync_claim, clock=clock, log=log, workers=_WORKERS)
        self._volume_queue = WorkQueue("volume", self._sync_volume, clock=clock, log=log, workers=_WORKERS)
        claims.subscribe(changed=lambda claim: self._claim_queue.add(claim.key), deleted=self._claim_deleted)
        volumes.subscribe(changed=self._volume_changed)
        classes.subscribe(changed=lambda each: self._enqueue_claims_of(each.name))

    def tasks(self) -> dict[str, Callable[[], Awaitable[None]]]:
        return {"claims": self._claim_queue.run, "volumes": self._volume_queue.run}

    # Event handlers

    def _volume_changed(self, volume: PersistentVolume) -> None:
        self._volume_queue.add(volume.key)
        ref = volume.spec.claim_ref
        if ref is not None:
            self._claim_queue.add(f"{ref.namespace}/{ref.name}")
        else:
            self._enqueue_claims_of(volume.storage_class)

    def _claim_deleted(self, claim: PersistentVolumeClaim) -> None:
        for volume in self._volumes.all():
            if volume.is_claimed_by(claim):
                self._volume_queue.add(volume.key)

    def _enqueue_claims_of(self, storage_class: str) -> None:
        for claim in self._claims.all():
            if claim.storage_class == storage_class and not claim.is_bound:
                self._claim_queue.add(claim.key)

    # Claims

    async def _sync_claim(self, key: str) -> None:
        claim = self._claims.get(key)
        if claim is None or claim.metadata.deletion_timestamp is not None:
            return
        if claim.is_bound:
            volume = self._volumes.get(claim.spec.volume_name)
        else:
            volume = self._volume_for(claim) or await self._provision(claim)
        if volume is not None:
            await self._bind(claim, volume)

    def _volume_for(self, claim: PersistentVolumeClaim) -> PersistentVolume | None:
        if claim.spec.volume_name:
            named = self._volumes.get(claim.spec.volume_name)
            is_ours = named is not None and (named.spec.claim_ref is None or named.is_claimed_by(claim))
            return named if is_ours else None
        kept = next((volume for volume in self._volumes.all() if volume.is_claimed_by(claim)), None)
        if kept is not None or self._waits_for_pods(claim):
            return kept
        free = [volume for volume in self._volumes.all() if is_match(volume, claim)]
        return min(free, key=lambda volume: volume.capacity_bytes, default=None)

    def _waits_for_pods(self, claim: PersistentVolumeClaim) -> bool:
        storage_class = self._classes.get(claim.storage_class)
        return storage_class is not None and storage_class.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER

    async def _provision(self, claim: PersistentVolumeClaim) -> PersistentVolume | None:
        """A new volume for the claim; None if it waits for a node, or its class has no provisioner."""
        storage_class = self._classes.get(claim.storage_class)
        if storage_class is None or storage_class.provisioner in ("", NO_PROVISIONER) or claim.spec.volume_name:
            return None
        if self._waits_for_pods(claim) and claim.selected_node is None:
            return None
        name, driver = f"pvc-{claim.uid}", storage_class.provisioner
        policy = (await self._client.get(StorageClass.KIND, storage_class.name)).get("reclaimPolicy", "Delete")
        body: Document = {
            "metadata": {"name": name, "annotations": {PROVISIONED_BY: driver}},
            "spec": {
                "capacity": {"storage": claim.spec.resources.requests.get("storage", "1Gi")},
                "accessModes": claim.spec.access_modes,
                "persistentVolumeReclaimPolicy": policy,
                "storageClassName": storage_class.name,
                "volumeMode": claim.spec.volume_mode or "Filesystem",
                "claimRef": _claim_ref(claim),
                "csi": {"driver": driver, "volumeHandle": name},
            },
        }
        try:
            created = await self._client.create(PersistentVolume.KIND, body)
        except ApiError as error:
            if error.reason != "AlreadyExists":
                raise
            created = await self._client.get(PersistentVolume.KIND, name)
        else:
            message = f"Successfully provisioned volume {name}"
            self._events.record(claim, EventSource(driver), "ProvisioningSucceeded", message)
        return msgspec.convert(created, PersistentVolume)

    async def _bind(self, claim: PersistentVolumeClaim, volume: PersistentVolume) -> None:
        """Bind the volume to the claim, then the claim to the volume; each step may have been done before."""
        claimed = volume.claimed_by(claim)
        if claimed is not volume:
            annotations = {BOUND_BY_CONTROLLER: "yes"} if volume.spec.claim_ref is None else {}
            await self._patch(volume, {"spec": {"claimRef": _claim_ref(claim)}}, annotations)
        await self._report(volume, {"phase": "Bound"})
        if not claim.is_bound:
            annotations = {BIND_COMPLETED: "yes"}
            if not claim.spec.volume_name:
                annotations[BOUND_BY_CONTROLLER] = "yes"
            await self._patch(claim, {"spec": {"volumeName": volume.name}}, annotations)
        status = {"phase": "Bound", "accessModes": volume.spec.access_modes, "capacity": volume.spec.capacity}
        await self._report(claim, status)

    # Volumes

    async def _sync_volume(self, name: str) -> None:
        volume = self._volumes.get(name)
        if volume is None or volume.metadata.deletion_timestamp is not None:
            return
        ref = volume.spec.claim_ref
        if ref is None or not ref.uid:
            await self._report(volume, {"phase": "Available"})
        elif await self._is_gone(ref.namespace, ref.name, ref.uid):
            await self._release(volume)

    async def _is_gone(self, namespace: str, name: str, uid: str) -> bool:
        """Read from the server: the watches of claims and volumes are not synchronized."""
        known = self._claims.get(f"{namespace}/{name}")
        if known is not None and known.uid == uid:
            return False
        try:
            there = await self._client.get(PersistentVolumeClaim.KIND, name, namespace)
        except ApiError as error:
            if error.code != 404:
                raise
            return True
        return bool(there["metadata"]["uid"] != uid)

    async def _release(self, volume: PersistentVolume) -> None:
        spec = (await self._client.get(PersistentVolume.KIND, volume.name))["spec"]
        is_ours = PROVISIONED_BY in volume.metadata.annotations
        if is_ours and spec.get("persistentVolumeReclaimPolicy") == "Delete":
            await self._client.delete(PersistentVolume.KIND, volume.name, uid=volume.uid)
        else:
            await self._report(volume, {"phase": "Released"})

    # Writing

    async def _patch(
        self, about: PersistentVolume | PersistentVolumeClaim, body: Document, annotations: dict[str, str]
    ) -> None:
        metadata: dict[str, Any] = {"resourceVersion": about.metadata.resource_version, "annotations": annotations}
        await self._client.patch(
            type(about).KIND, about.name, about.namespace or None, {"metadata": metadata, **body}, form="merge"
        )

    async def _report(self, about: PersistentVolume | PersistentVolumeClaim, status: Document) -> None:
        if about.status.phase != status["phase"]:
            await self._client.patch(
                type(about).KIND, about.name, about.namespace or None, {"status": status}, subresource="status"
            )


def is_match(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Whether the volume is free, and is what the claim requests."""
    return (
        volume.spec.claim_ref is None
        and volume.metadata.deletion_timestamp is None
        and volume.storage_class == claim.storage_class
        and volume.capacity_bytes >= (claim.requested_bytes or 0)
        and (volume.spec.volume_mode or "Filesystem") == (claim.spec.volume_mode or "Filesystem")
        and set(claim.spec.access_modes) <= set(volume.spec.access_modes)
        and (claim.spec.selector is None or claim.spec.selector.matches(volume.labels))
    )


def _claim_ref(claim: KubeObject) -> Document:
    kind = type(claim).KIND
    return {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "namespace": claim.namespace,
        "name": claim.name,
        "uid": claim.uid,
        "resourceVersion": claim.metadata.resource_version,
    }
