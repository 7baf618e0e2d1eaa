"""The fields of workloads that their controllers read: apps and batch."""

from __future__ import annotations

import math
from typing import ClassVar

import msgspec

from mooring.objects.meta import Kind
from mooring.objects.selectors import LabelSelector
from mooring.objects.wire import Wire
from mooring.simulated.records import ConditionRecord, Document, Record

Amount = int | str
"""A number of pods, or a percentage of them."""


def scaled_value(amount: Amount, whole: int, *, up: bool) -> int:
    """The value of an int-or-percent; percentages of the total are rounded up or down."""
    if isinstance(amount, int):
        return amount
    percent = int(amount.removesuffix("%"))
    return math.ceil(percent * whole / 100) if up else percent * whole // 100


class ReplicaSetSpec(Wire):
    replicas: int = 1
    min_ready_seconds: int = 0
    selector: LabelSelector = msgspec.field(default_factory=LabelSelector)
    template: Document = {}


class ReplicaSetStatus(Wire):
    replicas: int = 0
    fully_labeled_replicas: int = 0
    ready_replicas: int = 0
    available_replicas: int = 0
    observed_generation: int = 0


class ReplicaSet(Record, group="apps", version="v1", plural="replicasets"):
    """A number of pods of one template."""

    KIND: ClassVar[Kind]

    spec: ReplicaSetSpec = msgspec.field(default_factory=ReplicaSetSpec)
    status: ReplicaSetStatus = msgspec.field(default_factory=ReplicaSetStatus)


class RollingUpdate(Wire):
    max_surge: Amount = "25%"
    max_unavailable: Amount = "25%"


class DeploymentStrategySpec(Wire):
    type: str = "RollingUpdate"
    rolling_update: RollingUpdate | None = None


class DeploymentSpec(Wire):
    replicas: int = 1
    min_ready_seconds: int = 0
    revision_history_limit: int = 10
    progress_deadline_seconds: int = 600
    paused: bool = False
    selector: LabelSelector = msgspec.field(default_factory=LabelSelector)
    strategy: DeploymentStrategySpec = msgspec.field(default_factory=DeploymentStrategySpec)
    template: Document = {}


class DeploymentStatus(Wire):
    conditions: list[ConditionRecord] = []
    collision_count: int = 0
    observed_generation: int = 0
    replicas: int = 0
    updated_replicas: int = 0
    ready_replicas: int = 0
    available_replicas: int = 0
    unavailable_replicas: int = 0


class Deployment(Record, group="apps", version="v1", plural="deployments"):
    """A template whose changes are rolled out by ReplicaSets."""

    KIND: ClassVar[Kind]

    spec: DeploymentSpec = msgspec.field(default_factory=DeploymentSpec)
    status: DeploymentStatus = msgspec.field(default_factory=DeploymentStatus)


class ControllerRevision(Record, group="apps", version="v1", plural="controllerrevisions"):
    """An earlier or present template of a StatefulSet or DaemonSet, as a patch that restores it."""

    KIND: ClassVar[Kind]

    data: Document = {}
    revision: int = 0


class Ordinals(Wire):
    start: int = 0


class Partition(Wire):
    partition: int = 0


class StatefulSetUpdateStrategy(Wire):
    type: str = "RollingUpdate"
    rolling_update: Partition | None = None


class ClaimRetention(Wire):
    """What happens to claims when the set is deleted or scaled down."""

    when_deleted: str = "Retain"
    when_scaled: str = "Retain"


class VolumeClaimTemplate(Wire):
    metadata: Document = {}
    spec: Document = {}

    @property
    def name(self) -> str:
        return str(self.metadata.get("name", ""))


class StatefulSetSpec(Wire):
    replicas: int = 1
    service_name: str = ""
    pod_management_policy: str = "OrderedReady"
    min_ready_seconds: int = 0
    revision_history_limit: int = 10
    ordinals: Ordinals = msgspec.field(default_factory=Ordinals)
    update_strategy: StatefulSetUpdateStrategy = msgspec.field(default_factory=StatefulSetUpdateStrategy)
    persistent_volume_claim_retention_policy: ClaimRetention = msgspec.field(default_factory=ClaimRetention)
    selector: LabelSelector = msgspec.field(default_factory=LabelSelector)
    template: Document = {}
    volume_claim_templates: list[VolumeClaimTemplate] = []


