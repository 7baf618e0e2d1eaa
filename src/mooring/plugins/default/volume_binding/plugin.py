"""The rule of VolumeBinding.

Claims that are bound keep the pod where their volumes can be used. Claims whose class waits for a pod get, on each
node, the smallest free volume that will do, or a new one where their class can make it; once a node is chosen, they
are written and waited for before the pod is bound. Evicting pods never helps.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Annotated

import numpy as np

from mooring.base.errors import Fault, StateMissing
from mooring.framework import (
    UNRESOLVABLE,
    Action,
    Args,
    Clock,
    Cycle,
    FeatureGates,
    Hint,
    IntArray,
    Log,
    Meta,
    Node,
    NodeRows,
    NodeView,
    Objects,
    Plugin,
    Pod,
    Refusal,
    Rejection,
    Rejections,
    Skip,
    VolumeWriter,
)
from mooring.objects.storage import (
    MIGRATED_PLUGINS,
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
)
from mooring.plugins.default.csi_node_rows import CSINodeRows
from mooring.plugins.default.resource_scores import UtilizationShapePoint, shape_mistakes
from mooring.plugins.default.volume_binding.assumed_objects import AssumedObjects
from mooring.plugins.default.volume_binding.bound_volumes import BoundVolumes
from mooring.plugins.default.volume_binding.matching import Candidates, keys_of_volume
from mooring.plugins.default.volume_binding.pod_volume_claims import classified_claims, problem_of_claims
from mooring.plugins.default.volume_binding.provisioning import Provisioners
from mooring.plugins.default.volume_binding.scoring import CapacityScorer
from mooring.plugins.default.volume_binding.search import Reservation, Search
from mooring.plugins.default.volume_binding.volume_binder import VolumeBinder
from mooring.plugins.default.volume_claims import is_claim_of

UNBOUND = "pod has unbound immediate PersistentVolumeClaims"
DEFAULT_SHAPE = (UtilizationShapePoint(utilization=0, score=10), UtilizationShapePoint(utilization=100, score=0))
"""The emptier the storage, the better."""


class VolumeBindingArgs(Args):
    """Arguments of VolumeBinding."""

    bind_timeout_seconds: Annotated[
        int, Meta(description="How long a pod waits for its volumes to be bound or made before it is tried again.")
    ] = 600
    shape: Annotated[
        list[UtilizationShapePoint],
        Meta(
            description="Score by how much of the storage would be used; needs the feature gate StorageCapacityScoring."
        ),
    ] = []

    def mistakes(self) -> Iterable[tuple[str, str]]:
        if self.bind_timeout_seconds < 0:
            yield "bindTimeoutSeconds", f"must be 0 or more, got {self.bind_timeout_seconds}"
        yield from shape_mistakes(self.shape, "shape")


class VolumeBinding(Plugin):
    """Keep pods where their volumes are or can be made, and choose volumes for claims that wait for a pod."""

    pod_fields = ("spec.volumes",)
    per_template = True
    reads_requests = False
    binds_volumes = True
    missing_state_message = "not found"
    pre_filter_reads_pods = False
    score_needs_pre_score = False
    pre_bind_in_parallel = True

    def __init__(
        self,
        args: VolumeBindingArgs,
        gates: FeatureGates,
        claims: Objects[PersistentVolumeClaim],
        volumes: Objects[PersistentVolume],
        classes: Objects[StorageClass],
        csi_nodes: Objects[CSINode],
        drivers: Objects[CSIDriver],
        capacities: Objects[CSIStorageCapacity],
        writer: VolumeWriter,
        clock: Clock,
        log: Log,
    ) -> None:
        # pre_bind has its own timeout, whose message names what it waited for.
        self.longest_wait_seconds = max(self.longest_wait_seconds, args.bind_timeout_seconds + 60.0)
        self._watched_claims = claims
        self._claims = AssumedObjects(claims)
        self._classes = classes
        assumed_volumes = AssumedObjects(volumes)
        self._volumes_by_key = assumed_volumes.indexed(keys_of_volume)
        self._bound = BoundVolumes(assumed_volumes, csi_nodes)
        self._binder = VolumeBinder(
            assumed_volumes,
            self._claims,
            self._bound,
            writer,
            clock,
            log,
            timeout_seconds=args.bind_timeout_seconds,
        )
        capacities_by_class = capacities.indexed(lambda capacity: (capacity.storage_class_name,))
        self._provisioners = Provisioners(classes, drivers, capacities_by_class)
        self._rows = CSINodeRows(csi_nodes)
        self._scorer: CapacityScorer | None = None
        if gates.on("StorageCapacityScoring"):
            self._scorer = CapacityScorer(args.shape or DEFAULT_SHAPE)

    def sign(self, pod: Pod) -> tuple[()] | None:
        """Pods without volumes are all alike; what others need depends on their claims."""
        return None if pod.spec.has_volumes else ()

    def events(self) -> Iterable[Hint]:
        added_or_changed = Action.ADD | Action.UPDATE
        return [
            Hint(StorageClass, added_or_changed, self._allows_more_nodes),
            Hint(PersistentVolumeClaim, added_or_changed, self._is_its_claim),
            Hint(PersistentVolume, added_or_changed),
            Hint(Node, Action.ADD | Action.UPDATE_NODE_LABEL),
            Hint(CSINode, added_or_changed, self._migration_changed),
            Hint(CSIDriver, Action.UPDATE, self._stopped_publishing_capacity),
            Hint(CSIStorageCapacity, added_or_changed, self._has_more_capacity),
        ]

    def pre_filter(self, pod: Pod, cycle: Cycle) -> Search | Skip | Refusal:
        if not pod.volumes or all(volume.claim is None for volume in pod.volumes):
            if self._scorer is not None:
                cycle.set_filter_state(self, None)  # score returns 0 instead of missing its state
            return Skip()
        if problem := problem_of_claims(pod, self._watched_claims):
            return Refusal(problem, code=UNRESOLVABLE)
        claims = classified_claims(pod, self._claims, self._classes)
        if claims.immediate:
            return Refusal(UNBOUND, code=UNRESOLVABLE)
        selected = [claim for claim in claims.delayed if claim.selected_node is not None]
        # The smallest first, so that a large volume is left for a large claim.
        to_match = sorted(
            (claim for claim in claims.delayed if claim.selected_node is None),
            key=lambda claim: claim.requested_bytes or 0,
        )
        return Search(
            claims,
            self._bound,
            [Candidates(claim, self._volumes_by_key) for claim in to_match],
            [self._provisioners.provision(claim) for claim in selected],
            [self._provisioners.provision(claim) for claim in to_match],
        )

    def filter(self, pod: Pod, node: NodeView, cycle: Cycle) -> Rejection | None:
        search: Search = cycle.filter_state(self)
        reasons = search.at(node).reasons
        return Rejection(*reasons, code=UNRESOLVABLE) if reasons else None

    def filter_nodes(self, pod: Pod, nodes: NodeRows, cycle: Cycle) -> Iterator[Rejections]:
        """`filter`, for many nodes at once."""
        search: Search = cycle.filter_state(self)
        for reason, is_refused in search.over(nodes, self._rows.of(cycle.nodes)).refused:
            yield Rejections(is_refused, reason, unresolvable=True)

    def pre_score(self, pod: Pod, feasible: NodeRows, cycle: Cycle) -> Skip | None:
        if self._scorer is None:
            return Skip()
        cycle.filter_state(self)  # upstream's error where pre_filter is switched off
        return None

    def score(self, pod: Pod, node: NodeView, cycle: Cycle) -> int:
        search = self._scored(cycle)
        if self._scorer is None or search is None:
            return 0
        found = search.at(node)
        return self._scorer.score(found.bindings, found.provisions)

    def score_nodes(self, pod: Pod, nodes: NodeRows, cycle: Cycle) -> IntArray:
        """`score`, for many nodes at once."""
        search = self._scored(cycle)
        if self._scorer is None or search is None:
            return np.zeros(len(nodes), np.int64)
        return self._scorer.score_rows(search, search.over(nodes, self._rows.of(cycle.nodes)), len(nodes))

    def _scored(self, cycle: Cycle) -> Search | None:
        search: Search | None = cycle.filter_state(self) if self._scorer is not None else None
        return search

    def reserve(self, pod: Pod, node: NodeView, cycle: Cycle) -> Refusal | None:
        """Assume that the claims have their volumes, so that the next pods look for others."""
        if self._has_unbound(pod):
            search: Search = cycle.filter_state(self)
            search.reservation = self._binder.reserve(search.at(node), node.name)
        return None

    def unreserve(self, pod: Pod, node: NodeView, cycle: Cycle) -> None:
        """Take back what was assumed and not written."""
        if not pod.volumes:
            return
        try:
            search: Search | None = cycle.filter_state(self)
        except StateMissing:
            return
        if search is not None and search.reservation is not None:
            self._binder.revert(search.reservation)
            search.reservation = None

    def needs_pre_bind(self, pod: Pod, node: NodeView, cycle: Cycle) -> bool:
        return self._reserved(pod, node, cycle) is not None

    async def pre_bind(self, pod: Pod, node: NodeView, cycle: Cycle) -> Refusal | None:
        """Write what was assumed, and wait until others have bound the claims."""
        reservation = self._reserved(pod, node, cycle)
        if reservation is not None:
            await self._binder.bind(reservation, pod, node)
        return None

    def _reserved(self, pod: Pod, node: NodeView, cycle: Cycle) -> Reservation | None:
        if not pod.volumes:
            return None
        try:
            search: Search | None = cycle.filter_state(self)
        except StateMissing:
            search = None
        if search is not None and search.reservation is not None:
            return search.reservation
        if self._has_unbound(pod):  # where a profile switches `reserve` off
            raise Fault(f'no pod volume found for node "{node.name}"')
        return None

    def _has_unbound(self, pod: Pod) -> bool:
        """Whether the pod has a claim without a volume."""
        return any(
            volume.claim is not None
            and ((claim := self._claims.get(volume.claim, pod.namespace)) is None or not claim.is_bound)
            for volume in pod.volumes
        )

    def _allows_more_nodes(self, pod: Pod, before: StorageClass | None, after: StorageClass) -> bool:
        return before is None or before.allowed_topologies != after.allowed_topologies

    def _is_its_claim(self, pod: Pod, before: PersistentVolumeClaim | None, after: PersistentVolumeClaim) -> bool:
        return is_claim_of(pod, after)

    def _migration_changed(self, pod: Pod, before: CSINode | None, after: CSINode) -> bool:
        return before is None or before.metadata.annotations.get(
            MIGRATED_PLUGINS, ""
        ) != after.metadata.annotations.get(MIGRATED_PLUGINS, "")

    def _stopped_publishing_capacity(self, pod: Pod, before: CSIDriver, after: CSIDriver) -> bool:
        return bool(before.spec.storage_capacity and not after.spec.storage_capacity) and any(
            (volume.get("csi") or {}).get("driver") == after.name for volume in pod.spec.volumes
        )

    def _has_more_capacity(self, pod: Pod, before: CSIStorageCapacity | None, after: CSIStorageCapacity) -> bool:
        if before is None:
            return True
        had, has = before.largest_bytes, after.largest_bytes
        return has is not None and (had is None or has > had)
