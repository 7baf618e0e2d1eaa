"""Which pods of each pod group are known: those without a node, and those on one, assumed or bound.

A group is known as long as some pod names it, whether or not its PodGroup object exists.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mooring.objects import Pod
from mooring.objects.placed import PlacedPod

Key = tuple[str, str]
"""Namespace and name of a group."""


class PodGroupMembers:
    """The pods of one group. Each is either unscheduled or scheduled."""

    __slots__ = ("_bound_count", "_most_bound_count", "_preempted_count", "_scheduled", "_tried", "_unscheduled")

    def __init__(self) -> None:
        self._unscheduled: dict[str, Pod] = {}
        self._scheduled: dict[str, PlacedPod] = {}
        self._tried: set[str] = set()
        self._bound_count = self._most_bound_count = self._preempted_count = 0

    def _put(self, pod: PlacedPod) -> None:
        self._unscheduled.pop(pod.uid, None)
        if (before := self._scheduled.get(pod.uid)) is not None:
            self._count(before, -1)
        self._scheduled[pod.uid] = pod
        self._count(pod, 1)
        self._most_bound_count = max(self._most_bound_count, self._bound_count)
        if pod.is_bound:
            self._tried.discard(pod.uid)

    def _put_pending(self, pod: Pod) -> None:
        self._unscheduled.pop(pod.uid, None)
        if pod.uid not in self._scheduled:
            self._unscheduled[pod.uid] = pod

    def _count(self, pod: PlacedPod, by: int) -> None:
        if pod.is_preempted:
            self._preempted_count += by
        elif pod.is_bound:
            self._bound_count += by

    def _withdraw(self, uid: str, pending: Pod | None) -> None:
        if (pod := self._scheduled.pop(uid, None)) is not None:
            self._count(pod, -1)
        self._tried.discard(uid)
        if pending is not None:
            self._unscheduled[uid] = pending

    @property
    def all_count(self) -> int:
        return len(self._unscheduled) + len(self._scheduled)

    @property
    def scheduled_count(self) -> int:
        """How many are on a node: assumed there, or bound by any scheduler. Terminating ones count."""
        return len(self._scheduled)

    @property
    def tried_count(self) -> int:
        """How many of those on a node are only tried there, in the pod group cycle under way."""
        return len(self._tried)

    @property
    def preempted_count(self) -> int:
        """How many of those on a node are terminating because a scheduler evicted them."""
        return self._preempted_count

    @property
    def most_bound_count(self) -> int:
        """The highest number that was bound at once, as far as this process has seen, without those that a scheduler
        evicts."""
        return self._most_bound_count

    @property
    def unscheduled(self) -> Sequence[Pod]:
        """In the order in which they became so."""
        return tuple(self._unscheduled.values())

    @property
    def scheduled(self) -> Sequence[PlacedPod]:
        return tuple(self._scheduled.values())


class PodGroupIndex:
    """The members of every group. The state calls it at each change of a pod that names a group."""

    def __init__(self) -> None:
        self._groups: dict[Key, PodGroupMembers] = {}

    @property
    def groups(self) -> Mapping[Key, PodGroupMembers]:
        return self._groups

    def put_pending(self, pod: Pod) -> None:
        """The pod has no node, or its object changed. While it is assumed on a node, it does not count as
        unscheduled."""
        if name := pod.pod_group_name:
            self._of(pod.namespace, name)._put_pending(pod)

    def remove_pending(self, pod: Pod) -> None:
        key = (pod.namespace, pod.pod_group_name or "")
        if (members := self._groups.get(key)) is not None:
            members._unscheduled.pop(pod.uid, None)
            self._drop_if_empty(key, members)

    def put(self, pod: PlacedPod) -> None:
        """The pod is on a node, or its record there changed."""
        self._of(pod.namespace, pod.group)._put(pod)

    def put_in_trial(self, pod: PlacedPod) -> None:
        """The pod is tried on a node, until `take`."""
        self._of(pod.namespace, pod.group)._tried.add(pod.uid)

    def take(self, pod: PlacedPod, pending: Pod | None) -> None:
        """The pod is on no node any more. `pending`: it was only assumed there, and is unscheduled again."""
        key = (pod.namespace, pod.group)
        if (members := self._groups.get(key)) is not None:
            members._withdraw(pod.uid, pending)
            self._drop_if_empty(key, members)

    def withdraw(self, pod: PlacedPod, pending: Pod | None) -> None:
        """The pod will be on no node soon: it counts as unscheduled already."""
        if (members := self._groups.get((pod.namespace, pod.group))) is not None:
            members._withdraw(pod.uid, pending)

    def _of(self, namespace: str, name: str) -> PodGroupMembers:
        return self._groups.setdefault((namespace, name), PodGroupMembers())

    def _drop_if_empty(self, key: Key, members: PodGroupMembers) -> None:
        if not members.all_count:
            del self._groups[key]
