"""Standing selections: what plugins have asked about sets of pods, kept up to date as pods come and go.

A selection (a `PodsWhere`) carries counts per domain (tallies), sums of requests (totals) and the pods themselves,
each made when it is first asked for. What nobody has asked for during many pod changes is dropped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Generic, Protocol, TypeVar

from mooring.framework import NodesWhere, PodsWhere
from mooring.objects.placed import PlacedPod
from mooring.state.selector_index import SelectorIndex
from mooring.state.table import PODS
from mooring.state.tallies import StandingTally

UNASKED_CHANGES = 20_000
"""After so many pod changes without a question a selection is dropped: keeping it costs at each change."""


class Selectable(Protocol):
    """What selecting reads of a pod."""

    @property
    def uid(self) -> str: ...
    @property
    def namespace(self) -> str: ...
    @property
    def labels(self) -> Mapping[str, str]: ...
    @property
    def is_terminating(self) -> bool: ...


P = TypeVar("P", bound=Selectable)


class Members(Generic[P]):
    """The pods of one selection, and when it was last asked about."""

    __slots__ = ("asked", "pods", "where")

    def __init__(self, where: PodsWhere, pods: Iterable[P]) -> None:
        self.where = where
        self.asked = 0
        """In pod changes, by which "a while" is measured."""
        self.pods = {pod.uid: pod for pod in pods if selects(where, pod)}

    def sum_up(self, pod: P, sign: int) -> None:
        """A member came (1) or went (-1): keep what is summed over the members."""

    def drop_unasked(self, since: int) -> None:
        """Let go of what hangs on it and was not asked for since then."""


def selects(where: PodsWhere, pod: Selectable) -> bool:
    return where.matches(pod.namespace, pod.labels, is_terminating=pod.is_terminating)


M = TypeVar("M", bound=Members)  # type: ignore[type-arg]


class PodIndex(Generic[P, M]):
    """All pods of a sort by namespace, and the standing selections among them."""

    def __init__(self, make: Callable[[PodsWhere, Iterable[P]], M]) -> None:
        self._make = make
        self._by_namespace: dict[str, dict[str, P]] = {}
        self._selections: dict[PodsWhere, M] = {}
        self._index: SelectorIndex[M] = SelectorIndex()
        self._changes = 0
        self.hidden: set[str] = set()
        """Pods that a what-if has taken away: still filed in their places, so that undoing it restores the order."""
        self.supposing = False
        """Whether a what-if goes on: then nothing is dropped, because undoing it must find everything."""

    def __iter__(self) -> Iterator[M]:
        return iter(self._selections.values())

    def put(self, pod: P) -> list[M]:
        """A pod came. Returns the selections it belongs to."""
        self._by_namespace.setdefault(pod.namespace, {})[pod.uid] = pod
        touched = self.selecting(pod)
        for selection in touched:
            selection.pods[pod.uid] = pod
            selection.sum_up(pod, 1)
        self._count_change()
        return touched

    def take(self, pod: P) -> list[M]:
        """A pod went. Returns the selections it belonged to."""
        home = self._by_namespace[pod.namespace]
        del home[pod.uid]
        if not home:
            del self._by_namespace[pod.namespace]
        touched = self.selecting(pod)
        for selection in touched:
            del selection.pods[pod.uid]
            selection.sum_up(pod, -1)
        self._count_change()
        return touched

    def hide(self, pod: P) -> list[M]:
        """Suppose the pod were not there. Returns the selections it belongs to."""
        self.hidden.add(pod.uid)
        return self._sum_up(pod, -1)

    def show(self, pod: P) -> list[M]:
        """Undo `hide`."""
        self.hidden.remove(pod.uid)
        return self._sum_up(pod, 1)

    def _sum_up(self, pod: P, sign: int) -> list[M]:
        touched = self.selecting(pod)
        for selection in touched:
            selection.sum_up(pod, sign)
        return touched

    def replace(self, pod: P) -> None:
        """A newer record of a pod that selections and sums see alike."""
        self._by_namespace[pod.namespace][pod.uid] = pod
        for selection in self.selecting(pod):
            selection.pods[pod.uid] = pod

    def selecting(self, pod: P) -> list[M]:
        """The standing selections that the pod belongs to."""
        return [
            selection
            for selection in self._index.candidates(pod.namespace, pod.labels)
            if selects(selection.where, pod)
        ]

    def selection(self, where: PodsWhere) -> M:
        """The standing selection, made now if nobody asked before."""
        selection = self._selections.get(where)
        if selection is None:
            selection = self._selections[where] = self._make(where, self._in_namespaces(where))
            self._index.add(where, selection)
        selection.asked = self._changes
        return selection

    def members(self, where: PodsWhere) -> list[P]:
        return self.visible(self.selection(where))

    def visible(self, selection: Members[P]) -> list[P]:
        """Its pods, without those that a what-if has taken away."""
        if self.hidden:
            return [pod for uid, pod in selection.pods.items() if uid not in self.hidden]
        return list(selection.pods.values())

    def _in_namespaces(self, where: PodsWhere) -> Iterator[P]:
        homes = self._by_namespace if where.namespaces is None else where.namespaces
        for home in homes:
            yield from self._by_namespace.get(home, {}).values()

    def _count_change(self) -> None:
        self._changes += 1
        if self._changes % (UNASKED_CHANGES // 2) == 0 and not self.supposing:
            since = self._changes - UNASKED_CHANGES
            for selection in list(self._selections.values()):
                selection.drop_unasked(since)
                if selection.asked <= since:
                    del self._selections[selection.where]
                    self._index.remove(selection.where, selection)


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
