"""The fields of watched objects that kubelets and controllers read.

Fewer than `mooring.objects` for scheduling, and more for running pods. A template stays the document it is on the wire,
because it is copied, never interpreted.
"""

from __future__ import annotations

from typing import Any, ClassVar

import msgspec

from mooring.objects.core import Taint, Toleration
from mooring.objects.meta import Kind, KubeObject, ObjectMeta
from mooring.objects.pod_groups import GROUP, VERSION, PodGroupSpec, PodGroupStatus, PodGroupWorkloadSpec
from mooring.objects.selectors import LabelSelector
from mooring.objects.wire import Wire

Document = dict[str, Any]

SIMULATED = "mooring.dev/simulated"
"""The annotation of simulated nodes: the kubelets here act for them, and for no others."""

RUN_SECONDS = "mooring.dev/run-seconds"
"""A pod annotation: how long its containers run before they complete."""


class RecordMeta(ObjectMeta):
    """Metadata with finalizers."""

    finalizers: list[str] = []


class Record(KubeObject):
    """An object that a kubelet or controller here watches."""

    metadata: RecordMeta = msgspec.field(default_factory=RecordMeta)

    @property
    def is_terminating(self) -> bool:
        return self.metadata.deletion_timestamp is not None


class ContainerRecord(Wire):
    name: str = ""
    image: str = ""
    image_pull_policy: str = ""
    resources: Document = {}
    restart_policy: str | None = None

    @property
    def is_sidecar(self) -> bool:
        """Of init containers: one that keeps running beside the others."""
        return self.restart_policy == "Always"


class ReadinessGate(Wire):
    condition_type: str = ""


class PodClaimRecord(Wire):
    """A ResourceClaim that the pod references, or one that is created for it from a template."""

    name: str = ""
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class PodRecordSpec(Wire):
    containers: list[ContainerRecord] = []
    init_containers: list[ContainerRecord] = []
    node_name: str = ""
    host_network: bool = False
    restart_policy: str = "Always"
    readiness_gates: list[ReadinessGate] = []
    tolerations: list[Toleration] = []
    affinity: Document = {}
    volumes: list[Document] = []
    resource_claims: list[PodClaimRecord] = []
    scheduling_group: Document = {}


class ConditionRecord(Wire):
    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: str | None = None
    last_update_time: str | None = None


class PodClaimStatus(Wire):
    """The claim that was created from a template; without a name none was needed."""

    name: str = ""
    resource_claim_name: str | None = None


class PodRecordStatus(Wire):
    phase: str = ""
    conditions: list[ConditionRecord] = []
    pod_ip: str = msgspec.field(default="", name="podIP")
    start_time: str | None = None
    container_statuses: list[Document] = []
    init_container_statuses: list[Document] = []
    resource_claim_statuses: list[PodClaimStatus] = []


class PodRecord(Record, version="v1", plural="pods", kind="Pod"):
    """A pod, for its kubelet and its controller."""

    KIND: ClassVar[Kind]

    spec: PodRecordSpec = msgspec.field(default_factory=PodRecordSpec)
    status: PodRecordStatus = msgspec.field(default_factory=PodRecordStatus)

    @property
    def is_finished(self) -> bool:
        return self.status.phase in ("Succeeded", "Failed")

    @property
    def is_active(self) -> bool:
        """Counts as a replica: neither finished nor terminating."""
        return not self.is_finished and not self.is_terminating

    @property
    def ready_since(self) -> str | None:
        """When the pod became ready; None while it is not."""
        for condition in self.status.conditions:
            if condition.type == "Ready" and condition.status == "True":
                return condition.last_transition_time or self.metadata.creation_timestamp
        return None


class NodeRecordSpec(Wire):
    taints: list[Taint] = []
    pod_cidr: str = msgspec.field(default="", name="podCIDR")


class NodeRecordStatus(Wire):
    addresses: list[dict[str, str]] = []
    conditions: list[ConditionRecord] = []
    images: list[Document] = []
    capacity: Document = {}
    allocatable: Document = {}


class NodeRecord(Record, version="v1", plural="nodes", scope="Cluster", kind="Node"):
    """A node, for its kubelet."""

    KIND: ClassVar[Kind]

    spec: NodeRecordSpec = msgspec.field(default_factory=NodeRecordSpec)
    status: NodeRecordStatus = msgspec.field(default_factory=NodeRecordStatus)

    @property
    def address(self) -> str:
        """The node's internal IP."""
        return next((each["address"] for each in self.status.addresses if each.get("type") == "InternalIP"), "")


class ClaimStatus(Wire):
    allocation: Document | None = None
    reserved_for: list[Document] = []


class ClaimRecord(Record, group="resource.k8s.io", version="v1", plural="resourceclaims", kind="ResourceClaim"):
    """A ResourceClaim, for its controller: allocation and reservations, not requests."""

    KIND: ClassVar[Kind]

    status: ClaimStatus = msgspec.field(default_factory=ClaimStatus)


class ClaimTemplateSpec(Wire):
    metadata: Document = {}
    spec: Document = {}


class ClaimTemplate(
    Record, group="resource.k8s.io", version="v1", plural="resourceclaimtemplates", kind="ResourceClaimTemplate"
):
    """A ResourceClaimTemplate."""

    KIND: ClassVar[Kind]

    spec: ClaimTemplateSpec = msgspec.field(default_factory=ClaimTemplateSpec)


class BudgetSpec(Wire):
    min_available: int | str | None = None
    max_unavailable: int | str | None = None
    selector: LabelSelector | None = None
    unhealthy_pod_eviction_policy: str = ""


class BudgetStatus(Wire):
    disruptions_allowed: int = 0
    current_healthy: int = 0
    desired_healthy: int = 0
    expected_pods: int = 0
    observed_generation: int = 0
    disrupted_pods: dict[str, str] = {}
    conditions: list[Document] = []


class BudgetRecord(Record, group="policy", version="v1", plural="poddisruptionbudgets", kind="PodDisruptionBudget"):
    """A PodDisruptionBudget, for its controller."""

    KIND: ClassVar[Kind]

    spec: BudgetSpec = msgspec.field(default_factory=BudgetSpec)
    status: BudgetStatus = msgspec.field(default_factory=BudgetStatus)


def controller_of(subject: KubeObject) -> tuple[str, str, str] | None:
    """Kind, name and uid of the object's controller."""
    for owner in subject.metadata.owner_references:
        if owner.controller:
            return owner.kind, owner.name, owner.uid
    return None


def owned_by(owner: KubeObject) -> list[Document]:
    """The ownerReferences of an object that this one controls."""
    kind = type(owner).KIND
    return [
        {
            "apiVersion": kind.api_version,
            "kind": kind.kind,
            "name": owner.name,
            "uid": owner.uid,
            "controller": True,
            "blockOwnerDeletion": True,
        }
    ]


class PodGroupRecord(Record, group=GROUP, version=VERSION, plural="podgroups", kind="PodGroup"):
    """A group of pods, for the controllers of its pods and its claims."""

    KIND: ClassVar[Kind]

    spec: PodGroupSpec = msgspec.field(default_factory=PodGroupSpec)
    status: PodGroupStatus = msgspec.field(default_factory=PodGroupStatus)


class WorkloadRecord(Record, group=GROUP, version=VERSION, plural="workloads", kind="Workload"):
    """Templates of groups, for the controller that creates the groups."""

    KIND: ClassVar[Kind]

    spec: PodGroupWorkloadSpec = msgspec.field(default_factory=PodGroupWorkloadSpec)
