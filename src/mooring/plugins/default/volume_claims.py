"""Claims of a pod's volumes: what the volume plugins share. kube-scheduler's words for what is wrong with one."""

from __future__ import annotations

from mooring.framework import PlacedPod, Pod
from mooring.objects.storage import PersistentVolumeClaim


def claim_not_found(name: str) -> str:
    return f'persistentvolumeclaim "{name}" not found'


def volume_not_found(name: str) -> str:
    return f'persistentvolume "{name}" not found'


def class_not_found(name: str) -> str:
    return f'storageclass.storage.k8s.io "{name}" not found'


def uses_claim(pod: Pod, name: str, *, ephemeral: bool = True) -> bool:
    """As `is_claim_of`, by the claim's name in the pod's namespace."""
    return any(volume.claim == name and (ephemeral or not volume.is_ephemeral) for volume in pod.volumes)


def is_claim_of(pod: Pod, claim: PersistentVolumeClaim, *, ephemeral: bool = True) -> bool:
    """Whether a volume of the pod has this claim; `ephemeral`: also one that is made for the pod."""
    return claim.namespace == pod.namespace and uses_claim(pod, claim.name, ephemeral=ephemeral)


def not_its_own(pod: Pod | PlacedPod, claim: PersistentVolumeClaim) -> str | None:
    """What is wrong with the claim of an ephemeral volume that was not made for the pod; None: it was."""
    if any(owner.controller and owner.uid == pod.uid for owner in claim.metadata.owner_references):
        return None
    return f"PVC {claim.key} was not created for pod {pod.key} (pod is not owner)"
