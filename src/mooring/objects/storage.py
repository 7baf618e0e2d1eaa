"""Volumes and what provides them: claims, volumes, storage classes, CSI drivers and where they run.

The sources of a PersistentVolume are kept as far as placement reads them; `mooring.objects.migration` translates
in-tree sources that have migrated to CSI.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import msgspec

from mooring.base.computed import computed_once
from mooring.objects.core import NodeSelector, ObjectReference, Quantities, ResourceRequirements
from mooring.objects.meta import Kind, KubeObject
from mooring.objects.quantity import QuantityText, whole
from mooring.objects.read_only import EMPTY, seal_deeply
from mooring.objects.selectors import LabelSelector
from mooring.objects.wire import Wire

READ_WRITE_ONCE_POD = "ReadWriteOncePod"
WAIT_FOR_FIRST_CONSUMER = "WaitForFirstConsumer"
NO_PROVISIONER = "kubernetes.io/no-provisioner"

BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
"""Annotates an object that a controller bound, not a user: the binding may be undone."""
SELECTED_NODE = "volume.kubernetes.io/selected-node"
BETA_CLASS = "volume.beta.kubernetes.io/storage-class"
MIGRATED_PLUGINS = "storage.alpha.kubernetes.io/migrated-plugins"


class CSIVolumeSource(Wire):
    driver: str = ""
    volume_handle: str = ""


class VolumeNodeAffinity(Wire):
    required: NodeSelector | None = None


class PersistentVolumeSpec(Wire):
    capacity: Quantities = EMPTY
    access_modes: tuple[str, ...] = ()
    storage_class_name: str = ""
    volume_mode: str | None = None
    volume_attributes_class_name: str | None = None
    claim_ref: ObjectReference | None = None
    node_affinity: VolumeNodeAffinity | None = None
    csi: CSIVolumeSource | None = None
    aws_elastic_block_store: Mapping[str, Any] | None = None
    gce_persistent_disk: Mapping[str, Any] | None = None
    azure_disk: Mapping[str, Any] | None = None
    azure_file: Mapping[str, Any] | None = None
    cinder: Mapping[str, Any] | None = None
    vsphere_volume: Mapping[str, Any] | None = None
    portworx_volume: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        seal_deeply(
            self,
            "capacity",
            "aws_elastic_block_store",
            "gce_persistent_disk",
            "azure_disk",
            "azure_file",
            "cinder",
            "vsphere_volume",
            "portworx_volume",
        )


class VolumeStatus(Wire):
    """Of a volume or a claim."""

    phase: str = ""


class PersistentVolume(KubeObject, version="v1", plural="persistentvolumes", scope="Cluster"):
    """A piece of storage."""

    KIND: ClassVar[Kind]

    spec: PersistentVolumeSpec = msgspec.field(default_factory=PersistentVolumeSpec)
    status: VolumeStatus = msgspec.field(default_factory=VolumeStatus)

    @computed_once
    def storage_class(self) -> str:
        return self.metadata.annotations.get(BETA_CLASS, self.spec.storage_class_name)

    @computed_once
    def capacity_bytes(self) -> int:
        return whole(self.spec.capacity.get("storage", 0))

    @property
    def required_nodes(self) -> NodeSelector | None:
        """Which nodes can use it; None: all."""
        affinity = self.spec.node_affinity
        return affinity.required if affinity is not None else None

    def is_claimed_by(self, claim: PersistentVolumeClaim) -> bool:
        """Whether its claimRef names this claim; one without a uid was written by a person, before the claim was."""
        ref = self.spec.claim_ref
        return (
            ref is not None
            and (ref.name, ref.namespace) == (claim.name, claim.namespace)
            and ref.uid in ("", claim.uid)
        )

    def claimed_by(self, claim: PersistentVolumeClaim) -> PersistentVolume:
        """This volume with a claimRef that names the claim, uid and all; itself if it has one."""
        ref = self.spec.claim_ref
        if ref is not None and self.is_claimed_by(claim) and ref.uid:
            return self
        metadata = self.metadata
        if not self.is_claimed_by(claim):
            metadata = msgspec.structs.replace(
                metadata, annotations={**metadata.annotations, BOUND_BY_CONTROLLER: "yes"}
            )
        claim_ref = ObjectReference(
            kind=claim.KIND.kind,
            api_version=claim.KIND.api_version,
            namespace=claim.namespace,
            name=claim.name,
            uid=claim.uid,
            resource_version=claim.metadata.resource_version,
        )
        return PersistentVolume(
            metadata=metadata, spec=msgspec.structs.replace(self.spec, claim_ref=claim_ref), status=self.status
        )


class PersistentVolumeClaimSpec(Wire):
    access_modes: tuple[str, ...] = ()
    selector: LabelSelector | None = None
    resources: ResourceRequirements = msgspec.field(default_factory=ResourceRequirements)
    volume_name: str = ""
    storage_class_name: str | None = None
    volume_mode: str | None = None
    volume_attributes_class_name: str | None = None


class PersistentVolumeClaim(KubeObject, version="v1", plural="persistentvolumeclaims"):
    """A request for storage."""

    KIND: ClassVar[Kind]

    spec: PersistentVolumeClaimSpec = msgspec.field(default_factory=PersistentVolumeClaimSpec)
    status: VolumeStatus = msgspec.field(default_factory=VolumeStatus)

    @property
    def storage_class(self) -> str:
        return self.metadata.annotations.get(BETA_CLASS, self.spec.storage_class_name or "")

    @property
    def is_bound(self) -> bool:
        """Whether the volume controller has finished: a volume name alone is not enough."""
        return bool(self.spec.volume_name) and BIND_COMPLETED in self.metadata.annotations

    @property
    def requested_bytes(self) -> int | None:
        """The size it requests, if any."""
        text = self.spec.resources.requests.get("storage")
        return None if text is None else whole(text)

    @property
    def selected_node(self) -> str | None:
        """The node where a volume is being provisioned for it, chosen by a scheduler."""
        return self.metadata.annotations.get(SELECTED_NODE)

    def on_node(self, node: str) -> PersistentVolumeClaim:
        """This claim with this node selected for it."""
        annotations = {**self.metadata.annotations, SELECTED_NODE: node}
        return PersistentVolumeClaim(
            metadata=msgspec.structs.replace(self.metadata, annotations=annotations), spec=self.spec, status=self.status
        )


class TopologySelectorLabelRequirement(Wire):
    key: str = ""
    values: tuple[str, ...] = ()


class TopologySelectorTerm(Wire):
    match_label_expressions: tuple[TopologySelectorLabelRequirement, ...] = ()


class StorageClass(KubeObject, group="storage.k8s.io", version="v1", plural="storageclasses", scope="Cluster"):
    """A class of storage: its provisioner, when it binds, and where volumes can be."""

    KIND: ClassVar[Kind]

    provisioner: str = ""
    volume_binding_mode: str | None = None
    allowed_topologies: tuple[TopologySelectorTerm, ...] = ()


class VolumeNodeResources(Wire):
    count: int | None = None


class CSINodeDriver(Wire):
    name: str = ""
    allocatable: VolumeNodeResources | None = None


class CSINodeSpec(Wire):
    drivers: tuple[CSINodeDriver, ...] | None = None
    """Null on the wire where there are none."""


class CSINode(KubeObject, group="storage.k8s.io", version="v1", plural="csinodes", scope="Cluster"):
    """The CSI drivers on the node of the same name."""

    KIND: ClassVar[Kind]

    spec: CSINodeSpec = msgspec.field(default_factory=CSINodeSpec)

    @computed_once
    def limits(self) -> dict[str, int]:
        """Driver → how many of its volumes can be attached; a driver without a limit is not there."""
        return {
            driver.name: driver.allocatable.count
            for driver in self.spec.drivers or ()
            if driver.allocatable is not None and driver.allocatable.count is not None
        }

    @computed_once
    def migrated(self) -> frozenset[str]:
        """The in-tree plugins whose work a CSI driver does on this node."""
        return frozenset(self.metadata.annotations.get(MIGRATED_PLUGINS, "").split(",")) - {""}


class CSIDriverSpec(Wire):
    storage_capacity: bool | None = None


class CSIDriver(KubeObject, group="storage.k8s.io", version="v1", plural="csidrivers", scope="Cluster"):
    """The properties of a CSI driver."""

    KIND: ClassVar[Kind]

    spec: CSIDriverSpec = msgspec.field(default_factory=CSIDriverSpec)


class CSIStorageCapacity(KubeObject, group="storage.k8s.io", version="v1", plural="csistoragecapacities"):
    """How much a storage class can still provide to some nodes."""

    KIND: ClassVar[Kind]

    storage_class_name: str = ""
    node_topology: LabelSelector | None = None
    capacity: QuantityText | None = None
    maximum_volume_size: QuantityText | None = None

    @property
    def largest_bytes(self) -> int | None:
        """The largest volume that can be made; None: unknown."""
        text = self.maximum_volume_size if self.maximum_volume_size is not None else self.capacity
        return None if text is None else whole(text)


class VolumeAttachmentSource(Wire):
    persistent_volume_name: str | None = None


class VolumeAttachmentSpec(Wire):
    attacher: str = ""
    node_name: str = ""
    source: VolumeAttachmentSource = msgspec.field(default_factory=VolumeAttachmentSource)


class VolumeAttachment(KubeObject, group="storage.k8s.io", version="v1", plural="volumeattachments", scope="Cluster"):
    """A volume that is, or is to be, attached to a node."""

    KIND: ClassVar[Kind]

    spec: VolumeAttachmentSpec = msgspec.field(default_factory=VolumeAttachmentSpec)
