"""Builders of volumes, claims and storage classes, and of the volumes in a pod's spec."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from mooring.framework import Pod
from mooring.objects import ObjectMeta, OwnerReference
from mooring.objects.core import (
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    ObjectReference,
    ResourceRequirements,
)
from mooring.objects.quantity import QuantityText
from mooring.objects.selectors import LabelSelector
from mooring.objects.storage import (
    BIND_COMPLETED,
    MIGRATED_PLUGINS,
    SELECTED_NODE,
    WAIT_FOR_FIRST_CONSUMER,
    CSIDriver,
    CSIDriverSpec,
    CSINode,
    CSINodeDriver,
    CSINodeSpec,
    CSIStorageCapacity,
    CSIVolumeSource,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeClaimSpec,
    PersistentVolumeSpec,
    StorageClass,
    TopologySelectorLabelRequirement,
    TopologySelectorTerm,
    VolumeAttachment,
    VolumeAttachmentSource,
    VolumeAttachmentSpec,
    VolumeNodeAffinity,
    VolumeNodeResources,
    VolumeStatus,
)

DRIVER = "csi.example.com"


def claim_volume(name: str) -> dict[str, Any]:
    """A volume of a pod that uses a claim: `a_pod(volumes=[claim_volume("data")])`."""
    return {"persistentVolumeClaim": {"claimName": name}}


def ephemeral_volume(name: str) -> dict[str, Any]:
    """A volume whose claim is made for the pod, called `<pod>-<name>`."""
    return {"name": name, "ephemeral": {"volumeClaimTemplate": {}}}


def a_claim(
    name: str = "data",
    *,
    namespace: str = "default",
    volume: str = "",
    bound: bool | None = None,
    storage_class: str | None = "wait",
    size: QuantityText | None = "1Gi",
    modes: Sequence[str] = ("ReadWriteOnce",),
    selector: Mapping[str, str] | None = None,
    volume_mode: str | None = None,
    attributes_class: str | None = None,
    selected_node: str | None = None,
    annotations: Mapping[str, str] | None = None,
    owner: Pod | None = None,
    phase: str | None = None,
    deleting: bool = False,
) -> PersistentVolumeClaim:
    """A claim; with `volume` it is bound to that volume, unless `bound` is given."""
    is_bound = bool(volume) if bound is None else bound
    notes = dict(annotations or {})
    if is_bound:
        notes[BIND_COMPLETED] = "yes"
    if selected_node is not None:
        notes[SELECTED_NODE] = selected_node
    return PersistentVolumeClaim(
        metadata=ObjectMeta(
            name=name,
            namespace=namespace,
            uid=f"claim-{namespace}-{name}",
            annotations=notes,
            owner_references=tuple([] if owner is None else [OwnerReference(uid=owner.uid, controller=True)]),
            deletion_timestamp="2026-01-01T00:00:00Z" if deleting else None,
        ),
        spec=PersistentVolumeClaimSpec(
            access_modes=tuple(modes),
            selector=None if selector is None else LabelSelector(match_labels=dict(selector)),
            resources=ResourceRequirements(requests={} if size is None else {"storage": size}),
            volume_name=volume,
            storage_class_name=storage_class,
            volume_mode=volume_mode,
            volume_attributes_class_name=attributes_class,
        ),
        status=VolumeStatus(phase=phase or ("Bound" if is_bound else "Pending")),
    )


def a_volume(
    name: str = "volume",
    *,
    size: QuantityText = "1Gi",
    storage_class: str = "wait",
    modes: Sequence[str] = ("ReadWriteOnce",),
    labels: Mapping[str, str] | None = None,
    on: Mapping[str, Sequence[str]] | None = None,
    claim: str | None = None,
    claim_uid: str = "",
    volume_mode: str | None = None,
    attributes_class: str | None = None,
    phase: str = "Available",
    deleting: bool = False,
    source: Mapping[str, Any] | None = None,
) -> PersistentVolume:
    """A volume. `on` is its node affinity (label → values); `claim` is `namespace/name`; `source` an in-tree one."""
    spec = PersistentVolumeSpec(
        capacity={"storage": size},
        access_modes=tuple(modes),
        storage_class_name=storage_class,
        volume_mode=volume_mode,
        volume_attributes_class_name=attributes_class,
        claim_ref=None
        if claim is None
        else ObjectReference(namespace=claim.partition("/")[0], name=claim.partition("/")[2], uid=claim_uid),
        node_affinity=None if on is None else VolumeNodeAffinity(required=nodes_where(on)),
        csi=CSIVolumeSource(driver=DRIVER, volume_handle=f"handle-{name}") if source is None else None,
    )
    spec = msgspec.structs.replace(spec, **(source or {}))
    return PersistentVolume(
        metadata=ObjectMeta(
            name=name,
            uid=f"volume-{name}",
            labels=dict(labels or {}),
            deletion_timestamp="2026-01-01T00:00:00Z" if deleting else None,
        ),
        spec=spec,
        status=VolumeStatus(phase=phase),
    )


def nodes_where(labels: Mapping[str, Sequence[str]]) -> NodeSelector:
    """Nodes where each label has one of these values."""
    parts = [NodeSelectorRequirement(key=key, operator="In", values=tuple(values)) for key, values in labels.items()]
    return NodeSelector(node_selector_terms=(NodeSelectorTerm(match_expressions=tuple(parts)),))


def a_storage_class(
    name: str = "wait",
    *,
    provisioner: str = DRIVER,
    mode: str | None = WAIT_FOR_FIRST_CONSUMER,
    allowed: Sequence[Mapping[str, Sequence[str]]] = (),
) -> StorageClass:
    """A storage class; `allowed` are its topologies, any of which will do."""
    return StorageClass(
        metadata=ObjectMeta(name=name),
        provisioner=provisioner,
        volume_binding_mode=mode,
        allowed_topologies=tuple(
            TopologySelectorTerm(
                match_label_expressions=tuple(
                    TopologySelectorLabelRequirement(key=key, values=tuple(values)) for key, values in term.items()
                )
            )
            for term in allowed
        ),
    )


def a_csi_node(name: str = "node", *, migrated: Iterable[str] = (), **limits: int | None) -> CSINode:
    """A CSINode; `limits` are those of drivers, by the driver's name without its domain (`csi=3`)."""
    return CSINode(
        metadata=ObjectMeta(name=name, annotations={MIGRATED_PLUGINS: ",".join(migrated)} if migrated else {}),
        spec=CSINodeSpec(
            drivers=tuple(
                CSINodeDriver(name=f"{driver}.example.com", allocatable=VolumeNodeResources(count=limit))
                for driver, limit in limits.items()
            )
        ),
    )


