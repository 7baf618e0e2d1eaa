"""VolumeRestrictions: what a storage system forbids to share.

A disk that a pod names itself (GCE PD, AWS EBS, Ceph RBD, iSCSI) must not be mounted twice on a node, except where all
mounts only read; AWS forbids even that. A claim with access mode ReadWriteOncePod is for one pod in the whole cluster.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from mooring.framework import (
    UNRESOLVABLE,
    Action,
    Cycle,
    Hint,
    Node,
    NodeRows,
    NodeView,
    Objects,
    PlacedPod,
    Plugin,
    Pod,
    Refusal,
    Rejection,
    Rejections,
    Skip,
)
from mooring.objects.storage import READ_WRITE_ONCE_POD, PersistentVolumeClaim
from mooring.objects.volumes import Disk, PodVolume
from mooring.plugins.default.volume_claims import claim_not_found, is_claim_of, uses_claim

DISK_CONFLICT = "node(s) had no available disk"
CLAIM_CONFLICT = (
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod"
)


class Restricted(NamedTuple):
    """What the pod brings that may be taken."""

    disks: tuple[Disk, ...]
    claim_is_taken: bool


class VolumeRestrictions(Plugin):
    """Refuse nodes where a disk is mounted that the pod must have alone, and claims that are for one pod only."""

    pod_fields = ("spec.volumes",)
    per_template = True
    reads_requests = False
    missing_state_message = 'cannot read "{}" from cycleState'

    def __init__(self, claims: Objects[PersistentVolumeClaim]) -> None:
        self._claims = claims

    def sign(self, pod: Pod) -> tuple[()] | None:
        """Pods without volumes are all alike; what others need depends on their claims."""
        return None if pod.spec.has_volumes else ()

    def events(self) -> Iterable[Hint]:
        return [
            Hint(Pod, Action.DELETE, self._gave_something_back),
            Hint(Node, Action.ADD),
            Hint(PersistentVolumeClaim, Action.ADD, self._is_its_claim),
        ]

    def pre_filter(self, pod: Pod, cycle: Cycle) -> Restricted | Skip | Refusal:
        if not pod.volumes:
            return Skip()
        for_one_pod = set()
        for volume in pod.volumes:
            if volume.claim is None or volume.is_ephemeral:
                continue
            claim = self._claims.get(volume.claim, pod.namespace)
            if claim is None:
                return Refusal(claim_not_found(volume.claim), code=UNRESOLVABLE)
            if READ_WRITE_ONCE_POD in claim.spec.access_modes:
                for_one_pod.add(volume.claim)
        disks = _disks(pod.volumes)
        is_taken = bool(for_one_pod) and cycle.claim_uses(for_one_pod) > 0
        return Restricted(disks, is_taken) if disks or is_taken else Skip()

    def filter(self, pod: Pod, node: NodeView, cycle: Cycle) -> Rejection | None:
        wanted: Restricted = cycle.filter_state(self)
        if any(_conflict(wanted.disks, placed.volumes) for placed in node.pods):
            return Rejection(DISK_CONFLICT)
        return Rejection(CLAIM_CONFLICT) if wanted.claim_is_taken else None

    def filter_nodes(self, pod: Pod, nodes: NodeRows, cycle: Cycle) -> Iterator[Rejections]:
        """`filter`, for many nodes at once: pods are compared only where one of the disks is mounted."""
        wanted: Restricted = cycle.filter_state(self)
        has_conflict = np.zeros(len(nodes), bool)
        if wanted.disks:
            has_conflict = nodes.where_disk_mounted(wanted.disks).copy()
            for place in np.flatnonzero(has_conflict).tolist():
                has_conflict[place] = any(_conflict(wanted.disks, placed.volumes) for placed in nodes.at(place).pods)
            yield Rejections(has_conflict, DISK_CONFLICT)
        if wanted.claim_is_taken:
            yield Rejections(~has_conflict, CLAIM_CONFLICT)

    def _is_its_claim(self, pod: Pod, before: None, after: PersistentVolumeClaim) -> bool:
        return is_claim_of(pod, after, ephemeral=False)

    def _gave_something_back(self, pod: Pod, before: PlacedPod | Pod, after: None) -> bool:
        if before.namespace != pod.namespace:
            return False
        if _conflict(_disks(pod.volumes), before.volumes):
            return True
        return any(
            volume.claim is not None and not volume.is_ephemeral and uses_claim(pod, volume.claim, ephemeral=False)
            for volume in before.volumes
        )


def _disks(volumes: Sequence[PodVolume]) -> tuple[Disk, ...]:
    return tuple(volume.disk for volume in volumes if volume.disk is not None)


def _conflict(disks: Sequence[Disk], mounted: Sequence[PodVolume]) -> bool:
    return any(volume.disk is not None and disk.conflicts(volume.disk) for disk in disks for volume in mounted)
