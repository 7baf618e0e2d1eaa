"""What a pod's claims get on the node chosen for it: assumed at once, then written, then waited for.

The scheduler binds and provisions no volume: it writes a claimRef or a selected node, and the volume controller and the
provisioner act on them. What was written stays when the pod fails to bind; the next attempt starts from it.
"""

from __future__ import annotations

from mooring.base.clock import Clock
from mooring.base.errors import Fault
from mooring.base.log import Log
from mooring.framework import NodeView, Pod, VolumeWriter
from mooring.objects.meta import KubeObject
from mooring.objects.storage import PersistentVolume, PersistentVolumeClaim
from mooring.plugins.default.volume_binding.assumed_objects import AssumedObjects
from mooring.plugins.default.volume_binding.bound_volumes import BoundVolumes
from mooring.plugins.default.volume_binding.search import Found, Reservation

POLL_SECONDS = 1.0


class VolumeBinder:
    """Makes, carries out and takes back reservations."""

    def __init__(
        self,
        volumes: AssumedObjects[PersistentVolume],
        claims: AssumedObjects[PersistentVolumeClaim],
        bound: BoundVolumes,
        writer: VolumeWriter,
        clock: Clock,
        log: Log,
        *,
        timeout_seconds: float,
    ) -> None:
        self._volumes = volumes
        self._claims = claims
        self._bound = bound
        self._writer = writer
        self._clock = clock
        self._log = log
        self._timeout_seconds = timeout_seconds

    def reserve(self, found: Found, node: str) -> Reservation:
        """Assume that the claims have got what was found for them. All of it, or it raises."""
        reservation = Reservation()
        try:
            for claim, volume in found.bindings:
                claimed = volume.claimed_by(claim)
                if claimed is not volume:
                    self._volumes.assume(claimed)
                reservation.volumes.append((claimed, claim))
            for claim, _ in found.provisions:
                selected = claim.on_node(node)
                self._claims.assume(selected)
                reservation.claims.append(selected)
        except Fault:
            self.revert(reservation)
            raise
        return reservation

    def revert(self, reservation: Reservation) -> None:
        """What has been written is of a newer version than what was assumed: that stays until the watch shows it."""
        for volume, _ in reservation.volumes:
            self._volumes.take_back(volume)
        for claim in reservation.claims:
            self._claims.take_back(claim)

    async def bind(self, reservation: Reservation, pod: Pod, node: NodeView) -> None:
        """Write, and wait until the claims are bound. Raises when the pod must be tried again."""
        await self._write(reservation, pod)
        deadline = self._clock.monotonic() + self._timeout_seconds
        while (left := deadline - self._clock.monotonic()) > 0:
            await self._clock.sleep(min(POLL_SECONDS, left))
            if self._clock.monotonic() >= deadline:
                break
            try:
                if self._is_done(reservation, pod, node):
                    self._log.v(2).info("All PVCs for pod are bound", pod=pod)
                    return
            except Fault as problem:
                raise Fault(f"binding volumes: {problem}") from problem
        raise Fault("binding volumes: context deadline exceeded")

    async def _write(self, reservation: Reservation, pod: Pod) -> None:
        for place, (volume, claim) in enumerate(reservation.volumes):
            written = await self._writer.write_claim_ref(volume)
            reservation.volumes[place] = written, claim
            self._log.v(2).info(
                "Updated PersistentVolume with claim. Waiting for binding to complete", pod=pod, PV=written, PVC=claim
            )
        for place, claim in enumerate(reservation.claims):
            reservation.claims[place] = await self._writer.write_selected_node(claim)

    def _is_done(self, reservation: Reservation, pod: Pod, node: NodeView) -> bool:
        """Whether every claim is bound, by what the watch shows; raises when waiting is of no use."""
        if node.row < 0:
            raise Fault(f'failed to get node "{node.name}": node "{node.name}" not found')
        if all(placed.uid != pod.uid for placed in node.pods):
            raise Fault(f'pod does not exist any more: pod "{pod.name}" not found')
        return all(self._is_claimed(volume, claim, node) for volume, claim in reservation.volumes) and all(
            self._is_provided(claim, node) for claim in reservation.claims
        )

    def _is_claimed(self, written: PersistentVolume, claim: PersistentVolumeClaim, node: NodeView) -> bool:
        volume = self._volumes.shown.get(written.name)
        if volume is None:
            raise Fault(f'failed to check binding: persistentvolumes "{written.name}" not found')
        now = self._claims.shown.get(claim.name, claim.namespace)
        if now is None:
            raise Fault(f'failed to check binding: persistentvolumeclaims "{claim.key}" not found')
        if _is_older(volume, written):
            return False
        self._check_usable(volume, node)
        if volume.spec.claim_ref is None or not volume.spec.claim_ref.uid:
            raise Fault(f'ClaimRef got reset for pv "{volume.name}"')
        return now.is_bound

    def _is_provided(self, written: PersistentVolumeClaim, node: NodeView) -> bool:
        claim = self._claims.shown.get(written.name, written.namespace)
        if claim is None:
            raise Fault(f'failed to check provisioning pvc: persistentvolumeclaims "{written.key}" not found')
        if _is_older(claim, written):
            return False
        if not claim.metadata.annotations:
            raise Fault(f'selectedNode annotation reset for PVC "{claim.name}"')
        if claim.selected_node != node.name:
            # A provisioner that fails removes the selected node.
            raise Fault(f'provisioning failed for PVC "{claim.name}"')
        if claim.spec.volume_name:
            volume = self._volumes.shown.get(claim.spec.volume_name)
            if volume is None:
                return False  # not shown yet; if it is gone, the claim will be unbound
            self._check_usable(volume, node)
        return claim.is_bound

    def _check_usable(self, volume: PersistentVolume, node: NodeView) -> None:
        if not self._bound.is_usable(volume, node):
            raise Fault(
                f'pv "{volume.name}" node affinity doesn\'t match node "{node.name}": no matching NodeSelectorTerms'
            )


def _is_older(shown: KubeObject, written: KubeObject) -> bool:
    """Whether the watch has not shown yet what was written. Versions of one kind are numbers that grow."""
    return _number(shown) < _number(written)


def _number(item: KubeObject) -> int:
    text = item.metadata.resource_version
    return int(text) if text.isdecimal() else 0
