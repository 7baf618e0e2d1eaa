"""Pod and Node, as far as scheduling reads them, and the binding that joins them.

Fields that only a kubelet or a person reads are not here; the embedded API server keeps whole documents.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec
from msgspec.structs import force_setattr

from mooring.base.computed import computed_once
from mooring.objects.meta import Kind, KubeObject, ObjectMeta
from mooring.objects.notes import Notes
from mooring.objects.pod_templates import PodTemplate, template_of
from mooring.objects.quantity import BadQuantity, QuantityText
from mooring.objects.read_only import EMPTY, ReadOnlyDict, read_only, seal
from mooring.objects.selectors import LabelSelector
from mooring.objects.wire import Wire

if TYPE_CHECKING:
    from mooring.objects.placement_rules import Tolerations
    from mooring.objects.requests import PodRequests
    from mooring.objects.volumes import PodVolume

Quantities = Mapping[str, QuantityText]

DEFAULT_SCHEDULER = "default-scheduler"


class ContainerClaim(Wire):
    """Which of the pod's claims a container uses; `request`: of that request of the claim alone."""

    name: str = ""
    request: str = ""


class ResourceRequirements(Wire):
    requests: Quantities = EMPTY
    limits: Quantities = EMPTY
    claims: tuple[ContainerClaim, ...] = ()

    def __post_init__(self) -> None:
        if type(self.requests) is not ReadOnlyDict:
            seal(self, "requests")
        if type(self.limits) is not ReadOnlyDict:
            seal(self, "limits")


class ContainerPort(Wire):
    container_port: int = 0
    host_port: int = 0
    host_ip: str = msgspec.field(default="", name="hostIP")
    protocol: str = "TCP"


class ContainerRestartRule(Wire):
    """What happens when the container exits in a certain way."""

    action: str = ""


class Container(Wire):
    name: str = ""
    image: str = ""
    resources: ResourceRequirements = msgspec.field(default_factory=ResourceRequirements)
    ports: tuple[ContainerPort, ...] = ()
    restart_policy: str | None = None
    """`Always` on an init container makes it a sidecar."""
    restart_policy_rules: tuple[ContainerRestartRule, ...] = ()


class NodeSelectorRequirement(Wire):
    key: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()


class NodeSelectorTerm(Wire):
    match_expressions: tuple[NodeSelectorRequirement, ...] = ()
    match_fields: tuple[NodeSelectorRequirement, ...] = ()


class NodeSelector(Wire):
    node_selector_terms: tuple[NodeSelectorTerm, ...] = ()


class PreferredSchedulingTerm(Wire):
    weight: int = 0
    preference: NodeSelectorTerm = msgspec.field(default_factory=NodeSelectorTerm)


class NodeAffinity(Wire):
    required: NodeSelector | None = msgspec.field(default=None, name="requiredDuringSchedulingIgnoredDuringExecution")
    preferred: tuple[PreferredSchedulingTerm, ...] = msgspec.field(
        default=(), name="preferredDuringSchedulingIgnoredDuringExecution"
    )


class PodAffinityTerm(Wire):
    label_selector: LabelSelector | None = None
    namespaces: tuple[str, ...] = ()
    namespace_selector: LabelSelector | None = None
    topology_key: str = ""


class WeightedPodAffinityTerm(Wire):
    weight: int = 0
    pod_affinity_term: PodAffinityTerm = msgspec.field(default_factory=PodAffinityTerm)


class PodAffinity(Wire):
    """Used for affinity and for anti-affinity alike."""

    required: tuple[PodAffinityTerm, ...] = msgspec.field(
        default=(), name="requiredDuringSchedulingIgnoredDuringExecution"
    )
    preferred: tuple[WeightedPodAffinityTerm, ...] = msgspec.field(
        default=(), name="preferredDuringSchedulingIgnoredDuringExecution"
    )


class Affinity(Wire):
    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


class Toleration(Wire):
    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None


class Taint(msgspec.Struct, rename="camel", kw_only=True, omit_defaults=True, gc=False, frozen=True):
    key: str = ""
    value: str = ""
    effect: str = ""


