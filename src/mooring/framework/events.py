"""Cluster events, and which of them may make a refused pod schedulable.

A plugin's `events()` lists `Hint`s: a kind of object, the actions that matter, and optionally a test that reads
the pod and the object before and after. A pod that the plugin refused is requeued when a hint matches and
its test passes; hints of plugins that did not refuse it do not run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import IntFlag
from typing import Any

from msgspec.structs import replace

from mooring.base.errors import did_you_mean
from mooring.objects.core import Node, Pod, PodStatus
from mooring.objects.meta import CustomResource, KubeObject
from mooring.objects.placed import PlacedPod
from mooring.objects.requests import Amounts


class Action(IntFlag):
    """What happened to an object. The order of the bits is kube-scheduler's: matching compares them as numbers."""

    ADD = 1 << 0
    DELETE = 1 << 1
    UPDATE_NODE_ALLOCATABLE = 1 << 2
    UPDATE_NODE_LABEL = 1 << 3
    UPDATE_NODE_TAINT = 1 << 4
    UPDATE_NODE_CONDITION = 1 << 5
    UPDATE_NODE_ANNOTATION = 1 << 6
    UPDATE_NODE_DECLARED_FEATURE = 1 << 7
    UPDATE_POD_LABEL = 1 << 8
    UPDATE_POD_SCALE_DOWN = 1 << 9
    UPDATE_POD_TOLERATION = 1 << 10
    UPDATE_POD_GATES_ELIMINATED = 1 << 11
    UPDATE_POD_GENERATED_CLAIM = 1 << 12
    UPDATE = (1 << 13) - (1 << 2)
    ALL = (1 << 13) - 1

    def names(self) -> list[str]:
        """As people read it: `["Add", "UpdateNodeLabel"]`, with `Update` and `All` where they are whole."""
        if self in _ACTION_NAMES:
            return [_ACTION_NAMES[self]]
        parts = [Action.UPDATE] if self & Action.UPDATE == Action.UPDATE else []
        parts += [bit for bit in self if not parts or not bit & Action.UPDATE]
        return [_ACTION_NAMES[part] for part in sorted(parts)]


EVERYTHING = "*"
POD, ASSIGNED_POD, UNSCHEDULABLE_POD, NODE = "Pod", "AssignedPod", "UnschedulablePod", "Node"

BROADCAST_KINDS = (
    POD,
    NODE,
    "PersistentVolume",
    "PersistentVolumeClaim",
    "storage.k8s.io/CSINode",
    "storage.k8s.io/CSIDriver",
    "storage.k8s.io/CSIStorageCapacity",
    "storage.k8s.io/StorageClass",
    "resource.k8s.io/ResourceClaim",
    "resource.k8s.io/DeviceClass",
)
"""The events of a plugin without `events()`: everything that could matter to a filter."""

_NAMES = (POD, ASSIGNED_POD, UNSCHEDULABLE_POD, NODE, "PersistentVolume", "PersistentVolumeClaim", "Namespace")
"""Names that a misspelt one is compared with. Other kinds have events as well: those that some plugin reads."""


@dataclass(frozen=True, slots=True)
class ClusterEvent:
    """A kind of object and what happened to it. `label` is its name in metrics and logs."""

    resource: str
    action: Action
    special: str = ""

    @property
    def label(self) -> str:
        return self.special or f"{self.resource}{_ACTION_NAMES.get(self.action, 'Update')}"

    @property
    def is_wildcard(self) -> bool:
        return self.resource == EVERYTHING and self.action == Action.ALL


_ACTION_NAMES = {
    Action.ADD: "Add",
    Action.DELETE: "Delete",
    Action.UPDATE_NODE_ALLOCATABLE: "UpdateNodeAllocatable",
    Action.UPDATE_NODE_LABEL: "UpdateNodeLabel",
    Action.UPDATE_NODE_TAINT: "UpdateNodeTaint",
    Action.UPDATE_NODE_CONDITION: "UpdateNodeCondition",
    Action.UPDATE_NODE_ANNOTATION: "UpdateNodeAnnotation",
    Action.UPDATE_NODE_DECLARED_FEATURE: "UpdateNodeDeclaredFeature",
    Action.UPDATE_POD_LABEL: "UpdatePodLabel",
    Action.UPDATE_POD_SCALE_DOWN: "UpdatePodScaleDown",
    Action.UPDATE_POD_TOLERATION: "UpdatePodToleration",
    Action.UPDATE_POD_GATES_ELIMINATED: "UpdatePodSchedulingGatesEliminated",
    Action.UPDATE_POD_GENERATED_CLAIM: "UpdatePodGeneratedResourceClaim",
    Action.UPDATE: "Update",
    Action.ALL: "All",
}

