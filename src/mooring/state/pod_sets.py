"""Sets of pods that plugins read, kept up to date as pods come and go.

A set (by its `PodsWhere`) has counts per domain (tallies), sums of requests (totals) and the pods themselves, each
made when it is first read. What costs more to keep than to make again is dropped, and so are the least recently used
beyond a number: pods may need any number of sets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from mooring.framework import IntArray, NodesWhere, PodsWhere
from mooring.objects.placed import PlacedPod
from mooring.state.affinity_terms import AffinityTerms
from mooring.state.moved_pods import MovedPods, moves, selects
from mooring.state.pod_classes import NO_ROW, PodClass, PodClasses
from mooring.state.selectors_by_label import SelectorsByLabel
from mooring.state.table import PODS, NodeTable
from mooring.state.tallies import PodsPerRow, StandingTally

UNUSED_CHANGES = 20_000
"""After so many pod changes without a read a set is dropped: keeping it costs at each change."""
UNUSED_TOUCHES = 64
"""As well after so many changes of its own pods, and one more for every eighth pod: making it again costs no more."""
MOST_OF_A_POD = 128
"""A pod that belongs to more sets leaves the most recently read ones: each costs at every change of such a pod."""
MOST_COUNTS = 10_000
"""The sets and tallies that are kept from one decision to the next."""
MOST_COLUMN_BYTES = 64 * 1024 * 1024
"""The columns of tallies that are kept; those of the least recently used are made again when read."""
MOST_CLASSES = 4096
"""The classes of pods whose sets are kept."""
CHECKED_AFTER = 128
"""The two limits are checked when so many were made."""


class PodSet:
    """The pods of one set: counts per domain, sums of requests, and when it was last read."""

    __slots__ = (
        "_index",
        "_per_row",
        "_summed",
        "_table",
        "follows",
        "moved_pods",
        "pods",
        "tallies",
        "totals",
        "touches",
        "used",
        "where",
    )

    def __init__(self, where: PodsWhere, index: PodIndex, table: NodeTable) -> None:
        self.where = where
        self._index = index
        self._table = table
        self.used = 0
        """In pod changes, by which "a while" is measured."""
        self.touches = 0
        """How many of its pods came or went since it was read."""
        self.pods: dict[str, PlacedPod] | None = None
        """By uid, once the pods themselves were read."""
        self.tallies: dict[tuple[str, NodesWhere], StandingTally] = {}
        self._per_row: PodsPerRow | None = None
        self.totals: dict[str, int] = {}
        self._summed = 0
        """How many pods there were when a total was made."""
        self.moved_pods = index.moved
        self.follows = False
        """Whether its counts move with the pods that what-ifs move."""
        if index.moved.is_active:
            index.moved.follow(self, is_made_now=True)

    def follow(self) -> None:
        """It is read in a what-if: its counts are to be as they are there."""
        if not self.follows:
            self.moved_pods.follow(self)

    def move(self, pod: PlacedPod, row: int, sign: int, *, is_added: bool) -> None:
        self.count(row, sign)
        holds_it = is_added and self.pods is not None
        if not (self.totals or holds_it) or not selects(self.where, pod):
            return
        self.sum_up(pod, sign)
        if self.pods is not None and is_added:
            if sign > 0:
                self.pods[pod.uid] = pod
            else:
                del self.pods[pod.uid]

    def total(self, resource: str) -> int:
        """The standing sum of what the pods request."""
        total = self.totals.get(resource)
        if total is None:
            amounts = [amount_of(pod, resource) for pod in self._index.matching(self.where)]
            total, self._summed = sum(amounts), len(amounts)
            self.totals[resource] = total
        return total

    @property
    def counts(self) -> int:
        """How many standing counts this is."""
        return 1 + sum(tally.weight for tally in self.tallies.values())

    @property
    def size(self) -> int:
        """About how many pods there are, as far as that is known."""
        return max((len(self.pods or ()), self._summed, *(tally.total for tally in self.tallies.values())))

    def tally(self, key: str, on: NodesWhere) -> StandingTally:
        tally = self.tallies.get((key, on))
        if tally is None:
            tally = self.tallies[key, on] = StandingTally(self._table, key, on, self)
            self._index.made += 1
        tally.used = self.used
        return tally

    def moves(self, pod: PlacedPod) -> bool:
        return moves(self.where, pod)

    def rows(self) -> IntArray:
        return self._index.rows(self.where, self._row_of, self._table.row_version)

    def moved_rows(self) -> list[tuple[int, int]]:
        return self.moved_pods.uncounted(self.where)

    def per_row(self) -> PodsPerRow:
        if self._per_row is None:
            self._per_row = PodsPerRow(self._table, self.rows())
            for row, sign in self.moved_rows():
                self._per_row.add(row, sign)
        return self._per_row

    def _row_of(self, pod: PlacedPod) -> int:
        view = self._table.get(pod.node)
        return NO_ROW if view is None else view.row

    def count(self, row: int, sign: int) -> None:
        """A pod that moves the counts came onto a row (1) or left it (-1)."""
        if self._per_row is not None:
            self._per_row.add(row, sign)
        for tally in self.tallies.values():
            tally.count(row, sign)

    def sum_up(self, pod: PlacedPod, sign: int) -> None:
        """A member came (1) or went (-1): keep what is summed over the members."""
        if totals := self.totals:
            amounts = pod.requests.amounts
            for resource, total in totals.items():  # `amount_of`, without a call for each
                totals[resource] = total + sign * (1 if resource == PODS else amounts.get(resource, 0))

    def drop_unused(self, since: int) -> None:
        """Drop the tallies that were not read since then."""
        for place, tally in list(self.tallies.items()):
            if tally.used <= since:
                del self.tallies[place]
                tally.close()

    def column_bytes(self) -> int:
        total = self._per_row.column_bytes if self._per_row is not None else 0
        return total + sum(tally.column_bytes for tally in self.tallies.values())

    def drop_columns(self) -> None:
        """Free what can be computed again."""
        if self._per_row is not None:
            self._per_row.drop_column()
        for tally in self.tallies.values():
            tally.drop_column()

    def close(self) -> None:
        """It is no longer kept."""
        for tally in self.tallies.values():
            tally.close()


class PodIndex:
    """The placed pods, and the sets among them that are kept up to date."""

    def __init__(self, table: NodeTable) -> None:
        self._table = table
        self._pods: PodClasses[PlacedPod] = PodClasses()
        self._sets: dict[PodsWhere, PodSet] = {}
        self._index: SelectorsByLabel[PodSet] = SelectorsByLabel()
        self._by_class: dict[PodClass[PlacedPod], list[PodSet]] = {}
        """The sets that pods of a class belong to, until a set comes or goes."""
        self._changes = 0
        self.made = 0
        """How many sets and tallies were made since the limits were checked."""
        self.moved: MovedPods[PodSet] = MovedPods()

    def __iter__(self) -> Iterator[PodSet]:
        return iter(self._sets.values())

    def put(self, pod: PlacedPod) -> list[PodSet]:
        """A pod came. Returns the sets it belongs to."""
        alike = self._pods.put(pod)
        touched = self._selecting_class(alike, pod) if self._sets else []
        for pod_set in touched:
            if pod_set.pods is not None:
                pod_set.pods[pod.uid] = pod
            pod_set.sum_up(pod, 1)
        self._count_change(touched)
        return touched

    def take(self, pod: PlacedPod) -> list[PodSet]:
        """A pod went. Returns the sets it belonged to."""
        self._pods.take(pod)
        touched = self.selecting(pod)
        for pod_set in touched:
            if pod_set.pods is not None:
                del pod_set.pods[pod.uid]
            pod_set.sum_up(pod, -1)
        self._count_change(touched)
        return touched

    def add_in_what_if(self, pod: PlacedPod, row: int) -> None:
        self._pods.put(pod)
        self.moved.add(pod, row)

    def remove_in_what_if(self, pod: PlacedPod, row: int) -> None:
        """Undo `add_in_what_if`."""
        self._pods.take(pod)
        self.moved.remove(pod, row)

    def rows(self, where: PodsWhere, row_of: Callable[[PlacedPod], int], version: int) -> IntArray:
        """The rows of the pods that count, also of those that a what-if evicts."""
        return self._pods.rows(where, row_of, version)

    def replace(self, pod: PlacedPod) -> None:
        """A newer record of a pod that counts alike in sets and sums."""
        for pod_set in self._selecting_class(self._pods.put(pod), pod):
            if pod_set.pods is not None:
                pod_set.pods[pod.uid] = pod

    def relabel(self, old: PlacedPod, new: PlacedPod) -> tuple[list[PodSet], list[PodSet]]:
        """A newer record of a pod that differs in its labels only. Returns the sets that it left, and the new ones."""
        self._pods.take(old)
        self._pods.put(new)
        before, after = self.selecting(old), self.selecting(new)
        left = [pod_set for pod_set in before if pod_set not in after]
        joined = [pod_set for pod_set in after if pod_set not in before]
        for pod_set in left:
            if pod_set.pods is not None:
                del pod_set.pods[old.uid]
            pod_set.sum_up(old, -1)
        for pod_set in after:
            if pod_set.pods is not None:
                pod_set.pods[new.uid] = new
        for pod_set in joined:
            pod_set.sum_up(new, 1)
        self._count_change([*left, *joined])
        return left, joined

    def selecting(self, pod: PlacedPod) -> list[PodSet]:
        """The sets that the pod belongs to."""
        namespace, labels, is_terminating = pod.namespace, pod.labels, pod.is_terminating
        return [
            pod_set
            for pod_set in self._index.candidates(namespace, labels)
            if pod_set.where.matches(namespace, labels, is_terminating=is_terminating)
        ]

    def _selecting_class(self, alike: PodClass[PlacedPod], pod: PlacedPod) -> list[PodSet]:
        """`selecting`, which is the same for all pods of a class that are not being deleted."""
        if pod.is_terminating:
            return self.selecting(pod)
        found = self._by_class.get(alike)
        if found is None:
            if len(self._by_class) >= MOST_CLASSES:
                self._by_class.clear()
            found = self._by_class[alike] = self.selecting(pod)
        return found

    def pod_set(self, where: PodsWhere) -> PodSet:
        """The set, made now if there is none yet."""
        pod_set = self._sets.get(where)
        if pod_set is None:
            pod_set = self._sets[where] = PodSet(where, self, self._table)
            self._index.add(where, pod_set)
            self.made += 1
            self._by_class.clear()
        elif self.moved.is_active:
            pod_set.follow()
        pod_set.used = self._changes
        pod_set.touches = 0
        return pod_set

    def members(self, where: PodsWhere) -> list[PlacedPod]:
        """The pods of a set, without those that a what-if evicts."""
        pod_set = self.pod_set(where)
        if pod_set.pods is None:
            pod_set.pods = {pod.uid: pod for pod in self._pods.matching(where)}
        if evicted := self.moved.evicted:
            return [pod for uid, pod in pod_set.pods.items() if uid not in evicted]
        return list(pod_set.pods.values())

    def matching(self, where: PodsWhere) -> Iterator[PlacedPod]:
        """As `members`, for a caller that goes through them once."""
        found = self._pods.matching(where)
        evicted = self.moved.evicted
        return (pod for pod in found if pod.uid not in evicted) if evicted else found

    def trim(self) -> None:
        """Keep within the limits. Between two decisions only: what a decision reads must stand until its end."""
        self.made = counts = column_bytes = 0
        kept = sorted(self._sets.values(), key=lambda pod_set: pod_set.used)
        while kept:
            pod_set = kept.pop()  # the most recently used first
            counts += pod_set.counts
            if counts > MOST_COUNTS:
                self._drop(pod_set)
                continue
            column_bytes += pod_set.column_bytes()
            if column_bytes > MOST_COLUMN_BYTES:
                pod_set.drop_columns()
                if pod_set.column_bytes():
                    self._drop(pod_set)

    def _count_change(self, touched: Sequence[PodSet]) -> None:
        self._changes += 1
        if len(touched) > MOST_OF_A_POD:
            for pod_set in sorted(touched, key=lambda each: each.used)[:-MOST_OF_A_POD]:
                self._drop(pod_set)
            return
        for pod_set in touched:
            pod_set.touches += 1
            if pod_set.touches > UNUSED_TOUCHES and pod_set.touches > UNUSED_TOUCHES + pod_set.size // 8:
                self._drop(pod_set)
        if self._changes % (UNUSED_CHANGES // 2) == 0:
            since = self._changes - UNUSED_CHANGES
            for pod_set in list(self._sets.values()):
                pod_set.drop_unused(since)
                if pod_set.used <= since:
                    self._drop(pod_set)

    def _drop(self, pod_set: PodSet) -> None:
        del self._sets[pod_set.where]
        self._index.remove(pod_set.where, pod_set)
        self._by_class.clear()
        pod_set.close()


def count_pod(terms: AffinityTerms, pod: PlacedPod, row: int, touched: Iterable[PodSet], sign: int) -> None:
    """Move tallies and terms: the pod comes onto a row (1) or leaves it (-1)."""
    for pods in touched:
        pods.count(row, sign)
    if pod.affinity is not None:
        terms.count(pod, row, sign)


def amount_of(pod: PlacedPod, resource: str) -> int:
    """What the pod counts as of the resource; each pod is one of "pods"."""
    return 1 if resource == PODS else pod.request(resource)