class TopologySpreadConstraint(Wire):
    max_skew: int = 1
    topology_key: str = ""
    when_unsatisfiable: str = "DoNotSchedule"
    label_selector: LabelSelector | None = None
    min_domains: int | None = None
    node_affinity_policy: str = "Honor"
    node_taints_policy: str = "Ignore"
    match_label_keys: tuple[str, ...] = ()


class PodSchedulingGate(Wire):
    name: str = ""


class PodResourceClaim(Wire):
    """A ResourceClaim of the pod: by its name, or made for the pod after a template."""

    name: str = ""
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class PodSchedulingGroup(Wire):
    """The PodGroup that the pod belongs to, in its own namespace."""

    pod_group_name: str | None = None


class PodSpec(Wire):
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    node_name: str = ""
    scheduler_name: str = DEFAULT_SCHEDULER
    node_selector: Mapping[str, str] = EMPTY
    affinity: Affinity | None = None
    tolerations: tuple[Toleration, ...] = ()
    topology_spread_constraints: tuple[TopologySpreadConstraint, ...] = ()
    priority: int | None = None
    priority_class_name: str = ""
    preemption_policy: str | None = None
    overhead: Quantities = EMPTY
    resources: ResourceRequirements | None = None
    scheduling_gates: tuple[PodSchedulingGate, ...] = ()
    host_network: bool = False
    host_users: bool | None = None
    _volumes: tuple[dict[str, Any], ...] = msgspec.field(default=(), name="volumes")
    """As decoded, and not to be changed: plugins see `volumes`."""
    resource_claims: tuple[PodResourceClaim, ...] = ()
    termination_grace_period_seconds: int | None = None
    scheduling_group: PodSchedulingGroup | None = None

    def __post_init__(self) -> None:
        if type(self.node_selector) is not ReadOnlyDict or type(self.overhead) is not ReadOnlyDict:
            seal(self, "node_selector", "overhead")

    @property
    def has_volumes(self) -> bool:
        return bool(self._volumes)

    @property
    def volumes(self) -> tuple[Mapping[str, Any], ...]:
        """As in the manifest. Read-only from the first read on: most volumes, as that of the token, are never read."""
        volumes = self._volumes
        if volumes and type(volumes[0]) is not ReadOnlyDict:
            volumes = read_only(volumes)
            force_setattr(self, "_volumes", volumes)
        return volumes


class PodCondition(Wire):
    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    observed_generation: int = 0
    last_transition_time: str | None = None
    last_probe_time: str | None = None


class ContainerStatus(Wire):
    name: str = ""
    allocated_resources: Quantities | None = None
    resources: ResourceRequirements | None = None

    def __post_init__(self) -> None:
        seal(self, "allocated_resources")


class PodResourceClaimStatus(Wire):
    """The claim that was made after a template; no name: none was needed."""

    name: str = ""
    resource_claim_name: str | None = None


class ContainerExtendedResourceRequest(Wire):
    container_name: str = ""
    resource_name: str = ""
    request_name: str = ""


class PodExtendedResourceClaimStatus(Wire):
    """The claim that stands for the pod's extended resources, and which container has which of its requests."""

    request_mappings: tuple[ContainerExtendedResourceRequest, ...] = ()
    resource_claim_name: str = ""


class PodStatus(Wire):
    phase: str = ""
    conditions: tuple[PodCondition, ...] = ()
    nominated_node_name: str = ""
    start_time: str | None = None
    container_statuses: tuple[ContainerStatus, ...] = ()
    init_container_statuses: tuple[ContainerStatus, ...] = ()
    allocated_resources: Quantities | None = None
    resources: ResourceRequirements | None = None
    resource_claim_statuses: tuple[PodResourceClaimStatus, ...] = ()
    extended_resource_claim_status: PodExtendedResourceClaimStatus | None = None

    def __post_init__(self) -> None:
        seal(self, "allocated_resources")


