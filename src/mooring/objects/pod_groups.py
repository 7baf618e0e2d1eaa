"""scheduling.k8s.io/v1alpha2: PodGroups, pods that are scheduled together, and Workloads, the templates of groups.

The scheduler reads PodGroups. Workloads are read by the API server and by controllers.
"""

from __future__ import annotations

from typing import ClassVar

import msgspec

from mooring.objects.core import PodResourceClaim, PodResourceClaimStatus
from mooring.objects.meta import Kind, KubeObject
from mooring.objects.wire import Wire

GROUP, VERSION = "scheduling.k8s.io", "v1alpha2"

POD_GROUP_SCHEDULED = "PodGroupScheduled"
"""The condition about whether the group is scheduled. Kubernetes 1.37 renames it."""

SCHEDULED, UNSCHEDULABLE, SCHEDULER_ERROR = "Scheduled", "Unschedulable", "SchedulerError"
"""The reasons of that condition."""

GANG_COMPLETED = "mooring.dev/GangCompleted"
"""Mooring's condition of a gang that was bound whole once, written when it lacks room for a pod after that."""

DISRUPT_POD, DISRUPT_POD_GROUP = "Pod", "PodGroup"
"""The values of `disruptionMode`: pods of the group are preempted one by one, or all of them together."""

PROTECTION = "scheduling.k8s.io/podgroup-protection"
"""The finalizer that keeps a PodGroup as long as active pods name it."""


class Condition(Wire):
    """A condition as most kinds have it (metav1.Condition)."""

    type: str = ""
    status: str = ""
    observed_generation: int = 0
    last_transition_time: str | None = None
    reason: str = ""
    message: str = ""


class BasicSchedulingPolicy(Wire):
    """Pods are scheduled as ever: each that fits."""


class GangSchedulingPolicy(Wire):
    """All or nothing: at least `minCount` pods are scheduled together, or none."""

    min_count: int = 0


class PodGroupSchedulingPolicy(Wire):
    """Exactly one of them is set."""

    basic: BasicSchedulingPolicy | None = None
    gang: GangSchedulingPolicy | None = None


class TopologyConstraint(Wire):
    """All pods of the group run on nodes with one value of this label."""

    key: str = ""


class PodGroupSchedulingConstraints(Wire):
    topology: tuple[TopologyConstraint, ...] = ()


class WorkloadPodGroupTemplateReference(Wire):
    workload_name: str = ""
    pod_group_template_name: str = ""


class PodGroupTemplateReference(Wire):
    workload: WorkloadPodGroupTemplateReference | None = None


class PodGroupSpec(Wire):
    pod_group_template_ref: PodGroupTemplateReference | None = None
    scheduling_policy: PodGroupSchedulingPolicy = msgspec.field(default_factory=PodGroupSchedulingPolicy)
    scheduling_constraints: PodGroupSchedulingConstraints | None = None
    resource_claims: tuple[PodResourceClaim, ...] = ()
    """Claims that the group's pods share. Written as those of a pod."""
    disruption_mode: str | None = None
    priority_class_name: str = ""
    priority: int | None = None


class PodGroupStatus(Wire):
    conditions: tuple[Condition, ...] = ()
    resource_claim_statuses: tuple[PodResourceClaimStatus, ...] = ()


class PodGroup(KubeObject, group=GROUP, version=VERSION, plural="podgroups"):
    """Pods that are scheduled together. Its pods name it in `spec.schedulingGroup`; it names none of them."""

    KIND: ClassVar[Kind]

    spec: PodGroupSpec = msgspec.field(default_factory=PodGroupSpec)
    status: PodGroupStatus = msgspec.field(default_factory=PodGroupStatus)

    @property
    def min_count(self) -> int | None:
        """How many pods a gang needs at least; None for a group that is no gang."""
        gang = self.spec.scheduling_policy.gang
        return None if gang is None else gang.min_count

    @property
    def topology_key(self) -> str | None:
        """The node label whose values are the group's topology domains, if it has to stay within one."""
        constraints = self.spec.scheduling_constraints
        return constraints.topology[0].key if constraints is not None and constraints.topology else None

    @property
    def priority(self) -> int:
        """The group's own. Only preemption reads it; the queue is ordered by the priorities of the pods."""
        return self.spec.priority or 0

    @property
    def is_disrupted_as_a_whole(self) -> bool:
        return self.spec.disruption_mode == DISRUPT_POD_GROUP

    @property
    def was_complete(self) -> bool:
        """Whether it is recorded that it was bound whole once."""
        return (condition := self.condition(GANG_COMPLETED)) is not None and condition.status == "True"

    def condition(self, type: str) -> Condition | None:
        return next((condition for condition in self.status.conditions if condition.type == type), None)


class PodGroupTemplate(Wire):
    name: str = ""
    scheduling_policy: PodGroupSchedulingPolicy = msgspec.field(default_factory=PodGroupSchedulingPolicy)
    scheduling_constraints: PodGroupSchedulingConstraints | None = None
    resource_claims: tuple[PodResourceClaim, ...] = ()
    disruption_mode: str | None = None
    priority_class_name: str = ""
    priority: int | None = None


class TypedLocalObjectReference(Wire):
    api_group: str = ""
    kind: str = ""
    name: str = ""


class PodGroupWorkloadSpec(Wire):
    controller_ref: TypedLocalObjectReference | None = None
    pod_group_templates: tuple[PodGroupTemplate, ...] = ()


class Workload(KubeObject, group=GROUP, version=VERSION, plural="workloads"):
    """Templates of PodGroups. No scheduler reads it."""

    KIND: ClassVar[Kind]

    spec: PodGroupWorkloadSpec = msgspec.field(default_factory=PodGroupWorkloadSpec)
