"""A pod's volumes, as far as placement reads them: claims, and disks that the pod names itself.

Configuration, secrets, scratch space and the like place nothing: they are left out, so that most pods have none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from mooring.objects.migration import BY_SOURCE, InTree, Untranslatable, handle_of

GCE, AWS, RBD, ISCSI = "gcePersistentDisk", "awsElasticBlockStore", "rbd", "iscsi"


class Disk(msgspec.Struct, frozen=True, gc=False):
    """A disk of the four kinds that must not be mounted twice on a node, unless every mount only reads."""

    kind: str
    name: str
    """What it is called by its kind: a disk name, a volume id, an iqn, or pool and image."""
    read_only: bool = False
    monitors: frozenset[str] = frozenset()

    @property
    def identity(self) -> tuple[str, str]:
        return self.kind, self.name

    def conflicts(self, other: Disk) -> bool:
        """Whether one node must not mount both."""
        if self.identity != other.identity:
            return False
        if self.kind == AWS:
            return True
        if self.kind == RBD and self.monitors.isdisjoint(other.monitors):
            return False
        return not (self.read_only and other.read_only)


class PodVolume(msgspec.Struct, frozen=True, gc=False):
    """One volume: a claim, or a disk named by the pod itself."""

    claim: str | None = None
    """The name of its PersistentVolumeClaim."""
    is_ephemeral: bool = False
    """Whether the claim is made for this pod alone, and must be owned by it."""
    disk: Disk | None = None
    in_tree: str | None = None
    """The built-in plugin that would mount it, if that has become a CSI driver."""
    attached: tuple[str, str] | None = None
    """The driver that attaches it and its handle there, where an in-tree disk is known to a driver."""
    problem: str = ""
    """Why the driver cannot know it."""


def placement_volumes(pod_name: str, volumes: Iterable[Mapping[str, Any]]) -> tuple[PodVolume, ...]:
    """Those of a pod's volumes that matter to where it can run, in order."""
    found = []
    for volume in volumes:
        for source, value in volume.items():
            if source in _READ and value is not None:
                found.append(_read(pod_name, volume, source, value))
                break
    return tuple(found)


_READ = {"persistentVolumeClaim", "ephemeral", RBD, ISCSI, *BY_SOURCE}


def _read(pod_name: str, volume: Mapping[str, Any], source: str, value: Mapping[str, Any]) -> PodVolume:
    if source == "persistentVolumeClaim":
        return PodVolume(claim=str(value.get("claimName", "")))
    if source == "ephemeral":
        return PodVolume(claim=f"{pod_name}-{volume.get('name', '')}", is_ephemeral=True)
    in_tree = BY_SOURCE.get(source)
    attached, problem = _attached(in_tree, value) if in_tree is not None and in_tree.is_migrated else (None, "")
    return PodVolume(
        disk=_disk(source, value),
        in_tree=in_tree.plugin if in_tree is not None else None,
        attached=attached,
        problem=f"converting volume({volume.get('name', '')}) from inline to csi: {problem}" if problem else "",
    )


def _attached(in_tree: InTree, value: Mapping[str, Any]) -> tuple[tuple[str, str] | None, str]:
    try:
        return (in_tree.driver, handle_of(in_tree, value)), ""
    except Untranslatable as problem:
        return None, str(problem)


def _disk(source: str, value: Mapping[str, Any]) -> Disk | None:
    read_only = bool(value.get("readOnly"))
    match source:
        case "gcePersistentDisk":
            return Disk(GCE, str(value.get("pdName", "")), read_only)
        case "awsElasticBlockStore":
            return Disk(AWS, str(value.get("volumeID", "")), read_only)
        case "iscsi":
            return Disk(ISCSI, str(value.get("iqn", "")), read_only)
        case "rbd":
            name = f"{value.get('pool', '')}/{value.get('image', '')}"
            return Disk(RBD, name, read_only, frozenset(value.get("monitors") or ()))
    return None
