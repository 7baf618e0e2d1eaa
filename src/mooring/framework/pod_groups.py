"""What plugins see of the pod group cycle: the group that is scheduled, placements, and trials of a preemption."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from mooring.framework.nodes import NodeRows
from mooring.framework.verdicts import Refusal
from mooring.objects.core import Pod
from mooring.objects.placed import PlacedPod


@dataclass(frozen=True, slots=True)
class PodGroupInfo:
    """A pod group that is being scheduled, and those of its pods that are tried now, in this order."""

    namespace: str
    name: str
    pods: tuple[Pod, ...] = ()

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class GroupPlacement:
    """Nodes that all pods of a group may be placed on, together: one of the alternatives that are tried."""

    name: str
    nodes: NodeRows


@dataclass(frozen=True, slots=True)
class Assignment:
    """A pod of the group and the node it would get."""

    pod: Pod
    node: str


@dataclass(frozen=True, slots=True)
class ProposedPlacement:
    """A placement that the group fits, with the nodes that its pods would get there."""

    placement: GroupPlacement
    assignments: tuple[Assignment, ...]


@dataclass(frozen=True, slots=True)
class PodGroupPlan:
    """From pod_group_post_filter: with these pods evicted, the group fits. From pod_group_unschedulable: evict them."""

    evict: tuple[PlacedPod, ...]
    eviction_message: str = ""
    """What conditions and events of the victims report; "": that they are preempted for the group."""


class PodGroupTrial(Protocol):
    """Whether a group fits if some pods were evicted. Everything is undone when the plugin has returned."""

    @property
    def pods(self) -> Sequence[PlacedPod]:
        """Every pod on a node."""
        ...

    def evict(self, pods: Sequence[PlacedPod]) -> None: ...
    def reprieve(self, pods: Sequence[PlacedPod]) -> None: ...
    async def refusal(self) -> Refusal | None:
        """Why the group does not fit as things are now; None: it fits. Raises `PluginFault` where a plugin fails."""
        ...
