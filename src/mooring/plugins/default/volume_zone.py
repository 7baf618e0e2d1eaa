"""VolumeZone: a volume with zone or region labels is used only in that zone or region.

It compares the labels of the volumes that the pod's claims are bound to; `a__b` names two zones. A node without any
zone or region label takes every volume. A volume's node affinity is checked by VolumeBinding.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from mooring.base.errors import StateMissing
from mooring.framework import (
    UNRESOLVABLE,
    Action,
    Cycle,
    Hint,
    Node,
    NodeRows,
    NodeView,
    Objects,
    Plugin,
    Pod,
    Reads,
    Refusal,
    Rejection,
    Rejections,
    Skip,
)
from mooring.objects.migration import BETA_REGION, BETA_ZONE, REGION, ZONE, ZONES_IN_LABEL
from mooring.objects.storage import WAIT_FOR_FIRST_CONSUMER, PersistentVolume, PersistentVolumeClaim, StorageClass
from mooring.plugins.default.volume_claims import claim_not_found, class_not_found, is_claim_of, volume_not_found

CONFLICT = "node(s) had no available volume zone"
TOPOLOGY_LABELS = (BETA_ZONE, BETA_REGION, ZONE, REGION)
CURRENT = {BETA_ZONE: ZONE, BETA_REGION: REGION}
"""Beta label → the current one, which a newer node has instead."""


class Topology(NamedTuple):
    """Where a volume can be used: a label and the values that will do."""

    key: str
    values: frozenset[str]


Topologies = tuple[Topology, ...]


class VolumeZone(Plugin):
    """Refuse nodes outside the zones and regions of the pod's volumes."""

    pod_fields = ("spec.volumes",)
    per_template = True
    reads_requests = False
    missing_state_message = "not found"
    reads = Reads.NODE
    pre_filter_reads_pods = False

    def __init__(
        self,
        claims: Objects[PersistentVolumeClaim],
        volumes: Objects[PersistentVolume],
        classes: Objects[StorageClass],
    ) -> None:
        self._claims = claims
        self._volumes = volumes
        self._classes = classes

    def sign(self, pod: Pod) -> tuple[()] | None:
        """Pods without volumes are all alike; what others need depends on their claims."""
        return None if pod.spec.has_volumes else ()

    def events(self) -> Iterable[Hint]:
        return [
            Hint(StorageClass, Action.ADD, self._waits_for_pods),
            Hint(Node, Action.ADD | Action.UPDATE_NODE_LABEL),
            Hint(PersistentVolumeClaim, Action.ADD | Action.UPDATE, self._is_its_claim),
            Hint(PersistentVolume, Action.ADD | Action.UPDATE, self._moved),
        ]

    def pre_filter(self, pod: Pod, cycle: Cycle) -> Topologies | Skip | Refusal:
        if not pod.volumes:
            return Skip()
        return self._topologies_of(pod) or Skip()

    def filter(self, pod: Pod, node: NodeView, cycle: Cycle) -> Rejection | None:
        topologies = self._topologies(pod, cycle)
        if isinstance(topologies, Refusal):
            return Rejection(*topologies.reasons, code=topologies.code)
        if not any(key in node.labels for key in TOPOLOGY_LABELS):
            return None  # nodes of a cluster in one zone need no labels
        for key, values in topologies:
            found = node.labels.get(key, node.labels.get(CURRENT.get(key, key)))
            if found not in values:
                return Rejection(CONFLICT, code=UNRESOLVABLE)
        return None

    def filter_nodes(self, pod: Pod, nodes: NodeRows, cycle: Cycle) -> Iterator[Rejections]:
        """`filter`, for many nodes at once."""
        topologies = self._topologies(pod, cycle)
        if isinstance(topologies, Refusal):
            yield Rejections(np.ones(len(nodes), bool), topologies.reasons[0], unresolvable=True)
            return
        is_elsewhere = np.zeros(len(nodes), bool)
        for key, values in topologies:
            is_there = nodes.where_label_in(key, values)
            if current := CURRENT.get(key):
                lacks_beta = nodes.where_label(key, lambda found: found is None)
                is_there |= lacks_beta & nodes.where_label_in(current, values)
            is_elsewhere |= ~is_there
        if is_elsewhere.any():
            has_topology = np.zeros(len(nodes), bool)
            for key in TOPOLOGY_LABELS:
                has_topology |= nodes.where_label(key, lambda found: found is not None)
            yield Rejections(is_elsewhere & has_topology, CONFLICT, unresolvable=True)

    def _topologies(self, pod: Pod, cycle: Cycle) -> Topologies | Refusal:
        try:
            topologies: Topologies = cycle.filter_state(self)
        except StateMissing:  # pre_filter is switched off in this profile
            return self._topologies_of(pod)
        return topologies

    def _topologies_of(self, pod: Pod) -> Topologies | Refusal:
        found: list[Topology] = []
        for volume in pod.volumes:
            if volume.claim is None or volume.is_ephemeral:
                continue
            if not volume.claim:
                return Refusal("PersistentVolumeClaim had no name", code=UNRESOLVABLE)
            claim = self._claims.get(volume.claim, pod.namespace)
            if claim is None:
                return Refusal(claim_not_found(volume.claim), code=UNRESOLVABLE)
            name = claim.spec.volume_name
            if not name:
                if problem := self._why_not_bound(claim):
                    return Refusal(problem, code=UNRESOLVABLE)
                continue
            bound = self._volumes.get(name)
            if bound is None:
                return Refusal(volume_not_found(name), code=UNRESOLVABLE)
            found += topologies_of_volume(bound)
        return tuple(found)

    def _why_not_bound(self, claim: PersistentVolumeClaim) -> str | None:
        """What is wrong with a claim without a volume; None: it waits for a pod, as it should."""
        name = claim.storage_class
        if not name:
            return "PersistentVolumeClaim had no pv name and storageClass name"
        storage_class = self._classes.get(name)
        if storage_class is None:
            return class_not_found(name)
        if storage_class.volume_binding_mode is None:
            return f'VolumeBindingMode not set for StorageClass "{name}"'
        return None if storage_class.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER else "PersistentVolume had no name"

    def _waits_for_pods(self, pod: Pod, before: None, after: StorageClass) -> bool:
        return after.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER

    def _is_its_claim(self, pod: Pod, before: PersistentVolumeClaim | None, after: PersistentVolumeClaim) -> bool:
        return is_claim_of(pod, after, ephemeral=False)

    def _moved(self, pod: Pod, before: PersistentVolume | None, after: PersistentVolume) -> bool:
        return before is None or topologies_of_volume(before) != topologies_of_volume(after)


def topologies_of_volume(volume: PersistentVolume) -> list[Topology]:
    """Its zone and region labels; one with an empty part is ignored."""
    found = []
    for key in TOPOLOGY_LABELS:
        if (text := volume.labels.get(key)) is not None:
            values = frozenset(value.strip() for value in text.split(ZONES_IN_LABEL))
            if "" not in values:
                found.append(Topology(key, values))
    return found