def a_csi_driver(name: str = DRIVER, *, counts: bool | None = True) -> CSIDriver:
    """A CSI driver that publishes its capacity, or does not."""
    return CSIDriver(metadata=ObjectMeta(name=name), spec=CSIDriverSpec(storage_capacity=counts))


def a_capacity(
    name: str = "capacity",
    *,
    storage_class: str = "wait",
    capacity: QuantityText | None = "10Gi",
    largest: QuantityText | None = None,
    where: Mapping[str, str] | None = None,
) -> CSIStorageCapacity:
    """How much a class can provide to the nodes with these labels; `where={}` is everywhere, None nowhere."""
    return CSIStorageCapacity(
        metadata=ObjectMeta(name=name, namespace="kube-system"),
        storage_class_name=storage_class,
        node_topology=None if where is None else LabelSelector(match_labels=dict(where)),
        capacity=capacity,
        maximum_volume_size=largest,
    )


def an_attachment(volume: str, node: str, *, driver: str = DRIVER) -> VolumeAttachment:
    """A volume that is attached to a node."""
    return VolumeAttachment(
        metadata=ObjectMeta(name=f"{volume}-on-{node}"),
        spec=VolumeAttachmentSpec(
            attacher=driver, node_name=node, source=VolumeAttachmentSource(persistent_volume_name=volume)
        ),
    )
