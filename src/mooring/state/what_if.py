"""What-ifs about one node: some of its pods are evicted, others are added. Undone exactly when they end.

The verbs of `State` are not used for it: no change is logged, and standing counts move only where they are read.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

import msgspec

from mooring.base.errors import Fault
from mooring.objects.placed import HostPort, PlacedPod
from mooring.state.affinity_terms import AffinityTerms
from mooring.state.pod_sets import PodIndex, count_pod
from mooring.state.table import NodeTable
from mooring.state.views import RowView, change, pods_on


class WhatIfs:
    """How a what-if changes the parts of the state, and changes them back."""

    __slots__ = ("_index", "_table", "_terms")

    def __init__(self, table: NodeTable, index: PodIndex, terms: AffinityTerms) -> None:
        self._table = table
        self._index = index
        self._terms = terms

    @property
    def is_active(self) -> bool:
        return self._index.moved.is_active

    def begin(self) -> bool:
        """Returns whether this is the outermost what-if."""
        if self.is_active:
            return False
        self._index.moved.is_active = True
        self._pause_logs(True)
        return True

    def end(self) -> None:
        self._index.moved.end()
        self._pause_logs(False)

    def _pause_logs(self, is_paused: bool) -> None:
        table = self._table
        for log in (table.node_changes, table.request_changes, table.pod_changes):
            log.paused = is_paused

    def evict(self, view: RowView, pods: Collection[PlacedPod]) -> None:
        self._table.take_pods(view, pods)
        for pod in pods:
            if pod.ports:
                self._table.ports.free_in_what_if(view.row, pod.ports)
            self._index.moved.evict(pod, view.row)
            count_pod(self._terms, pod, view.row, (), -1)

    def restore(self, view: RowView, pods: Collection[PlacedPod]) -> None:
        """Undo `evict`."""
        self._table.put_pods(view, pods)
        for pod in pods:
            if pod.ports:
                self._table.ports.take_in_what_if(view.row, pod.ports)
            self._index.moved.restore(pod, view.row)
            count_pod(self._terms, pod, view.row, (), 1)

    def add(self, view: RowView, pod: PlacedPod) -> None:
        self._table.put_pod(view, pod)
        if pod.ports:
            self._table.ports.take_in_what_if(view.row, pod.ports)
        self._index.add_in_what_if(pod, view.row)
        count_pod(self._terms, pod, view.row, (), 1)

    def remove(self, view: RowView, pod: PlacedPod) -> None:
        """Undo `add`."""
        self._index.remove_in_what_if(pod, view.row)
        count_pod(self._terms, pod, view.row, (), -1)
        self._table.take_pod(view, pod)

    def free_ports(self, view: RowView) -> frozenset[HostPort]:
        return self._table.ports.freed_at(view.row)

    def restore_ports(self, view: RowView, free: frozenset[HostPort]) -> None:
        self._table.ports.restore(view.row, free)


class WhatIfNode:
    """`with` it, columns, tallies, sums and terms are as they would be. May be nested."""

    __slots__ = ("_added", "_before", "_evicted", "_is_outermost", "_ports_before", "_view", "_what_ifs")

    def __init__(
        self,
        what_ifs: WhatIfs,
        view: RowView,
        without: Iterable[PlacedPod] = (),
        adding: Iterable[PlacedPod] = (),
    ) -> None:
        self._what_ifs = what_ifs
        self._view = view
        self._evicted = {pod.uid: self._on_node(pod) for pod in without}
        self._added = [msgspec.structs.replace(pod, node=view.name) for pod in adding]
        self._before = pods_on(view)
        self._is_outermost = False

    def _on_node(self, pod: PlacedPod) -> PlacedPod:
        try:
            return self._view.placed[pod.uid]
        except KeyError:
            raise Fault(f"pod {pod.key} is not on node {self._view.name}, so no what-if can evict it") from None

    def __enter__(self) -> WhatIfNode:
        what_ifs, view = self._what_ifs, self._view
        self._is_outermost = what_ifs.begin()
        self._before = pods_on(view)
        self._ports_before = what_ifs.free_ports(view)
        change(view, _placed=dict(self._before))
        if self._evicted:
            what_ifs.evict(view, self._evicted.values())
        for pod in self._added:
            what_ifs.add(view, pod)
        return self

    def reprieve(self, pod: PlacedPod) -> None:
        self._what_ifs.restore(self._view, (self._evicted.pop(pod.uid),))

    def evict(self, pod: PlacedPod) -> None:
        evicted = self._evicted[pod.uid] = self._on_node(pod)
        self._what_ifs.evict(self._view, (evicted,))

    def __exit__(self, *_: object) -> None:
        what_ifs, view = self._what_ifs, self._view
        for pod in reversed(self._added):
            what_ifs.remove(view, pod)
        if self._evicted:
            what_ifs.restore(view, self._evicted.values())
        change(view, _placed=self._before)
        what_ifs.restore_ports(view, self._ports_before)
        if self._is_outermost:
            what_ifs.end()
