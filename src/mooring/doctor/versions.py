"""Which Kubernetes versions serve what a scheduler needs.

Mooring is tested against one version and takes its decisions. Older servers serve fewer kinds: a kind of Kubernetes'
own that is absent has no objects, and the plugins that read it reject nothing because of it.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from mooring.objects.core import Namespace, Node, Pod
from mooring.objects.meta import Kind
from mooring.objects.pod_groups import PodGroup
from mooring.objects.policy import PodDisruptionBudget
from mooring.objects.resource import DeviceClass, ResourceClaim, ResourceSlice
from mooring.objects.storage import CSIStorageCapacity


class ServerVersion(NamedTuple):
    major: int
    minor: int

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}"


TESTED = ServerVersion(1, 36)
OLDEST = ServerVersion(1, 24)
"""Since then every kind is served that is read, except for devices."""

SINCE: dict[Kind, ServerVersion] = {
    Pod.KIND: ServerVersion(1, 0),
    Node.KIND: ServerVersion(1, 0),
    Namespace.KIND: ServerVersion(1, 0),
    PodDisruptionBudget.KIND: ServerVersion(1, 21),
    CSIStorageCapacity.KIND: ServerVersion(1, 24),
    ResourceClaim.KIND: ServerVersion(1, 34),
    ResourceSlice.KIND: ServerVersion(1, 34),
    DeviceClass.KIND: ServerVersion(1, 34),
    PodGroup.KIND: ServerVersion(1, 36),
}
"""When a kind was first served in the version that is read; the others are older than any cluster in use."""

RESOURCES_SINCE = {"resourceclaims/binding": ServerVersion(1, 36)}
"""Older servers require no right on these."""

ABSENT: dict[ServerVersion, str] = {
    ServerVersion(1, 27): "scheduling gates",
    ServerVersion(1, 33): "in-place pod resize",
    ServerVersion(1, 34): "devices by claims (resource.k8s.io/v1)",
}
"""What a server that is older than this does not have by default. Its pods cannot use it, so nothing is decided
wrongly."""


def read_version(document: dict[str, str]) -> ServerVersion | None:
    """The `/version` of a server, or the older one that it emulates. Providers write things like "34+"."""
    for fields in (("emulationMajor", "emulationMinor"), ("major", "minor")):
        major, minor = (re.match(r"\d+", str(document.get(field, ""))) for field in fields)
        if major is not None and minor is not None:
            return ServerVersion(int(major[0]), int(minor[0]))
    found = re.match(r"v?(\d+)\.(\d+)", str(document.get("gitVersion", "")))
    return ServerVersion(int(found[1]), int(found[2])) if found else None
