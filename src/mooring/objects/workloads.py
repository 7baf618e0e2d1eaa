"""Services and the controllers that own pods, as far as default spreading reads them: which pods they select."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import msgspec

from mooring.objects.meta import Kind, KubeObject
from mooring.objects.read_only import EMPTY, seal
from mooring.objects.selectors import LabelSelector
from mooring.objects.wire import Wire


class ServiceSpec(Wire):
    selector: Mapping[str, str] = EMPTY
    """Without one it selects no pods; its endpoints are managed elsewhere."""

    def __post_init__(self) -> None:
        seal(self, "selector")


class Service(KubeObject, version="v1", plural="services"):
    KIND: ClassVar[Kind]

    spec: ServiceSpec = msgspec.field(default_factory=ServiceSpec)


class ReplicationControllerSpec(Wire):
    selector: Mapping[str, str] = EMPTY

    def __post_init__(self) -> None:
        seal(self, "selector")


class ReplicationController(KubeObject, version="v1", plural="replicationcontrollers"):
    KIND: ClassVar[Kind]

    spec: ReplicationControllerSpec = msgspec.field(default_factory=ReplicationControllerSpec)


class WorkloadSpec(Wire):
    """Of a ReplicaSet or a StatefulSet."""

    selector: LabelSelector | None = None


class ReplicaSet(KubeObject, group="apps", version="v1", plural="replicasets"):
    KIND: ClassVar[Kind]

    spec: WorkloadSpec = msgspec.field(default_factory=WorkloadSpec)


class StatefulSet(KubeObject, group="apps", version="v1", plural="statefulsets"):
    KIND: ClassVar[Kind]

    spec: WorkloadSpec = msgspec.field(default_factory=WorkloadSpec)
