"""Which pods belong to a group, and how far they are. Read from the sets that the state keeps up to date."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from mooring.framework import NodeRows, PlacedPod, Pod, Pods, PodsWhere, WaitingPod, WaitingPods
from mooring.objects.quantity import milli, whole
from mooring.objects.requests import is_counted
from mooring.plugins.community.coscheduling.pod_groups import GROUP_LABEL, CoschedulingGroup, group_name

PODS = "pods"
MOST_KEPT = 10_000


@dataclass(frozen=True, slots=True)
class Members:
    """The pods of a group at one moment."""

    assigned: Sequence[PlacedPod]
    """On a node: bound, or assumed there and perhaps waiting on permit."""
    pending: Sequence[Pod]

    def __len__(self) -> int:
        if not self.assigned or not self.pending:
            return len(self.assigned) + len(self.pending)
        assigned = {pod.uid for pod in self.assigned}
        return len(assigned) + sum(1 for pod in self.pending if pod.metadata.uid not in assigned)

    @property
    def gated(self) -> int:
        """How many have scheduling gates."""
        return sum(1 for pod in self.pending if pod.spec.scheduling_gates)


class GroupMembers:
    """Finds the members of groups. `counts_terminating`: whether pods that are being deleted are members, too."""

    def __init__(self, pods: Pods, waiting: WaitingPods, *, counts_terminating: bool) -> None:
        self._pods, self._waiting, self._counts_terminating = pods, waiting, counts_terminating
        self._where: dict[tuple[str, str], PodsWhere] = {}

    def of(self, group: CoschedulingGroup) -> Members:
        where = self._selecting(group)
        return Members(self._pods.placed(where), self._pods.pending(where))

    def assigned(self, group: CoschedulingGroup) -> Sequence[PlacedPod]:
        return self._pods.placed(self._selecting(group))

    def waiting(self, group: CoschedulingGroup) -> Iterator[WaitingPod]:
        """Those that wait on permit."""
        for waiting in self._waiting:
            if waiting.pod.namespace == group.namespace and group_name(waiting.pod.labels) == group.name:
                yield waiting

    def _selecting(self, group: CoschedulingGroup) -> PodsWhere:
        metadata = group.metadata
        key = (metadata.namespace, metadata.name)
        where = self._where.get(key)
        if where is None:
            if len(self._where) >= MOST_KEPT:
                self._where.clear()
            where = self._where[key] = PodsWhere.labelled(
                {GROUP_LABEL: metadata.name}, namespaces=[metadata.namespace], terminating=self._counts_terminating
            )
        return where


def missing_resources(
    group: CoschedulingGroup, nodes: NodeRows, own: Sequence[PlacedPod], *, counts_overcommitted: bool
) -> dict[str, int]:
    """What of minResources the nodes lack in sum, if the group's own pods were not there.

    `counts_overcommitted`: a node that holds more than it has takes away from the others, unless these have enough.
    """
    wanted = {
        name: milli(text) if name == "cpu" else whole(text) for name, text in (group.spec.min_resources or {}).items()
    }
    wanted[PODS] = group.spec.min_member
    place = {name: position for position, name in enumerate(nodes.names)} if own else {}
    missing = {}
    for resource, amount in wanted.items():
        if amount <= 0:
            continue
        if resource != PODS and not is_counted(resource):
            missing[resource] = amount
            continue
        left = nodes.allocatable(resource) - nodes.requested(resource)
        for pod in own:
            if (position := place.get(pod.node)) is not None:
                left[position] += 1 if resource == PODS else pod.request(resource)
        most = int(np.cumsum(left).max(initial=0) if counts_overcommitted else left.clip(min=0).sum())
        if most < amount:
            missing[resource] = amount - most
    return missing