POD_SCHEDULED = "PodScheduled"
"""The condition in which schedulers report why a pod is pending."""

NODE_ADDED = ClusterEvent(NODE, Action.ADD)
NODE_DELETED = ClusterEvent(NODE, Action.DELETE)
PENDING_POD_ADDED = ClusterEvent(UNSCHEDULABLE_POD, Action.ADD)
ASSIGNED_POD_ADDED = ClusterEvent(ASSIGNED_POD, Action.ADD)
ASSIGNED_POD_DELETED = ClusterEvent(ASSIGNED_POD, Action.DELETE)
UNSCHEDULABLE_TIMEOUT = ClusterEvent(EVERYTHING, Action.ALL, "UnschedulableTimeout")
FORCE_ACTIVATE = ClusterEvent(EVERYTHING, Action.ALL, "ForceActivate")
CONFIGURATION_RELOADED = ClusterEvent(EVERYTHING, Action.ALL, "ConfigurationReloaded")

HintTest = Callable[[Pod, Any, Any], bool]
"""(the refused pod, the object before, the object after) → whether to requeue the pod. Before is None for
an added object, after for a deleted one. Assigned pods come as `PlacedPod`, pending ones as `Pod`."""


@dataclass(frozen=True, slots=True)
class Hint:
    """A queueing hint: these actions on this kind may help a pod that the plugin refused, if `test` passes."""

    resource: str
    action: Action
    test: HintTest | None
    per_template: bool
    """Whether `test` reads nothing of the pod but its namespace, labels, spec and reported resources, and whether it is
    the changed object itself. Then it runs once for all rejected pods that are alike in these."""
    within_pod_group: bool
    """Whether `test` passes only for pods of one pod group, that of the changed pod or the changed PodGroup, and reads
    nothing else of them. Then it runs for no others, and where it does not pass, for one of them only."""

    def __init__(
        self,
        resource: str | type[KubeObject],
        action: Action = Action.ALL,
        test: HintTest | None = None,
        *,
        per_template: bool = False,
        within_pod_group: bool = False,
    ) -> None:
        name = resource if isinstance(resource, str) else resource_name(resource)
        if name.isidentifier() and name not in _NAMES and (meant := did_you_mean(name, _NAMES)):
            raise ValueError(f'there are no events of "{name}".{meant}')
        object.__setattr__(self, "resource", name)
        object.__setattr__(self, "action", action)
        object.__setattr__(self, "test", test)
        object.__setattr__(self, "per_template", per_template or test is None)
        object.__setattr__(self, "within_pod_group", within_pod_group)

    def matches(self, event: ClusterEvent) -> bool:
        """Whether the event is one of those listed.

        An unspecific update concerns only registrations at least as wide: hence the comparison as numbers.
        """
        if self.resource == EVERYTHING and self.action == Action.ALL:
            return True
        same = self.resource in (event.resource, EVERYTHING) or (
            self.resource == POD and event.resource in (ASSIGNED_POD, UNSCHEDULABLE_POD)
        )
        return same and bool(self.action & event.action) and event.action <= self.action


def resource_name(kind: type[KubeObject]) -> str:
    """How events name a kind: `Node`, `storage.k8s.io/CSINode`; a custom one as plural.version.group."""
    if not kind.KIND.group:
        return kind.KIND.kind
    if kind.KIND.group.endswith(".k8s.io") and not issubclass(kind, CustomResource):
        return f"{kind.KIND.group}/{kind.KIND.kind}"
    return f"{kind.KIND.plural}.{kind.KIND.version}.{kind.KIND.group}"


