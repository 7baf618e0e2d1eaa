"""Standing selections: what plugins have asked about sets of pods, kept up to date as pods come and go.

A selection (a `PodsWhere`) carries counts per domain (tallies), sums of requests (totals) and the pods themselves,
each made when it is first asked for. What nobody has asked for during many pod changes is dropped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Generic, TypeVar

from mooring.framework import NodesWhere, PodsWhere
from mooring.objects.placed import PlacedPod
from mooring.state.pod_classes import PodClasses, Selectable
from mooring.state.selector_index import SelectorIndex
from mooring.state.table import PODS
from mooring.state.tallies import StandingTally

UNASKED_CHANGES = 20_000
"""After so many pod changes without a question a selection is dropped: keeping it costs at each change."""


P = TypeVar("P", bound=Selectable)


class Members(Generic[P]):
    """The pods of one selection, and when it was last asked about."""

    __slots__ = ("asked", "pods", "where")

    def __init__(self, where: PodsWhere, pods: Iterable[P]) -> None:
        self.where = where
        self.asked = 0
        """In pod changes, by which "a while" is measured."""
        self.pods = {pod.uid: pod for pod in pods}

    def sum_up(self, pod: P, sign: int) -> None:
        """A member came (1) or went (-1): keep what is summed over the members."""

    def drop_unasked(self, since: int) -> None:
        """Let go of what hangs on it and was not asked for since then."""


def selects(where: PodsWhere, pod: Selectable) -> bool:
    return where.matches(pod.namespace, pod.labels, is_terminating=pod.is_terminating)


def moves(where: PodsWhere, pod: Selectable) -> bool:
    """Whether counts move when the pod is supposed there or away.

    kube-scheduler does not count pods that are being deleted where it spreads pods, and yet adds one for each nominated
    pod and takes one off for each pod that a dry run takes away. So do counts that ask for it (`all_supposed`): a plan
    that differs would not be right.
    """
    return where.names(pod.namespace, pod.labels) if where.all_supposed else selects(where, pod)


M = TypeVar("M", bound=Members)  # type: ignore[type-arg]


class PodIndex(Generic[P, M]):
    """All pods of a sort, and the standing selections among them."""

    def __init__(self, make: Callable[[PodsWhere, Iterable[P]], M]) -> None:
        self._make = make
        self._pods: PodClasses[P] = PodClasses()
        self._selections: dict[PodsWhere, M] = {}
        self._index: SelectorIndex[M] = SelectorIndex()
        self._changes = 0
        self._of_nobody = 0
        """How many selections count nobody, except in a what-if."""
        self.hidden: dict[str, P] = {}
        """Pods that a what-if has taken away: still filed in their places, so that undoing it restores the order."""
        self.supposing = False
        """Whether a what-if goes on: then nothing is dropped, because undoing it must find everything."""

    def __iter__(self) -> Iterator[M]:
        return iter(self._selections.values())

    def put(self, pod: P) -> list[M]:
        """A pod came. Returns the selections it belongs to."""
        self._pods.put(pod)
        touched = self.selecting(pod)
        for selection in touched:
            selection.pods[pod.uid] = pod
            selection.sum_up(pod, 1)
        self._count_change()
        return touched

    def take(self, pod: P) -> list[M]:
        """A pod went. Returns the selections it belonged to."""
        self._pods.take(pod)
        touched = self.selecting(pod)
        for selection in touched:
            del selection.pods[pod.uid]
            selection.sum_up(pod, -1)
        self._count_change()
        return touched

    def hide(self, pod: P) -> list[M]:
        """Suppose the pod were not there. Returns the selections whose counts are then one less."""
        self.hidden[pod.uid] = pod
        return self._sum_up(pod, -1)

    def show(self, pod: P) -> list[M]:
        """Undo `hide`."""
        del self.hidden[pod.uid]
        return self._sum_up(pod, 1)

    def _sum_up(self, pod: P, sign: int) -> list[M]:
        if not self._selections:
            return []
        touched = [
            selection for selection in self._index.candidates(pod.namespace, pod.labels) if moves(selection.where, pod)
        ]
        for selection in touched:
            if selects(selection.where, pod):
                selection.sum_up(pod, sign)
        return touched

    def taken_off(self, selection: Members[P]) -> list[P]:
        """Pods that are not its members, and that a what-if takes off its counts nevertheless (see `moves`)."""
        where = selection.where
        return [pod for pod in self.hidden.values() if not selects(where, pod) and moves(where, pod)]

    def replace(self, pod: P) -> None:
        """A newer record of a pod that selections and sums see alike."""
        self._pods.put(pod)
        for selection in self.selecting(pod):
            selection.pods[pod.uid] = pod

    def selecting(self, pod: P) -> list[M]:
        """The standing selections that the pod belongs to."""
        return [
            selection
            for selection in self._index.candidates(pod.namespace, pod.labels)
            if selects(selection.where, pod)
        ]

    def also_supposed(self, pod: P) -> list[M]:
        """The standing selections that the pod does not belong to, but whose tallies a supposition about it moves."""
        if not pod.is_terminating and not self._of_nobody:
            return []
        return [
            selection
            for selection in self._index.candidates(pod.namespace, pod.labels)
            if not selects(selection.where, pod) and moves(selection.where, pod)
        ]

    def selection(self, where: PodsWhere) -> M:
        """The standing selection, made now if nobody asked before."""
        selection = self._selections.get(where)
        if selection is None:
            selection = self._selections[where] = self._make(where, self._pods.matching(where))
            self._index.add(where, selection)
            self._of_nobody += where.nobody
        selection.asked = self._changes
        return selection

    def members(self, where: PodsWhere) -> list[P]:
        return self.visible(self.selection(where))

    def visible(self, selection: Members[P]) -> list[P]:
        """Its pods, without those that a what-if has taken away."""
        if self.hidden:
            return [pod for uid, pod in selection.pods.items() if uid not in self.hidden]
        return list(selection.pods.values())

    def _count_change(self) -> None:
        self._changes += 1
        if self._changes % (UNASKED_CHANGES // 2) == 0 and not self.supposing:
            since = self._changes - UNASKED_CHANGES
            for selection in list(self._selections.values()):
                selection.drop_unasked(since)
                if selection.asked <= since:
                    del self._selections[selection.where]
                    self._index.remove(selection.where, selection)
                    self._of_nobody -= selection.where.nobody


class Selection(Members[PlacedPod]):
    """Placed pods: with counts per domain and sums of requests."""

    __slots__ = ("tallies", "totals")

    def __init__(self, where: PodsWhere, pods: Iterable[PlacedPod]) -> None:
        super().__init__(where, pods)
        self.tallies: dict[tuple[str, NodesWhere], StandingTally] = {}
        self.totals: dict[str, int] = {}

    def sum_up(self, pod: PlacedPod, sign: int) -> None:
        for resource in self.totals:
            self.totals[resource] += sign * amount_of(pod, resource)

    def drop_unasked(self, since: int) -> None:
        for place, tally in list(self.tallies.items()):
            if tally.asked <= since:
                del self.tallies[place]
                tally.close()


def amount_of(pod: PlacedPod, resource: str) -> int:
    """What the pod counts as of the resource; each pod is one of "pods"."""
    return 1 if resource == PODS else pod.request(resource)
