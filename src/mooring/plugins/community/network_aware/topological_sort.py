"""TopologicalSort: try the pods of an application in the order of its dependencies.

Pods of one AppGroup are ordered by the place of their workload in the group's status; a workload that is not listed
comes first. All other pods are ordered as PrioritySort does: by priority, then by waiting time.
"""

from __future__ import annotations

from typing import Annotated

from mooring.framework import Args, Meta, Objects, Plugin, QueuedPod
from mooring.plugins.community.compatibility import Compatibility
from mooring.plugins.community.network_aware.app_groups import (
    GROUP_LABEL,
    WORKLOAD_LABEL,
    AppGroup,
    binary_search,
    first_of,
)

NOT_LISTED = -1


class TopologicalSortArgs(Args):
    """Arguments of TopologicalSort."""

    namespaces: Annotated[
        list[str], Meta(description="Where AppGroups are looked for, in this order; none given: default.")
    ] = []
    compatibility: Compatibility = "mooring"


class QueueKey:
    """Orders a pod among others: by its workload's place within its group, otherwise by priority and waiting time."""

    __slots__ = ("group", "is_strict", "place", "priority")

    def __init__(self, group: str, place: int, priority: tuple[int, float], is_strict: bool) -> None:
        self.group, self.place, self.priority, self.is_strict = group, place, priority, is_strict

    def __lt__(self, other: QueueKey) -> bool:
        if not self.group or self.group != other.group:
            return self.priority < other.priority
        if self.is_strict:
            return (self.place, self.priority) < (other.place, other.priority)
        return self.place <= other.place


class TopologicalSort(Plugin):
    """Try pods of one application in the order of its dependencies, others by priority."""

    def __init__(self, args: TopologicalSortArgs, groups: Objects[AppGroup]) -> None:
        self._namespaces = args.namespaces or ["default"]
        self._is_compatible = args.compatibility == "scheduler-plugins"
        self._groups = groups

    def sort_key(self, queued: QueuedPod) -> QueueKey:
        priority, labels = (-queued.priority, queued.timestamp), queued.pod.labels
        name = labels.get(GROUP_LABEL, "")
        group = first_of(self._groups, name, self._namespaces) if name else None
        if group is None:  # a group that does not exist orders nothing
            return QueueKey("", NOT_LISTED, priority, is_strict=True)
        place = self._place(group, labels.get(WORKLOAD_LABEL, ""))
        return QueueKey(name, place, priority, is_strict=not self._is_compatible)

    def _place(self, group: AppGroup, selector: str) -> int:
        order = group.status.topology_order
        if self._is_compatible:
            listed = binary_search(order, lambda entry: entry.workload.selector, selector)
        else:
            listed = next((entry for entry in order if entry.workload.selector == selector), None)
        return NOT_LISTED if listed is None else listed.index
