"""The custom resource PodGroup (scheduling.x-k8s.io/v1alpha1), and which group a pod names."""

from __future__ import annotations

from typing import Annotated

import msgspec

from mooring.framework import CustomResource, Meta, ResourcePart
from mooring.objects.meta import KindColumn
from mooring.objects.quantity import QuantityField
from mooring.objects.selectors import Labels

GROUP_LABEL = "scheduling.x-k8s.io/pod-group"
"""On a pod: the name of its PodGroup, in its own namespace."""


class CoschedulingGroupSpec(ResourcePart):
    min_member: Annotated[int, Meta(ge=1, description="How many pods must be placed together.")] = 1
    min_resources: Annotated[
        dict[str, QuantityField] | None, Meta(description="What the group needs in sum before it is tried.")
    ] = None
    schedule_timeout_seconds: Annotated[
        int | None, Meta(description="How long pods wait for the others; none: the plugin's permitWaitingTimeSeconds.")
    ] = None


class CoschedulingGroupStatus(ResourcePart):
    phase: str = ""
    occupied_by: str = ""
    running: int = 0
    succeeded: int = 0
    failed: int = 0
    schedule_start_time: str | None = None

    @property
    def has_run(self) -> bool:
        """Whether all of its members were bound once."""
        return self.phase in ("Running", "Finished", "Failed") or self.succeeded > 0 or self.failed > 0


class CoschedulingGroup(
    CustomResource,
    group="scheduling.x-k8s.io",
    version="v1alpha1",
    plural="podgroups",
    kind="PodGroup",
    approved="https://github.com/kubernetes-sigs/scheduler-plugins/pull/50",
    short_names=("pg", "pgs"),
    columns=(
        KindColumn("Phase", "string", ".status.phase"),
        KindColumn("MinMember", "integer", ".spec.minMember"),
        KindColumn("Running", "integer", ".status.running"),
        KindColumn("Succeeded", "integer", ".status.succeeded"),
        KindColumn("Failed", "integer", ".status.failed"),
        KindColumn("Age", "date", ".metadata.creationTimestamp"),
    ),
):
    """Pods that are scheduled together."""

    spec: CoschedulingGroupSpec = msgspec.field(default_factory=CoschedulingGroupSpec)
    status: CoschedulingGroupStatus = msgspec.field(default_factory=CoschedulingGroupStatus)


def group_name(labels: Labels) -> str:
    """The group that a pod names; "" for none."""
    return labels.get(GROUP_LABEL, "")
