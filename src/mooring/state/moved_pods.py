"""The pods that a what-if takes off their nodes, or puts on them, and the counts that move with them.

A count moves once something reads it in a what-if, and in those that follow until the next decision. So the cost of a
what-if depends on what its own plugins read, not on what was counted for other pods.
"""

from __future__ import annotations

from typing import Generic, Protocol, TypeVar

from mooring.framework import PodsWhere
from mooring.objects.placed import PlacedPod
from mooring.state.selectors_by_label import SelectorsByLabel


def selects(where: PodsWhere, pod: PlacedPod) -> bool:
    return where.matches(pod.namespace, pod.labels, is_terminating=pod.is_terminating)


def moves(where: PodsWhere, pod: PlacedPod) -> bool:
    """Whether counts move when a what-if evicts or adds the pod.

    kube-scheduler does not count pods that are being deleted where it spreads pods, and yet adds one for each nominated
    pod and takes one off for each pod that a dry run evicts. So do counts with `what_if_counts_all`: a plan that
    differs would not be right.
    """
    return where.names(pod.namespace, pod.labels) if where.what_if_counts_all else selects(where, pod)


class Movable(Protocol):
    """Counts of the pods of one set."""

    follows: bool

    @property
    def where(self) -> PodsWhere: ...

    def move(self, pod: PlacedPod, row: int, sign: int, *, is_added: bool) -> None:
        """A pod comes onto the row (1) or leaves it (-1); see `moves`. `is_added`: it is there in a what-if alone."""
        ...


S = TypeVar("S", bound=Movable)


class MovedPods(Generic[S]):
    """What the active what-if has evicted and added, and the sets that follow."""

    __slots__ = ("_following", "_index", "_moving", "added", "evicted", "is_active")

    def __init__(self) -> None:
        self.is_active = False
        """Whether there is a what-if."""
        self.evicted: dict[str, tuple[PlacedPod, int]] = {}
        """Pods with their rows, by uid. Still indexed at their places, so that undoing it restores the order."""
        self.added: dict[str, tuple[PlacedPod, int]] = {}
        self._following: list[S] = []
        self._index: SelectorsByLabel[S] = SelectorsByLabel()
        self._moving: dict[str, list[S]] = {}
        """The sets that follow a pod, by uid: a dry run evicts a pod and reprieves it."""

    def evict(self, pod: PlacedPod, row: int) -> None:
        self.evicted[pod.uid] = pod, row
        for each in self._followers(pod):
            each.move(pod, row, -1, is_added=False)

    def restore(self, pod: PlacedPod, row: int) -> None:
        """Undo `evict`."""
        del self.evicted[pod.uid]
        for each in self._followers(pod):
            each.move(pod, row, 1, is_added=False)

    def add(self, pod: PlacedPod, row: int) -> None:
        self.added[pod.uid] = pod, row
        for each in self._followers(pod):
            each.move(pod, row, 1, is_added=True)

    def remove(self, pod: PlacedPod, row: int) -> None:
        """Undo `add`."""
        del self.added[pod.uid]
        for each in self._followers(pod):
            each.move(pod, row, -1, is_added=True)

    def end(self) -> None:
        self.is_active = False
        self._moving.clear()

    def follow(self, pod_set: S, *, is_made_now: bool = False) -> None:
        """The set is read in this what-if. `is_made_now`: what it counts, it counts as it is in the what-if."""
        pod_set.follows = True
        self._following.append(pod_set)
        self._index.add(pod_set.where, pod_set)
        self._moving.clear()
        if is_made_now:
            return
        for moved, sign in ((self.evicted, -1), (self.added, 1)):
            for pod, row in moved.values():
                if moves(pod_set.where, pod):
                    pod_set.move(pod, row, sign, is_added=sign > 0)

    def forget_followers(self) -> None:
        """Outside a what-if: the sets follow again once they are read in one."""
        if self._following:
            for pod_set in self._following:
                pod_set.follows = False
            self._following.clear()
            self._index = SelectorsByLabel()

    def uncounted(self, where: PodsWhere) -> list[tuple[int, int]]:
        """Where moved pods change a count though the pods themselves do not show it: row and sign."""
        gone = [(row, -1) for pod, row in self.evicted.values() if moves(where, pod)]
        come = [(row, 1) for pod, row in self.added.values() if moves(where, pod) and not selects(where, pod)]
        return [*gone, *come]

    def _followers(self, pod: PlacedPod) -> list[S]:
        if not self._following:
            return []
        found = self._moving.get(pod.uid)
        if found is None:
            candidates = self._index.candidates(pod.namespace, pod.labels)
            found = self._moving[pod.uid] = [each for each in candidates if moves(each.where, pod)]
        return found
