"""NodeVolumeLimits: a node takes only as many volumes of a CSI driver as its CSINode allows.

Counted are the volumes of the pods on the node, each once however many pods mount it, and what is attached there
beyond those. A claim without a volume counts for the driver of its storage class; an in-tree volume for the driver
that took over from the built-in plugin.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

import numpy as np

from mooring.base.errors import Fault
from mooring.framework import (
    UNRESOLVABLE,
    Action,
    Cycle,
    Hint,
    IntArray,
    NodeRows,
    NodeView,
    Objects,
    PlacedPod,
    Plugin,
    Pod,
    Rejection,
    Rejections,
    Skip,
)
from mooring.objects.migration import BY_PLUGIN, Untranslatable, csi_source_of, in_tree_of
from mooring.objects.storage import (
    CSINode,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)
from mooring.objects.volumes import PodVolume
from mooring.plugins.default.csi_node_rows import NO_LIMIT, CSINodeRows
from mooring.plugins.default.volume_claims import claim_not_found, is_claim_of, not_its_own

TOO_MANY = "node(s) exceed max volume count"

Attached = tuple[str, str]
"""A volume as its driver knows it: driver and handle."""


class NodeVolumeLimits(Plugin):
    """Refuse nodes that cannot attach as many volumes as the pod would bring."""

    pod_fields = ("spec.volumes",)
    per_template = True
    reads_requests = False
    pre_filter_reads_pods = False

    def __init__(
        self,
        csi_nodes: Objects[CSINode],
        claims: Objects[PersistentVolumeClaim],
        volumes: Objects[PersistentVolume],
        classes: Objects[StorageClass],
        attachments: Objects[VolumeAttachment],
    ) -> None:
        self._csi_nodes = csi_nodes
        self._claims = claims
        self._volumes = volumes
        self._classes = classes
        self._attachments = attachments
        self._attached_at = attachments.indexed(lambda attachment: (attachment.spec.node_name,))
        self._rows = CSINodeRows(csi_nodes)
        self._counted: tuple[Mapping[str, int], int, IntArray] | None = None

    def sign(self, pod: Pod) -> tuple[()] | None:
        """Pods without volumes are all alike; what others need depends on their claims."""
        return None if pod.spec.has_volumes else ()

    def events(self) -> Iterable[Hint]:
        return [
            Hint(CSINode, Action.ADD),
            Hint(CSINode, Action.UPDATE, self._a_limit_grew, per_template=True),
            Hint(Pod, Action.DELETE, self._had_volumes, per_template=True),
            Hint(PersistentVolumeClaim, Action.ADD, self._is_its_claim),
            Hint(VolumeAttachment, Action.DELETE, self._could_be_its_driver),
        ]

    def pre_filter(self, pod: Pod, cycle: Cycle) -> Skip | None:
        return None if pod.volumes and any(map(_is_countable, pod.volumes)) else Skip()

    def filter(self, pod: Pod, node: NodeView, cycle: Cycle) -> Rejection | None:
        csi_node = self._csi_nodes.get(node.name)
        wanted = self._wanted(pod, has_csi_node=csi_node is not None)
        if isinstance(wanted, Rejection):
            return wanted
        if csi_node is None or not wanted or not csi_node.limits:
            return None
        return Rejection(TOO_MANY) if self._is_exceeded(wanted, node, csi_node) else None

    def filter_nodes(self, pod: Pod, nodes: NodeRows, cycle: Cycle) -> Iterator[Rejections]:
        """`filter`, for many nodes at once.

        A node has at most as many volumes attached as its pods mount and VolumeAttachments list. Only where that could
        exceed the limit must they be counted one by one.
        """
        rows = self._rows.of(cycle.nodes)
        has_csi_node = rows.has_csi_node.take(nodes.rows)
        if not has_csi_node.all() and isinstance(refusal := self._wanted(pod, has_csi_node=False), Rejection):
            yield Rejections(~has_csi_node, refusal.reasons[0], unresolvable=True)
        if not has_csi_node.any():
            return
        wanted = self._wanted(pod, has_csi_node=True)
        if isinstance(wanted, Rejection):
            yield Rejections(has_csi_node, wanted.reasons[0], unresolvable=True)
            return
        most_attached = nodes.volume_mounts + self._attachment_counts(rows).take(nodes.rows)
        is_full = np.zeros(len(nodes), bool)
        for driver, count in Counter(driver for driver, _ in wanted).items():
            is_full |= most_attached + count > rows.limit(driver).take(nodes.rows)
        for place in np.flatnonzero(is_full).tolist():
            node = nodes.at(place)
            csi_node = self._csi_nodes.get(node.name)
            is_full[place] = csi_node is not None and self._is_exceeded(wanted, node, csi_node)
        yield Rejections(is_full, TOO_MANY)

    def _attachment_counts(self, rows: CSINodeRows) -> IntArray:
        """How many VolumeAttachments each row has."""
        known = (rows.row_of, self._attachments.version)
        if self._counted is None or self._counted[0] is not known[0] or self._counted[1] != known[1]:
            found = (rows.row_of.get(attachment.spec.node_name) for attachment in self._attachments.all())
            places = np.array([row for row in found if row is not None], np.intp)
            self._counted = (*known, np.bincount(places, minlength=rows.size))
        return self._counted[2]

    def _is_exceeded(self, wanted: set[Attached], node: NodeView, csi_node: CSINode) -> bool:
        mounted = {
            attached
            for pod in node.pods
            for volume in pod.volumes
            if (attached := self._mounted(pod, volume)) is not None
        }
        others = set(self._attachments_of(node.name)) - mounted
        present = Counter(driver for driver, _ in (*mounted, *others))
        added = Counter(driver for driver, _ in wanted - mounted)
        return any(present[driver] + count > csi_node.limits.get(driver, NO_LIMIT) for driver, count in added.items())

    def _wanted(self, pod: Pod, *, has_csi_node: bool) -> set[Attached] | Rejection:
        """What the pod would attach. In-tree disks count only where there is a CSINode, which alone has limits."""
        wanted = set()
        for volume in pod.volumes:
            if volume.claim is None:
                if has_csi_node and volume.problem:
                    raise Fault(volume.problem)
                attached = volume.attached
            else:
                if not volume.claim:
                    raise Fault("PersistentVolumeClaim had no name")
                claim = self._claims.get(volume.claim, pod.namespace)
                if claim is None:
                    what = f"looking up PVC {pod.namespace}/{volume.claim}: {claim_not_found(volume.claim)}"
                    return Rejection(what, code=UNRESOLVABLE)
                if volume.is_ephemeral and (problem := not_its_own(pod, claim)):
                    raise Fault(problem)
                attached = self._attached_as(claim)
            if attached is not None:
                wanted.add(attached)
        return wanted

    def _mounted(self, pod: PlacedPod, volume: PodVolume) -> Attached | None:
        """What a pod on a node has attached; a claim that is gone or another's is not counted."""
        if volume.claim is None:
            return volume.attached
        claim = self._claims.get(volume.claim, pod.namespace)
        if claim is None or (volume.is_ephemeral and not_its_own(pod, claim)):
            return None
        return self._attached_as(claim)

    def _attached_as(self, claim: PersistentVolumeClaim) -> Attached | None:
        volume = self._volumes.get(claim.spec.volume_name) if claim.spec.volume_name else None
        if volume is None:
            driver = self._driver_to_be(claim)
            return (driver, f"to be made for {claim.key}") if driver else None
        source = volume.spec.csi
        if source is None:
            in_tree = in_tree_of(volume)
            if in_tree is None or not in_tree.is_migrated:
                return None
            try:
                source = csi_source_of(volume, in_tree)
            except Untranslatable:
                return None
        return (source.driver, source.volume_handle) if source.driver and source.volume_handle else None

    def _driver_to_be(self, claim: PersistentVolumeClaim) -> str | None:
        """The driver that would attach what the claim's storage class makes."""
        storage_class = self._classes.get(claim.storage_class) if claim.storage_class else None
        if storage_class is None:
            return None
        in_tree = BY_PLUGIN.get(storage_class.provisioner)
        if in_tree is None:
            return storage_class.provisioner
        return in_tree.driver if in_tree.is_migrated else None

    def _attachments_of(self, node: str) -> Iterator[Attached]:
        for attachment in self._attached_at.at(node):
            name = attachment.spec.source.persistent_volume_name
            volume = self._volumes.get(name) if name is not None else None
            if attachment.spec.attacher and volume is not None and volume.spec.csi is not None:
                yield attachment.spec.attacher, volume.spec.csi.volume_handle

    def _a_limit_grew(self, pod: Pod, before: CSINode, after: CSINode) -> bool:
        return any(limit > before.limits.get(driver, 0) for driver, limit in after.limits.items())

    def _had_volumes(self, pod: Pod, before: PlacedPod | Pod, after: None) -> bool:
        held = isinstance(before, PlacedPod) or before.spec.node_name or before.status.nominated_node_name
        return bool(held) and any(map(_is_countable, before.volumes))

    def _is_its_claim(self, pod: Pod, before: None, after: PersistentVolumeClaim) -> bool:
        return is_claim_of(pod, after)

    def _could_be_its_driver(self, pod: Pod, before: VolumeAttachment, after: None) -> bool:
        return any(
            (volume.claim is not None and not volume.is_ephemeral)
            or (
                volume.in_tree is not None
                and (bool(volume.problem) or BY_PLUGIN[volume.in_tree].driver == before.spec.attacher)
            )
            for volume in pod.volumes
        )


def _is_countable(volume: PodVolume) -> bool:
    return volume.claim is not None or volume.in_tree is not None
