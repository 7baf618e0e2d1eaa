"""The persistent volume controller of a simulation: binds claims to volumes and provisions volumes, at once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from mooring.base.errors import ApiError
from mooring.objects import ObjectMeta
from mooring.objects.core import ObjectReference
from mooring.objects.meta import Kind
from mooring.objects.storage import (
    BIND_COMPLETED,
    NO_PROVISIONER,
    WAIT_FOR_FIRST_CONSUMER,
    CSIVolumeSource,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeSpec,
    StorageClass,
    VolumeStatus,
)
from mooring.scheduler.watching.informers import Informers
from mooring.simulated.controllers.persistent_volume_controller import PROVISIONED_BY, is_match

BOUND = VolumeStatus(phase="Bound")
NOT_FOUND = 404


class SimulatedStorage:
    """Claims and volumes, as plugins read them. A provisioned volume is accessible from every node."""

    def __init__(self, informers: Informers, next_version: Callable[[], str]) -> None:
        self._volumes = informers.store(PersistentVolume)
        self._claims = informers.store(PersistentVolumeClaim)
        self._classes = informers.store(StorageClass)
        self._next_version = next_version

    def bind_immediate(self) -> None:
        """Bind the claims that wait for no pod."""
        for claim in self._claims.all():
            if not claim.is_bound and not self._waits_for_pods(claim):
                free = [volume for volume in self._volumes.all() if self._is_for(volume, claim)]
                volume = min(free, key=lambda each: each.capacity_bytes, default=None) or self._provisioned(claim)
                if volume is not None:
                    self._bind(claim, volume)

    def patch(self, kind: Kind, name: str, namespace: str | None, body: Mapping[str, Any]) -> dict[str, Any]:
        """What the scheduler writes: the claim that a volume is for, or the node that was selected for a claim."""
        annotations = body["metadata"].get("annotations") or {}
        if kind == PersistentVolume.KIND:
            volume = self._volumes.get(name)
            if volume is None:
                raise ApiError(NOT_FOUND, "NotFound", f'persistentvolumes "{name}" not found')
            claim_ref = msgspec.convert(body["spec"]["claimRef"], ObjectReference)
            written = PersistentVolume(
                metadata=self._changed(volume.metadata, annotations),
                spec=msgspec.structs.replace(volume.spec, claim_ref=claim_ref),
                status=volume.status,
            )
            asyncio.get_running_loop().call_soon(self._claimed, written)
            return self._served(written)
        claim = self._claims.get(name, namespace or "")
        if claim is None:
            raise ApiError(NOT_FOUND, "NotFound", f'persistentvolumeclaims "{name}" not found')
        metadata = self._changed(claim.metadata, annotations)
        selected = PersistentVolumeClaim(metadata=metadata, spec=claim.spec, status=claim.status)
        asyncio.get_running_loop().call_soon(self._selected, selected)
        return self._served(selected)

    def _claimed(self, volume: PersistentVolume) -> None:
        self._volumes.changed(volume)
        ref = volume.spec.claim_ref
        claim = self._claims.get(ref.name, ref.namespace) if ref is not None else None
        if claim is not None:
            self._bind(claim, volume)

    def _selected(self, claim: PersistentVolumeClaim) -> None:
        self._claims.changed(claim)
        if (volume := self._provisioned(claim)) is not None:
            self._bind(claim, volume)

    def _bind(self, claim: PersistentVolumeClaim, volume: PersistentVolume) -> None:
        claimed = volume.claimed_by(claim)
        self._volumes.changed(
            PersistentVolume(metadata=self._changed(claimed.metadata), spec=claimed.spec, status=BOUND)
        )
        spec = msgspec.structs.replace(claim.spec, volume_name=volume.name)
        metadata = self._changed(claim.metadata, {BIND_COMPLETED: "yes"})
        self._claims.changed(PersistentVolumeClaim(metadata=metadata, spec=spec, status=BOUND))

    def _provisioned(self, claim: PersistentVolumeClaim) -> PersistentVolume | None:
        """A new volume for the claim; None: its class has no provisioner."""
        storage_class = self._classes.get(claim.storage_class)
        if storage_class is None or storage_class.provisioner in ("", NO_PROVISIONER) or claim.spec.volume_name:
            return None
        name, driver = f"pvc-{claim.uid}", storage_class.provisioner
        metadata = ObjectMeta(name=name, uid=name, annotations={PROVISIONED_BY: driver})
        spec = PersistentVolumeSpec(
            capacity={"storage": claim.spec.resources.requests.get("storage", "1Gi")},
            access_modes=claim.spec.access_modes,
            storage_class_name=storage_class.name,
            volume_mode=claim.spec.volume_mode or "Filesystem",
            csi=CSIVolumeSource(driver=driver, volume_handle=name),
        )
        return PersistentVolume(metadata=metadata, spec=spec)

    def _is_for(self, volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
        if claim.spec.volume_name:
            return volume.name == claim.spec.volume_name
        return volume.is_claimed_by(claim) or is_match(volume, claim)

    def _waits_for_pods(self, claim: PersistentVolumeClaim) -> bool:
        storage_class = self._classes.get(claim.storage_class)
        return storage_class is not None and storage_class.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER

    def _changed(self, metadata: ObjectMeta, annotations: Mapping[str, str] | None = None) -> ObjectMeta:
        return msgspec.structs.replace(
            metadata,
            resource_version=self._next_version(),
            annotations={**metadata.annotations, **(annotations or {})},
        )

    @staticmethod
    def _served(written: PersistentVolume | PersistentVolumeClaim) -> dict[str, Any]:
        document: dict[str, Any] = msgspec.to_builtins(written)
        return document