class StatefulSetStatus(Wire):
    observed_generation: int = 0
    collision_count: int = 0
    replicas: int = 0
    ready_replicas: int = 0
    available_replicas: int = 0
    current_replicas: int = 0
    updated_replicas: int = 0
    current_revision: str = ""
    update_revision: str = ""


class StatefulSet(Record, group="apps", version="v1", plural="statefulsets"):
    """Pods with ordinals, each with claims of its own."""

    KIND: ClassVar[Kind]

    spec: StatefulSetSpec = msgspec.field(default_factory=StatefulSetSpec)
    status: StatefulSetStatus = msgspec.field(default_factory=StatefulSetStatus)

    @property
    def ordinals(self) -> range:
        start = self.spec.ordinals.start
        return range(start, start + self.spec.replicas)

    @property
    def partition(self) -> int:
        """The ordinals below it are not updated."""
        rolling = self.spec.update_strategy.rolling_update
        return rolling.partition if rolling is not None else 0


class DaemonSetRollingUpdate(Wire):
    max_unavailable: Amount = 1
    max_surge: Amount = 0


class DaemonSetUpdateStrategy(Wire):
    type: str = "RollingUpdate"
    rolling_update: DaemonSetRollingUpdate | None = None


class DaemonSetSpec(Wire):
    min_ready_seconds: int = 0
    revision_history_limit: int = 10
    update_strategy: DaemonSetUpdateStrategy = msgspec.field(default_factory=DaemonSetUpdateStrategy)
    selector: LabelSelector = msgspec.field(default_factory=LabelSelector)
    template: Document = {}


class DaemonSetStatus(Wire):
    observed_generation: int = 0
    collision_count: int = 0
    desired_number_scheduled: int = 0
    current_number_scheduled: int = 0
    number_misscheduled: int = 0
    number_ready: int = 0
    number_available: int = 0
    number_unavailable: int = 0
    updated_number_scheduled: int = 0


class DaemonSet(Record, group="apps", version="v1", plural="daemonsets"):
    """A pod on every eligible node."""

    KIND: ClassVar[Kind]

    spec: DaemonSetSpec = msgspec.field(default_factory=DaemonSetSpec)
    status: DaemonSetStatus = msgspec.field(default_factory=DaemonSetStatus)


class JobSpec(Wire):
    parallelism: int = 1
    completions: int | None = None
    backoff_limit: int = 6
    suspend: bool = False
    completion_mode: str = "NonIndexed"
    template: Document = {}


class JobStatus(Wire):
    conditions: list[ConditionRecord] = []
    start_time: str | None = None
    completion_time: str | None = None
    active: int = 0
    ready: int = 0
    succeeded: int = 0
    failed: int = 0


class Job(Record, group="batch", version="v1", plural="jobs"):
    """Pods that run to completion, a number of times."""

    KIND: ClassVar[Kind]

    spec: JobSpec = msgspec.field(default_factory=JobSpec)
    status: JobStatus = msgspec.field(default_factory=JobStatus)

    @property
    def outcome(self) -> str:
        """`Complete`, `Failed`, or nothing yet."""
        ends = ("Complete", "Failed")
        return next((each.type for each in self.status.conditions if each.type in ends and each.status == "True"), "")

    @property
    def is_finished(self) -> bool:
        return bool(self.outcome)


class JobTemplate(Wire):
    metadata: Document = {}
    spec: Document = {}


class CronJobSpec(Wire):
    schedule: str = ""
    time_zone: str | None = None
    starting_deadline_seconds: int | None = None
    concurrency_policy: str = "Allow"
    suspend: bool = False
    job_template: JobTemplate = msgspec.field(default_factory=JobTemplate)
    successful_jobs_history_limit: int | None = None
    failed_jobs_history_limit: int | None = None


class CronJobStatus(Wire):
    active: list[Document] = []
    last_schedule_time: str | None = None
    last_successful_time: str | None = None


class CronJob(Record, group="batch", version="v1", plural="cronjobs"):
    """A Job that is created by a schedule."""

    KIND: ClassVar[Kind]

    spec: CronJobSpec = msgspec.field(default_factory=CronJobSpec)
    status: CronJobStatus = msgspec.field(default_factory=CronJobStatus)