class Pod(KubeObject, version="v1", plural="pods"):
    """A pod, pending or placed."""

    KIND: ClassVar[Kind]

    spec: PodSpec = msgspec.field(default_factory=PodSpec)
    status: PodStatus = msgspec.field(default_factory=PodStatus)

    @property
    def priority(self) -> int:
        return self.spec.priority or 0

    @property
    def pod_group_name(self) -> str | None:
        """The name of the PodGroup that it belongs to, whether or not that exists."""
        group = self.spec.scheduling_group
        return None if group is None else group.pod_group_name

    @property
    def is_terminating(self) -> bool:
        return self.metadata.deletion_timestamp is not None

    @computed_once
    def template(self) -> PodTemplate:
        """The same for all pods that differ in nothing but their names."""
        return template_of(self)

    @computed_once
    def requests(self) -> PodRequests:
        """What scheduling counts for this pod, computed once per template."""
        template = None if self.spec.node_name else self.template  # a node is part of the spec: few pods have the same
        if template is not None and (known := template.requests) is not None:
            return known
        from mooring.objects.requests import requests_of

        requests = requests_of(self)
        if template is not None:
            template.keep_requests(requests)
        return requests

    def read_ahead(self) -> None:
        """Compute what every decision reads of the pod: template and requests.

        For a pod that was just decoded this takes a third of the time that it takes when the pod is decided, after
        thousands of others: its parts are still in the processor's cache.
        """
        with suppress(BadQuantity):  # the decision reports it
            _ = self.requests

    @computed_once
    def notes(self) -> Notes:
        """What was parsed of a large spec: cached as long as the object exists."""
        return Notes()

    @computed_once
    def tolerations(self) -> Tolerations:
        """What it tolerates, read once per object."""
        from mooring.objects.placement_rules import Tolerations

        return Tolerations(self.spec.tolerations)

    @computed_once
    def volumes(self) -> tuple[PodVolume, ...]:
        """Those of its volumes that matter to where it can run, read once per object."""
        if not self.spec.has_volumes:
            return ()
        from mooring.objects.volumes import placement_volumes

        return placement_volumes(self.name, self.spec._volumes)

    @computed_once
    def request(self) -> Callable[[str], int]:
        """`pod.request("cpu")`: how much of the resource it requests: thousandths of a CPU, bytes, or whole pieces."""
        # A dictionary's own method: rules that run node by node call it thousands of times, and a method written in
        # Python takes twice as long.
        return self.requests.amounts.__getitem__

    def condition(self, type: str) -> PodCondition | None:
        return next((condition for condition in self.status.conditions if condition.type == type), None)


class NodeCondition(Wire):
    type: str = ""
    status: str = ""


class ContainerImage(Wire):
    names: tuple[str, ...] = ()
    size_bytes: int = 0


class NodeSpec(Wire):
    unschedulable: bool = False
    taints: tuple[Taint, ...] = ()
    provider_id: str = msgspec.field(default="", name="providerID")


class NodeStatus(Wire):
    capacity: Quantities = EMPTY
    allocatable: Quantities = EMPTY
    conditions: tuple[NodeCondition, ...] = ()
    images: tuple[ContainerImage, ...] = ()
    declared_features: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        seal(self, "capacity", "allocatable")


class Node(KubeObject, version="v1", plural="nodes", scope="Cluster"):
    """A machine that runs pods."""

    KIND: ClassVar[Kind]

    spec: NodeSpec = msgspec.field(default_factory=NodeSpec)
    status: NodeStatus = msgspec.field(default_factory=NodeStatus)


class Namespace(KubeObject, version="v1", plural="namespaces", scope="Cluster"):
    """A namespace; scheduling reads its labels."""

    KIND: ClassVar[Kind]


class ObjectReference(Wire):
    """The object of an event, or the target of a binding."""

    kind: str = ""
    api_version: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""
    resource_version: str = ""


class Binding(Wire):
    """The request that puts a pod on a node."""

    api_version: str = "v1"
    kind: str = "Binding"
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    target: ObjectReference = msgspec.field(default_factory=ObjectReference)