def node_changes(old: Node, new: Node) -> list[ClusterEvent]:
    """The events of a node update, one by one; a heartbeat gives none."""
    changed = []
    if old.spec.unschedulable and not new.spec.unschedulable:
        changed.append(Action.UPDATE_NODE_TAINT)
    if old.status.allocatable != new.status.allocatable:
        changed.append(Action.UPDATE_NODE_ALLOCATABLE)
    if old.labels != new.labels:
        changed.append(Action.UPDATE_NODE_LABEL)
    if old.spec.taints != new.spec.taints and Action.UPDATE_NODE_TAINT not in changed:
        changed.append(Action.UPDATE_NODE_TAINT)
    if _conditions(old) != _conditions(new):
        changed.append(Action.UPDATE_NODE_CONDITION)
    if old.metadata.annotations != new.metadata.annotations:
        changed.append(Action.UPDATE_NODE_ANNOTATION)
    if old.status.declared_features != new.status.declared_features:
        changed.append(Action.UPDATE_NODE_DECLARED_FEATURE)
    return [ClusterEvent(NODE, action) for action in changed]


def _conditions(node: Node) -> dict[str, str]:
    return {condition.type: condition.status for condition in node.status.conditions}


def pending_pod_changes(old: Pod, new: Pod) -> list[ClusterEvent]:
    """The events of an update of a pending pod."""
    changed = []
    if old.labels != new.labels:
        changed.append(Action.UPDATE_POD_LABEL)
    if _scaled_down(old.requests.amounts, new.requests.amounts):
        changed.append(Action.UPDATE_POD_SCALE_DOWN)
    if len(old.spec.tolerations) != len(new.spec.tolerations):
        changed.append(Action.UPDATE_POD_TOLERATION)
    if old.spec.scheduling_gates and not new.spec.scheduling_gates:
        changed.append(Action.UPDATE_POD_GATES_ELIMINATED)
    if _claims(old) != _claims(new):
        changed.append(Action.UPDATE_POD_GENERATED_CLAIM)
    if not changed and _is_only_reported(old, new):
        return []
    return [ClusterEvent(UNSCHEDULABLE_POD, action) for action in changed or [Action.UPDATE]]


def _is_only_reported(old: Pod, new: Pod) -> bool:
    """Whether only the reason why it is pending was reported, and perhaps its nominated node.

    That is a scheduler's own patch. Were it an event, a pod whose plugin registers every event and never returns the
    same reason twice would be requeued as fast as it can be patched: an idle queue does not make it wait.
    """
    if old.condition(POD_SCHEDULED) == new.condition(POD_SCHEDULED):
        return False
    return (
        old.spec == new.spec
        and replace(old.metadata, resource_version="") == replace(new.metadata, resource_version="")
        and _without_report(old.status) == _without_report(new.status)
    )


def _without_report(status: PodStatus) -> PodStatus:
    conditions = [each for each in status.conditions if each.type != POD_SCHEDULED]
    return replace(status, conditions=conditions, nominated_node_name="")


def _claims(pod: Pod) -> tuple[Any, ...]:
    """Those made for the pod, as its status names them."""
    return (pod.status.resource_claim_statuses, pod.status.extended_resource_claim_status)


def placed_pod_changes(old: PlacedPod, new: PlacedPod) -> list[ClusterEvent]:
    """The events of an update of a pod on a node."""
    changed = []
    if old.labels != new.labels:
        changed.append(Action.UPDATE_POD_LABEL)
    if _scaled_down(old.requests.amounts, new.requests.amounts):
        changed.append(Action.UPDATE_POD_SCALE_DOWN)
    return [ClusterEvent(ASSIGNED_POD, action) for action in changed or [Action.UPDATE]]


def _scaled_down(old: Amounts, new: Amounts) -> bool:
    return any(new.get(resource, 0) < amount for resource, amount in old.items())


TAINTS_OF_NEW_NODES = Hint(NODE, Action.UPDATE_NODE_TAINT)
"""Added for plugins that wait for new nodes: one often arrives with a taint that is removed soon."""


def registered_hints(declared: Iterable[Hint] | None, *, can_refuse: bool) -> list[Hint]:
    """The hints that count for a plugin: what it declared, with kube-scheduler's additions.

    A plugin that declares no events but can refuse pods gets every event. One that registers new nodes but not taints
    gets taint changes too, because a new node often arrives tainted.
    """
    if declared is None:
        return [Hint(kind, Action.ALL) for kind in BROADCAST_KINDS] if can_refuse else []
    hints = list(declared)
    on_nodes = [hint for hint in hints if hint.resource == NODE]
    if any(hint.action & Action.ADD for hint in on_nodes) and not any(
        hint.action & Action.UPDATE_NODE_TAINT for hint in on_nodes
    ):
        hints.append(TAINTS_OF_NEW_NODES)
    return hints
