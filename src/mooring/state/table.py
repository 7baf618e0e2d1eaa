"""The node table: the cluster in columns. Decides where a node's facts are kept; knows nothing of pods' selectors.

Rows are stable while a node exists and are reused after it is gone. `node_changes` logs rows whose node object
changed, `request_changes` rows whose pods request or hold something else, `pod_changes` rows whose pods changed at all:
a bound pod that is confirmed is another record with the same requests.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mooring.base.log import Log
from mooring.framework import IntArray, NodesWhere
from mooring.objects import Node
from mooring.objects.core import Taint
from mooring.objects.placed import PlacedPod
from mooring.objects.quantity import BadQuantity
from mooring.objects.quantity import amount as parsed_amount
from mooring.objects.requests import Amounts, is_counted
from mooring.state.cached_columns import CachedColumn
from mooring.state.changes import ChangeLog
from mooring.state.columns import AmountColumn, CapacityColumn, Column, InternedColumn
from mooring.state.domains import Domains, Included
from mooring.state.images import ImageIndex
from mooring.state.ports import PortsInUse
from mooring.state.views import REMOVED, RowAmounts, Rows, RowView, change, pods_on, show_object
from mooring.state.volumes import VolumesInUse

PODS = "pods"
FIRST_CAPACITY = 64
MOST_LABEL_COLUMNS = 256
MOST_CACHED_COLUMNS = 64

log = Log("state")


class NodeTable:
    """Every node, by row and by column."""

    def __init__(self) -> None:
        self._capacity = FIRST_CAPACITY
        self._used = 0
        """Rows below this have been given to a node at some time."""
        self._freed: list[int] = []
        self.row_version = 0
        """Changes when a node gets or loses its row."""
        self.row_of: dict[str, int] = {}
        self._all: Rows | None = None
        self.views: list[RowView | None] = []
        self.allocatable: dict[str, CapacityColumn] = {}
        self.lowest_allocatable: dict[str, float] = {}
        """What `find_lowest` returned, until a node comes, goes or changes."""
        self.requested: dict[str, AmountColumn] = {}
        self.amounts = RowAmounts({}, {}, {})
        self._requested(PODS)
        self.requested_nonzero: dict[str, AmountColumn] = {
            "cpu": AmountColumn(self._capacity),
            "memory": AmountColumn(self._capacity),
        }
        self.is_unschedulable = Column(self._capacity, np.bool_)
        self.taints: InternedColumn[tuple[Taint, ...]] = InternedColumn(self._capacity, ())
        self.features: InternedColumn[tuple[str, ...]] = InternedColumn(self._capacity, ())
        self._labels: dict[str, InternedColumn[str | None]] = {}
        """The label columns in use, the least recently used first."""
        self._label_keys: Counter[str] = Counter()
        """How many nodes have a label of this key."""
        self.has_new_labels = False
        self._no_label = Column(self._capacity, np.intp)
        """The codes of every label that no node has: pods may name any number of those."""
        self.images = ImageIndex(self)
        self.ports = PortsInUse()
        self.volumes = VolumesInUse(self._capacity)
        self._domains: dict[tuple[str, NodesWhere], Domains] = {}
        self._included: dict[NodesWhere, Included] = {}
        self._cached: dict[Hashable, CachedColumn] = {}
        self.node_changes = ChangeLog()
        self.request_changes = ChangeLog()
        self.pod_changes = ChangeLog()

    @property
    def capacity(self) -> int:
        """How many cells a column has."""
        return self._capacity

    def __len__(self) -> int:
        return len(self.row_of)

    def __iter__(self) -> Iterator[RowView]:
        return (view for view in self.views if view is not None)

    def get(self, name: str) -> RowView | None:
        row = self.row_of.get(name)
        return None if row is None else self.views[row]

    def view_at(self, row: int) -> RowView:
        view = self.views[row]
        assert view is not None, f"row {row} has no node"
        return view

    def all(self) -> Rows:
        """Every node, in the order of rows."""
        if self._all is None:
            if self._freed:
                rows: IntArray = np.array(sorted(self.row_of.values()), np.int64)
                self._all = Rows(self, rows)
            else:
                self._all = Rows(self, np.arange(self._used), is_prefix=True)
            self._all.rows.flags.writeable = False
        return self._all

    def find_lowest(self, resource: str) -> float:
        """How much of the resource the smallest node has; -1 where that takes longer to find than to read them all."""
        column, nodes = self.allocatable.get(resource), self.all()
        lowest = -1.0 if column is None or not nodes.is_whole else column.ready(len(nodes)).lowest
        self.lowest_allocatable[resource] = lowest
        return lowest

    def add(self, node: Node) -> RowView:
        row = self._free_row()
        view = RowView(self, row, node)
        self.views[row] = view
        self.row_of[node.name] = row
        self.row_version += 1
        self._all = None
        self._label_keys.update(view.labels.keys())
        self._write(view)
        self._enter_domains(view)
        return view

    def replace(self, view: RowView, node: Node) -> None:
        """A newer object of the same node. A heartbeat that changes nothing we read is not a change."""
        old = view.object
        show_object(view, node)
        if _reads_alike(old, node):
            return
        if old.labels == node.labels and old.spec.taints == node.spec.taints:
            self._write(view, old)
            return
        self._leave_domains(view.row)
        self._count_labels_out(old)
        self._label_keys.update(view.labels.keys())
        self._write(view, old)
        self._enter_domains(view)

    def remove(self, view: RowView) -> None:
        """Take the node out. Its pods must have been taken off before."""
        row = view.row
        self._leave_domains(row)
        self._count_labels_out(view.object)
        for resource, column in self.allocatable.items():
            self.amounts.free[resource][row] += column.put(row, 0)
        self.lowest_allocatable.clear()
        self.is_unschedulable.cells[row] = False
        self.taints.put(row, ())
        self.features.put(row, ())
        for labels in self._labels.values():
            labels.put(row, None)
        self.images.take(row, view.images)
        del self.row_of[view.name]
        self.row_version += 1
        self.views[row] = None
        self._freed.append(row)
        self._all = None
        change(view, row=REMOVED)
        self.node_changes.record(row)

    def put_pod(self, view: RowView, pod: PlacedPod) -> None:
        pods_on(view)[pod.uid] = pod
        self._count(view.row, pod, 1)

    def take_pod(self, view: RowView, pod: PlacedPod) -> None:
        del pods_on(view)[pod.uid]
        self._count(view.row, pod, -1)

    def put_pods(self, view: RowView, pods: Collection[PlacedPod]) -> None:
        """As `put_pod` for each, with one change per column."""
        pods_on(view).update((pod.uid, pod) for pod in pods)
        self._count_all(view.row, pods, 1)

    def take_pods(self, view: RowView, pods: Collection[PlacedPod]) -> None:
        """As `take_pod` for each, with one change per column."""
        for pod in pods:
            del pods_on(view)[pod.uid]
        self._count_all(view.row, pods, -1)

    def _count_all(self, row: int, pods: Collection[PlacedPod], sign: int) -> None:
        amounts: Amounts = {PODS: len(pods)}
        cpu_milli = memory_bytes = 0
        for pod in pods:
            requests = pod.requests
            for resource, amount in requests.amounts.items():
                amounts[resource] = amounts.get(resource, 0) + amount
            cpu_milli += requests.nonzero_cpu_milli
            memory_bytes += requests.nonzero_memory_bytes
            if pod.ports or pod.volumes:
                self._count_held(row, pod, sign)
        for resource, amount in amounts.items():
            grown = self._requested(resource).add(row, sign * amount)
            self.amounts.free[resource][row] -= grown
        self.requested_nonzero["cpu"].add(row, sign * cpu_milli)
        self.requested_nonzero["memory"].add(row, sign * memory_bytes)
        self._changed(row)

    def _count(self, row: int, pod: PlacedPod, sign: int) -> None:
        requests, requested, nonzero = pod.requests, self.requested, self.requested_nonzero
        free = self.amounts.free
        free[PODS][row] -= requested[PODS].add(row, sign)
        for resource, amount in requests.amounts.items():
            column = requested.get(resource) or self._requested(resource)
            free[resource][row] -= column.add(row, sign * amount)
        nonzero["cpu"].add(row, sign * requests.nonzero_cpu_milli)
        nonzero["memory"].add(row, sign * requests.nonzero_memory_bytes)
        if pod.ports or pod.volumes:
            self._count_held(row, pod, sign)
        self._changed(row)

    def _changed(self, row: int) -> None:
        self.request_changes.record(row)
        self.pod_changes.record(row)

    def _count_held(self, row: int, pod: PlacedPod, sign: int) -> None:
        """The ports and volumes that a pod holds."""
        if pod.ports:
            self.ports.count(row, pod.ports, sign)
        if pod.volumes:
            self.volumes.count(row, pod, sign, in_what_if=self.pod_changes.paused)

    def label(self, key: str) -> InternedColumn[str | None]:
        """The column of a label, made when it is first read and kept up to date from then on."""
        column = self._labels.pop(key, None)
        if column is None:
            column = InternedColumn(self._capacity, None, self._no_label)
            self.has_new_labels = True
            if key in self._label_keys:
                column.fill((view.row, value) for view in self if (value := view.labels.get(key)) is not None)
        self._labels[key] = column
        return column

    def domains(self, key: str, on: NodesWhere) -> Domains:
        """The topology domains of a label over these nodes, kept until `drop_domains`."""
        domains = self._domains.get((key, on))
        if domains is None:
            included = self._included.get(on)
            if included is None:
                included = self._included[on] = Included(on, self.all(), self._capacity)
            domains = self._domains[key, on] = Domains(self.label(key), included, self.all())
        return domains

    def cached(
        self,
        key: Hashable,
        nodes: Rows,
        compute: Callable[[Rows], NDArray[Any]],
        compute_one: Callable[[RowView], Any],
    ) -> NDArray[Any]:
        """A column that a plugin computes from nodes and their pods, cached under this key."""
        column = self._cached.get(key)
        if column is None:
            if len(self._cached) >= MOST_CACHED_COLUMNS:
                del self._cached[next(iter(self._cached))]
            column = self._cached[key] = CachedColumn(self)
        return column.read(nodes, compute, compute_one)

    def drop_domains(self, key: str, on: NodesWhere) -> None:
        """No tally counts by them any more."""
        domains = self._domains.pop((key, on))
        domains.close()
        if not domains.included.users:
            del self._included[on]

    def drop_unused_labels(self) -> None:
        """Keep the number of columns bounded: a pod may name any key.

        Between two decisions only, so that a decision computes each column once.
        """
        excess = len(self._labels) - MOST_LABEL_COLUMNS
        self.has_new_labels = False
        if excess > 0:
            unpinned = [key for key, column in self._labels.items() if not column.pins]
            for key in unpinned[:excess]:
                del self._labels[key]

    def _enter_domains(self, view: RowView) -> None:
        for included in self._included.values():
            included.enter(view, self._capacity)
        for domains in self._domains.values():
            domains.enter(view)

    def _leave_domains(self, row: int) -> None:
        for domains in self._domains.values():
            domains.leave(row)
        for included in self._included.values():
            included.leave(row)

    def _count_labels_out(self, node: Node) -> None:
        for key in node.labels:
            self._label_keys[key] -= 1
            if not self._label_keys[key]:
                del self._label_keys[key]

    def _free_row(self) -> int:
        if self._freed:
            return self._freed.pop()
        if self._used + 1 == self._capacity:  # the last cell stays empty
            self._grow()
        row = self._used
        self._used += 1
        self.views.append(None)
        return row

    def _grow(self) -> None:
        self._capacity *= 2
        for amounts in (self.allocatable, self.requested, self.requested_nonzero):
            for column in amounts.values():
                column.grow(self._capacity)
        for free in self.amounts.free.values():
            free += [0] * (self._capacity - len(free))
        self.is_unschedulable.grow(self._capacity)
        self.volumes.mounts.grow(self._capacity)
        self.taints.codes.grow(self._capacity)
        self.features.codes.grow(self._capacity)
        self._no_label.grow(self._capacity)
        for labels in self._labels.values():
            if not labels.is_empty:
                labels.codes.grow(self._capacity)

    def _requested(self, resource: str) -> AmountColumn:
        column = self.requested.get(resource)
        if column is None:
            column = self.requested[resource] = AmountColumn(self._capacity)
            self.amounts.requested[resource] = column.amounts
            self.amounts.free[resource] = [0] * self._capacity
        return column

    def _write(self, view: RowView, old: Node | None = None) -> None:
        row = view.row
        if old is None or old.status.allocatable != view.object.status.allocatable:
            self._write_allocatable(view)
        if old is None or old.status.images != view.images:
            self.images.take(row, old.status.images if old is not None else ())
            self.images.put(row, view.images)
        self.is_unschedulable.cells[row] = view.is_unschedulable
        self.taints.put(row, view.taints)
        self.features.put(row, tuple(view.declared_features))
        for key, labels in self._labels.items():
            labels.put(row, view.labels.get(key))
        self.node_changes.record(row)

    def _write_allocatable(self, view: RowView) -> None:
        self.lowest_allocatable.clear()
        amounts = allocatable_of(view.object)
        for resource in amounts.keys() - self.allocatable.keys():
            column = self.allocatable[resource] = CapacityColumn(self._capacity)
            self.amounts.allocatable[resource] = column.amounts
            self._requested(resource)
        for resource, column in self.allocatable.items():
            self.amounts.free[resource][view.row] += column.put(view.row, amounts.get(resource, 0))


def _reads_alike(old: Node, new: Node) -> bool:
    return (
        old.metadata.labels == new.metadata.labels
        and old.metadata.annotations == new.metadata.annotations
        and old.spec == new.spec
        and old.status == new.status
    )


def allocatable_of(node: Node) -> Amounts:
    """What the node offers, in the scheduler's units. A quantity that cannot be read counts as 0 and is logged."""
    amounts: Amounts = {}
    for resource, text in node.status.allocatable.items():
        if resource == PODS or is_counted(resource):
            try:
                amounts[resource] = parsed_amount(resource, text)
            except BadQuantity as problem:
                amounts[resource] = 0
                log.error(
                    "Node has an invalid quantity; counting it as 0",
                    node=node,
                    field=f"status.allocatable[{resource}]",
                    err=problem,
                )
    return amounts
