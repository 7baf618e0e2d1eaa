"""The kinds in a snapshot, in the order in which they are listed.

Pods come first and what they refer to later: a node or a claim that is created meanwhile is then in the snapshot, too.
ControllerRevisions hold whole templates and are not needed: without them the controllers of a restored cluster go by
the labels of pods. Secrets and ConfigMaps are not here. Nothing but these kinds and the custom kinds of plugins is
requested.
"""

from __future__ import annotations

from dataclasses import dataclass

from mooring.objects.core import Namespace, Node, Pod
from mooring.objects.meta import Kind
from mooring.objects.pod_groups import PodGroup, Workload
from mooring.objects.policy import PodDisruptionBudget
from mooring.objects.resource import DeviceClass, ResourceClaim, ResourceSlice
from mooring.objects.storage import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)
from mooring.objects.workloads import ReplicaSet, ReplicationController, Service, StatefulSet
from mooring.snapshots import fields


@dataclass(frozen=True)
class SavedKind:
    """A kind, which of its fields are kept, and whether a snapshot without it is of no use."""

    kind: Kind
    fields: fields.Table
    is_required: bool = False
    is_gated: bool = False
    """Served while a feature gate is on, so that most clusters lack it and its absence is not worth a word."""

    @property
    def key(self) -> tuple[str, str]:
        return self.kind.api_version, self.kind.kind


CLAIM_TEMPLATES = Kind("resource.k8s.io", "v1", "ResourceClaimTemplate", "resourceclaimtemplates")
DEPLOYMENTS = Kind("apps", "v1", "Deployment", "deployments")
DAEMON_SETS = Kind("apps", "v1", "DaemonSet", "daemonsets")
JOBS = Kind("batch", "v1", "Job", "jobs")
PRIORITY_CLASSES = Kind("scheduling.k8s.io", "v1", "PriorityClass", "priorityclasses", namespaced=False)
RUNTIME_CLASSES = Kind("node.k8s.io", "v1", "RuntimeClass", "runtimeclasses", namespaced=False)
DEFINITIONS = Kind("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", False)

SAVED = (
    SavedKind(Pod.KIND, fields.POD_FIELDS, is_required=True),
    SavedKind(ReplicaSet.KIND, fields.REPLICA_SET_FIELDS),
    SavedKind(DEPLOYMENTS, fields.DEPLOYMENT_FIELDS),
    SavedKind(StatefulSet.KIND, fields.STATEFUL_SET_FIELDS),
    SavedKind(DAEMON_SETS, fields.DAEMON_SET_FIELDS),
    SavedKind(JOBS, fields.JOB_FIELDS),
    SavedKind(ReplicationController.KIND, fields.REPLICATION_CONTROLLER_FIELDS),
    SavedKind(Service.KIND, fields.SERVICE_FIELDS),
    SavedKind(PodDisruptionBudget.KIND, fields.BUDGET_FIELDS),
    SavedKind(PodGroup.KIND, fields.POD_GROUP_FIELDS, is_gated=True),
    SavedKind(Workload.KIND, fields.GROUP_WORKLOAD_FIELDS, is_gated=True),
    SavedKind(ResourceClaim.KIND, fields.DEVICE_CLAIM_FIELDS),
    SavedKind(CLAIM_TEMPLATES, fields.DEVICE_CLAIM_TEMPLATE_FIELDS),
    SavedKind(PersistentVolumeClaim.KIND, fields.CLAIM_FIELDS),
    SavedKind(PersistentVolume.KIND, fields.VOLUME_FIELDS),
    SavedKind(VolumeAttachment.KIND, fields.VOLUME_ATTACHMENT_FIELDS),
    SavedKind(StorageClass.KIND, fields.STORAGE_CLASS_FIELDS),
    SavedKind(CSIStorageCapacity.KIND, fields.CSI_STORAGE_CAPACITY_FIELDS),
    SavedKind(CSIDriver.KIND, fields.CSI_DRIVER_FIELDS),
    SavedKind(CSINode.KIND, fields.CSI_NODE_FIELDS),
    SavedKind(ResourceSlice.KIND, fields.RESOURCE_SLICE_FIELDS),
    SavedKind(DeviceClass.KIND, fields.DEVICE_CLASS_FIELDS),
    SavedKind(PRIORITY_CLASSES, fields.PRIORITY_CLASS_FIELDS),
    SavedKind(RUNTIME_CLASSES, fields.RUNTIME_CLASS_FIELDS),
    SavedKind(Namespace.KIND, fields.NAMESPACE_FIELDS),
    SavedKind(Node.KIND, fields.NODE_FIELDS, is_required=True),
)
DEFINITION = SavedKind(DEFINITIONS, fields.DEFINITION_FIELDS)
"""Of the custom kinds that are saved; requested one by one."""

_BY_KEY = {saved.key: saved for saved in (*SAVED, DEFINITION)}


def custom(kind: Kind) -> SavedKind:
    """A kind of a plugin's own: all its fields are kept, because only the plugin knows which of them it reads."""
    return SavedKind(kind, fields.CUSTOM_FIELDS)


def fields_of(api_version: str, kind: str) -> fields.Table:
    """The table of an object in a snapshot."""
    saved = _BY_KEY.get((api_version, kind))
    return saved.fields if saved is not None else fields.CUSTOM_FIELDS
