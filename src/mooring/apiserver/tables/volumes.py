"""Columns of volumes, their classes and drivers, and of device claims."""

from __future__ import annotations

from mooring.apiserver.documents import Document, items_of, part
from mooring.apiserver.strategies.volumes import DEFAULT_CLASS
from mooring.apiserver.tables.columns import AGE, NAME, UNSET, PrinterColumn, at, column, text

_SHORT_MODES = {"ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP"}


def _modes(document: Document, where: str) -> str:
    modes = items_of(part(document, where), "accessModes")
    return ",".join(short for mode, short in _SHORT_MODES.items() if mode in modes)


def _phase(document: Document) -> str:
    if part(document, "metadata").get("deletionTimestamp"):
        return "Terminating"
    return str(part(document, "status").get("phase", ""))


def _claim(volume: Document) -> str:
    reference = part(volume, "spec", "claimRef")
    return f"{reference.get('namespace')}/{reference.get('name')}" if reference else ""


def _if_bound(document: Document, shown: str) -> str:
    return shown if part(document, "spec").get("volumeName") else ""


def _class_name(document: Document) -> str:
    name = str(document["metadata"]["name"])
    is_default = part(document, "metadata", "annotations").get(DEFAULT_CLASS) == "true"
    return f"{name} (default)" if is_default else name


def _claim_state(claim: Document) -> str:
    status = part(claim, "status")
    states = ["deleted"] if part(claim, "metadata").get("deletionTimestamp") else []
    if not status.get("allocation"):
        return ",".join([*states, "pending"])
    states.append("allocated")
    if status.get("reservedFor"):
        states.append("reserved")
    return ",".join(states)


_MODE = text("VolumeMode", "spec", "volumeMode", otherwise=UNSET, wide=True)
_ATTRIBUTES = text("VolumeAttributesClass", "spec", "volumeAttributesClassName", otherwise=UNSET)
_STORAGE_CLASS = text("StorageClass", "spec", "storageClassName")


def _flag(name: str, *path: str) -> PrinterColumn:
    return column(name, lambda document: bool(at(document, *path)), type="boolean")


VOLUME_COLUMNS: dict[str, list[PrinterColumn]] = {
    "persistentvolumes": [
        NAME,
        text("Capacity", "spec", "capacity", "storage"),
        column("Access Modes", lambda volume: _modes(volume, "spec")),
        text("Reclaim Policy", "spec", "persistentVolumeReclaimPolicy"),
        column("Status", _phase),
        column("Claim", _claim),
        _STORAGE_CLASS,
        _ATTRIBUTES,
        text("Reason", "status", "reason"),
        AGE,
        _MODE,
    ],
    "persistentvolumeclaims": [
        NAME,
        column("Status", _phase),
        text("Volume", "spec", "volumeName"),
        column("Capacity", lambda claim: _if_bound(claim, at(claim, "status", "capacity", "storage") or "0")),
        column("Access Modes", lambda claim: _if_bound(claim, _modes(claim, "status"))),
        _STORAGE_CLASS,
        _ATTRIBUTES,
        AGE,
        _MODE,
    ],
    "storageclasses.storage.k8s.io": [
        PrinterColumn("Name", lambda document, _: _class_name(document), format="name"),
        text("Provisioner", "provisioner"),
        text("ReclaimPolicy", "reclaimPolicy", otherwise="Delete"),
        text("VolumeBindingMode", "volumeBindingMode", otherwise="Immediate"),
        _flag("AllowVolumeExpansion", "allowVolumeExpansion"),
        AGE,
    ],
    "csinodes.storage.k8s.io": [
        NAME,
        column("Drivers", lambda node: len(items_of(part(node, "spec"), "drivers")), type="integer"),
        AGE,
    ],
    "csidrivers.storage.k8s.io": [
        NAME,
        _flag("AttachRequired", "spec", "attachRequired"),
        _flag("PodInfoOnMount", "spec", "podInfoOnMount"),
        _flag("StorageCapacity", "spec", "storageCapacity"),
        AGE,
    ],
    "csistoragecapacities.storage.k8s.io": [
        NAME,
        text("StorageClassName", "storageClassName"),
        text("Capacity", "capacity", otherwise=UNSET),
    ],
    "volumeattachments.storage.k8s.io": [
        NAME,
        text("Attacher", "spec", "attacher"),
        text("PV", "spec", "source", "persistentVolumeName"),
        text("Node", "spec", "nodeName"),
        _flag("Attached", "status", "attached"),
        AGE,
    ],
    "resourceclaims.resource.k8s.io": [NAME, column("State", _claim_state), AGE],
    "resourceslices.resource.k8s.io": [
        NAME,
        text("Node", "spec", "nodeName"),
        text("Driver", "spec", "driver"),
        text("Pool", "spec", "pool", "name"),
        AGE,
    ],
}
