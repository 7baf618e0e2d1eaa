"""The operations of a workload file, with the fields that upstream's harness reads.

`count: 10` or `countParam: $initPods`: a field that ends in `Param` names a parameter of the workload, which takes the
place of the field's own value.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Literal, TypeVar

import msgspec

from mooring.base.durations import duration_seconds

Parameter = int | float | bool | str
ATTEMPTED = "Attempted"
"""The stage of a pod that a scheduler has looked at."""


class WorkloadError(Exception):
    """A workload that cannot be run as its file describes it."""


class Operation(msgspec.Struct, frozen=True, rename="camel", tag_field="opcode", forbid_unknown_fields=True):
    """One step of a workload."""

    collects_metrics: ClassVar[bool] = False
    """Whether a measurement ends with it."""


class LabelNodes(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """Label the nodes with these values in turn."""

    label_key: str
    label_values: list[str]


class UniqueNodeLabel(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """Label each node with a value of its own."""

    label_key: str


class NodeAllocatable(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """Set allocatable resources of the nodes, and how many volumes their CSI drivers attach."""

    node_allocatable: dict[str, str] = {}
    csi_node_allocatable: dict[str, dict[str, int]] = {}
    migrated_plugins: list[str] = []


class CreateNodes(Operation, frozen=True, tag="createNodes"):
    count: int = 0
    count_param: str = ""
    node_template_path: str = ""
    node_allocatable_strategy: NodeAllocatable | None = None
    label_node_prepare_strategy: LabelNodes | None = None
    unique_node_label_strategy: UniqueNodeLabel | None = None


class CreateNamespaces(Operation, frozen=True, tag="createNamespaces"):
    prefix: str = ""
    count: int = 0
    count_param: str = ""
    namespace_template_path: str = ""


class CreatePods(Operation, frozen=True, tag="createPods"):
    """Create pods and wait until they are scheduled.

    In a steady state, all of them are deleted and created again as soon as they are scheduled, until the duration is
    over.
    """

    count: int = 0
    count_param: str = ""
    steady_state: bool = False
    steady_state_param: str = ""
    duration: str = ""
    duration_param: str = ""
    collect_metrics: bool = False
    namespace: str = ""
    pod_template_path: str = ""
    skip_wait_to_completion: bool = False
    persistent_volume_template_path: str = ""
    persistent_volume_claim_template_path: str = ""

    def __post_init__(self) -> None:
        if self.collect_metrics and self.skip_wait_to_completion:
            raise ValueError("collectMetrics and skipWaitToCompletion cannot be true at the same time")
        if self.steady_state and self.skip_wait_to_completion:
            raise ValueError("skipWaitToCompletion and steadyState cannot be true at the same time")


class CreatePodSets(Operation, frozen=True, tag="createPodSets"):
    """The same pods in many namespaces."""

    create_pods_op: CreatePods
    count: int = 0
    count_param: str = ""
    namespace_prefix: str = ""


class DeletePods(Operation, frozen=True, tag="deletePods"):
    namespace: str
    label_selector: dict[str, str] = {}
    skip_wait_to_completion: bool = False
    delete_pods_per_second: int = 0


class CreateAny(Operation, frozen=True, tag="createAny"):
    template_path: str
    namespace: str = ""
    count: int = 1
    count_param: str = ""


class UpdateAny(Operation, frozen=True, tag="updateAny"):
    template_path: str
    namespace: str = ""
    count: int = 1
    count_param: str = ""
    update_per_second: int = 0
    subresources: list[str] = []


class Churn(Operation, frozen=True, tag="churn"):
    """Create objects at an interval, or create and delete them in turn, until the workload ends."""

    mode: Literal["create", "recreate"]
    template_paths: list[str]
    number: int = 0
    interval_milliseconds: int = 500
    namespace: str = ""

    def __post_init__(self) -> None:
        if self.mode == "recreate" and self.number <= 0:
            raise ValueError("number must be positive where mode is recreate")


class Barrier(Operation, frozen=True, tag="barrier"):
    """Wait until pods that no operation waited for are scheduled, or were attempted at least once."""

    namespaces: list[str] = []
    label_selector: dict[str, str] = {}
    stage_requirement: Literal["", "Scheduled", "Attempted"] = ""


class Sleep(Operation, frozen=True, tag="sleep"):
    duration: str = ""
    duration_param: str = ""


class StartCollectingMetrics(Operation, frozen=True, tag="startCollectingMetrics"):
    namespaces: list[str]
    name: str = ""
    label_selector: dict[str, str] = {}


class StopCollectingMetrics(Operation, frozen=True, tag="stopCollectingMetrics"):
    collects_metrics: ClassVar[bool] = True


class CreateResourceDriver(Operation, frozen=True, tag="createResourceDriver"):
    """Publish a ResourceSlice with devices for each node whose name matches the pattern."""

    driver_name: str
    nodes: str
    max_claims_per_node: int = 0
    max_claims_per_node_param: str = ""


class CreateResourceClaims(Operation, frozen=True, tag="createResourceClaims"):
    namespace: str
    template_path: str
    count: int = 0
    count_param: str = ""


class AllocResourceClaims(Operation, frozen=True, tag="allocResourceClaims"):
    """Allocate devices to the claims of a namespace, without a scheduler."""

    namespace: str = ""


AnyOperation = (
    CreateNodes
    | CreateNamespaces
    | CreatePods
    | CreatePodSets
    | DeletePods
    | CreateAny
    | UpdateAny
    | Churn
    | Barrier
    | Sleep
    | StartCollectingMetrics
    | StopCollectingMetrics
    | CreateResourceDriver
    | CreateResourceClaims
    | AllocResourceClaims
)

_O = TypeVar("_O", bound=Operation)


def measures(operation: Operation) -> bool:
    """Whether the operation ends a measurement."""
    if isinstance(operation, CreatePodSets):
        operation = operation.create_pods_op
    return operation.collects_metrics or (isinstance(operation, CreatePods) and operation.collect_metrics)


def needs_pending_pods(operation: Operation) -> bool:
    """Whether it has to know of pods that have no node."""
    return isinstance(operation, Barrier) and operation.stage_requirement == ATTEMPTED


def with_parameters(operation: _O, parameters: Mapping[str, Parameter], used: set[str]) -> _O:
    """The operation with the workload's values in place of its parameters; their names are added to `used`."""
    changes: dict[str, Any] = {}
    for field in msgspec.structs.fields(operation):
        reference = getattr(operation, field.name) if field.name.endswith("_param") else ""
        if not reference:
            continue
        if not reference.startswith("$"):
            raise WorkloadError(f'{field.encode_name} must begin with "$", got "{reference}"')
        name, target = reference[1:], field.name.removesuffix("_param")
        if name not in parameters:
            raise WorkloadError(f"parameter {name} is undefined")
        value, wanted = parameters[name], type(getattr(operation, target))
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if type(value) is not wanted:
            raise WorkloadError(f"parameter {name} must be {_described(wanted)}, got {value!r}")
        changes[target] = value
        used.add(name)
    changed = msgspec.structs.replace(operation, **changes) if changes else operation
    for name in ("count", "max_claims_per_node"):
        if getattr(changed, name, 0) < 0:
            raise WorkloadError(f"{name} must not be negative")
    return changed


def unrolled(operation: Operation) -> Iterator[Operation]:
    """A set of pods as one operation per namespace; any other operation as it is."""
    if not isinstance(operation, CreatePodSets):
        yield operation
        return
    for number in range(operation.count):
        yield msgspec.structs.replace(operation.create_pods_op, namespace=f"{operation.namespace_prefix}-{number}")


def seconds_of(duration: str) -> float:
    seconds = duration_seconds(duration)
    if seconds is None or seconds <= 0:
        raise WorkloadError(f'a duration such as "10s" is required, got "{duration}"')
    return seconds


def _described(wanted: type) -> str:
    return {int: "a whole number", bool: "true or false", str: "text"}[wanted]
