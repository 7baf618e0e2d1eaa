"""The claims of a pod, sorted by what must happen to them; and what is wrong with those that cannot be used."""

from __future__ import annotations

from typing import NamedTuple

from mooring.base.errors import Fault
from mooring.framework import Objects, Pod
from mooring.objects.storage import WAIT_FOR_FIRST_CONSUMER, PersistentVolumeClaim, StorageClass
from mooring.plugins.default.volume_binding.assumed_objects import AssumedObjects
from mooring.plugins.default.volume_claims import claim_not_found, not_its_own

LOST = "Lost"


class PodVolumeClaims(NamedTuple):
    """A pod's claims, each kind in the order of its volumes."""

    bound: tuple[PersistentVolumeClaim, ...] = ()
    delayed: tuple[PersistentVolumeClaim, ...] = ()
    """Without a volume, and rightly: their class waits for a pod, and we choose."""
    immediate: tuple[PersistentVolumeClaim, ...] = ()
    """Without a volume, though the volume controller should have bound them by now."""


def problem_of_claims(pod: Pod, claims: Objects[PersistentVolumeClaim]) -> str | None:
    """What keeps a pod with claims from being placed anywhere; None: nothing."""
    for volume in pod.volumes:
        if volume.claim is None:
            continue
        claim = claims.get(volume.claim, pod.namespace)
        if claim is None:
            if volume.is_ephemeral:
                return f'waiting for ephemeral volume controller to create the persistentvolumeclaim "{volume.claim}"'
            return claim_not_found(volume.claim)
        if claim.status.phase == LOST:
            return (
                f'persistentvolumeclaim "{claim.name}" bound to non-existent persistentvolume'
                f' "{claim.spec.volume_name}"'
            )
        if claim.metadata.deletion_timestamp is not None:
            return f'persistentvolumeclaim "{claim.name}" is being deleted'
        if volume.is_ephemeral and (problem := not_its_own(pod, claim)):
            return problem
    return None


def classified_claims(
    pod: Pod, claims: AssumedObjects[PersistentVolumeClaim], classes: Objects[StorageClass]
) -> PodVolumeClaims:
    """The pod's claims. One that names its volume is the volume controller's to bind, whatever its class."""
    bound, delayed, immediate = [], [], []
    for volume in pod.volumes:
        claim = claims.get(volume.claim, pod.namespace) if volume.claim is not None else None
        if claim is None:
            continue
        if claim.is_bound:
            bound.append(claim)
        elif _waits_for_pods(claim, classes) and not claim.spec.volume_name:
            delayed.append(claim)
        else:
            immediate.append(claim)
    return PodVolumeClaims(tuple(bound), tuple(delayed), tuple(immediate))


def _waits_for_pods(claim: PersistentVolumeClaim, classes: Objects[StorageClass]) -> bool:
    storage_class = classes.get(claim.storage_class) if claim.storage_class else None
    if storage_class is None:
        return False
    if storage_class.volume_binding_mode is None:
        raise Fault(f'VolumeBindingMode not set for StorageClass "{claim.storage_class}"')
    return storage_class.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER
