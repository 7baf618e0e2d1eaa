"""How the node table is read: one node (`RowView`) or many (`Rows`), as the framework's protocols promise plugins."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from mooring.framework import BoolArray, IntArray
from mooring.framework.nodes import Capacity
from mooring.framework.verdicts import FloatArray
from mooring.objects import Node
from mooring.objects.core import ContainerImage, Taint
from mooring.objects.placed import HostPort, PlacedPod
from mooring.objects.read_only import ReadOnlyDict, refuse_attribute
from mooring.objects.volumes import Disk
from mooring.state.columns import AmountColumn, CapacityColumn, Column, InternedColumn
from mooring.state.ports import PortsInUse
from mooring.state.volumes import VolumesInUse

REMOVED = -1
"""The row of a view whose node is gone: its amounts read 0."""


class NotComputable(Exception):
    """The value depends on which pods are there, and a what-if about many nodes at once does not know it."""


class Table(Protocol):
    """What views read of the node table, which makes them."""

    views: list[RowView | None]
    allocatable: dict[str, CapacityColumn]
    lowest_allocatable: dict[str, float]
    requested: dict[str, AmountColumn]
    requested_nonzero: dict[str, AmountColumn]
    amounts: RowAmounts
    is_unschedulable: Column
    taints: InternedColumn[tuple[Taint, ...]]
    features: InternedColumn[tuple[str, ...]]
    ports: PortsInUse
    volumes: VolumesInUse

    @property
    def capacity(self) -> int: ...
    def all(self) -> Rows: ...
    def find_lowest(self, resource: str) -> float: ...
    def get(self, name: str) -> RowView | None: ...
    def view_at(self, row: int) -> RowView: ...
    def label(self, key: str) -> InternedColumn[str | None]: ...
    def cached(
        self,
        key: Hashable,
        nodes: Rows,
        compute: Callable[[Rows], NDArray[Any]],
        compute_one: Callable[[RowView], Any],
    ) -> NDArray[Any]: ...


class RowAmounts(NamedTuple):
    """By resource, the amounts of every row as plain numbers: for rules that run node by node.

    Such rules read them thousands of times a pod. Lists take a third of the time of columns; dictionaries of each node
    would take longer, because they are scattered in memory.
    """

    allocatable: dict[str, list[int]]
    requested: dict[str, list[int]]
    free: dict[str, list[int]]
    """What is allocatable and not requested."""


class RowView:
    """One node. There is one of these per node, as long as the node exists. Plugins see it: it is read-only."""

    __slots__ = (
        "_allocatable",
        "_conditions",
        "_free",
        "_placed",
        "_requested",
        "_table",
        "annotations",
        "is_unschedulable",
        "labels",
        "name",
        "object",
        "row",
        "taints",
    )

    _table: Table
    _allocatable: dict[str, list[int]]
    _requested: dict[str, list[int]]
    _free: dict[str, list[int]]
    _placed: dict[str, PlacedPod]
    _conditions: Mapping[str, str] | None
    row: int
    name: str
    object: Node
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    taints: tuple[Taint, ...]
    is_unschedulable: bool

    if not TYPE_CHECKING:
        __setattr__ = __delattr__ = refuse_attribute

    def __init__(self, table: Table, row: int, node: Node) -> None:
        allocatable, requested, free = table.amounts
        change(self, _table=table, _allocatable=allocatable, _requested=requested, _free=free)
        change(self, row=row, name=node.name, _placed={})
        show_object(self, node)

    def __repr__(self) -> str:
        return f"<node {self.name}>"

    @property
    def conditions(self) -> Mapping[str, str]:
        conditions = self._conditions
        if conditions is None:
            found = {condition.type: condition.status for condition in self.object.status.conditions}
            conditions = ReadOnlyDict(found)
            change(self, _conditions=conditions)
        return conditions

    @property
    def placed(self) -> Mapping[str, PlacedPod]:
        """The pods on it by uid."""
        return MappingProxyType(self._placed)

    @property
    def images(self) -> Sequence[ContainerImage]:
        return self.object.status.images

    @property
    def declared_features(self) -> Sequence[str]:
        return self.object.status.declared_features

    @property
    def pods(self) -> Sequence[PlacedPod]:
        return tuple(self._placed.values())

    @property
    def ports(self) -> Sequence[HostPort]:
        held = tuple([port for pod in self._placed.values() for port in pod.ports])
        if held and (free := self._table.ports.freed.get(self.row)):
            return tuple([port for port in held if port not in free])
        return held

    # `try` costs nothing where the resource is known.

    def allocatable(self, resource: str) -> int:
        try:
            return self._allocatable[resource][self.row]
        except KeyError:
            return 0

    def offers(self, resource: str) -> bool:
        return resource in self.object.status.allocatable

    def requested(self, resource: str) -> int:
        try:
            return self._requested[resource][self.row]
        except KeyError:
            return 0

    def requested_nonzero(self, resource: str) -> int:
        column = self._table.requested_nonzero.get(resource)
        return column.amounts[self.row] if column is not None else self.requested(resource)

    def free(self, resource: str) -> int:
        try:
            return self._free[resource][self.row]
        except KeyError:
            return 0

    def domain(self, key: str) -> str | None:
        return self.labels.get(key)


def change(view: RowView, **attributes: object) -> None:
    """Set what a view shows. Only the state does so."""
    for name, value in attributes.items():
        object.__setattr__(view, name, value)


def show_object(view: RowView, node: Node) -> None:
    """Show this (newer) object."""
    metadata, spec = node.metadata, node.spec
    change(view, object=node, labels=metadata.labels, annotations=metadata.annotations, _conditions=None)
    change(view, taints=spec.taints, is_unschedulable=spec.unschedulable)


def pods_on(view: RowView) -> dict[str, PlacedPod]:
    """The pods on a node by uid, to be changed by the state."""
    return view._placed


class Rows:
    """Many nodes: all, or any subset. Cheap to make; columns are fetched when read."""

    __slots__ = ("_is_prefix", "_names", "_rows", "_table", "_without")

    def __init__(self, table: Table, rows: IntArray, *, is_prefix: bool = False) -> None:
        self._table = table
        self._rows = rows
        self._is_prefix = is_prefix
        """Whether these are the first rows of the table without a gap: then a column needs no copying."""
        self._names: tuple[str, ...] | None = None
        self._without: tuple[BoolArray, Rows] | None = None

    @property
    def rows(self) -> IntArray:
        rows = self._rows
        if rows.flags.writeable:  # plugins see them
            rows.flags.writeable = False
        return rows

    @property
    def is_whole(self) -> bool:
        """Whether a node's place here is its row in the table: all nodes, and no gap from one that is gone."""
        return self._is_prefix

    @property
    def names(self) -> Sequence[str]:
        if self._names is None:
            self._names = tuple(view.name for view in self)
        return self._names

    @property
    def is_unschedulable(self) -> BoolArray:
        return self.cells(self._table.is_unschedulable)

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[RowView]:
        # Rules of plugins run on thousands of nodes: lists take a fifth of the time of a generator.
        views, rows = self._table.views, self.rows
        listed = views[: len(rows)] if self._is_prefix else [views[row] for row in rows.tolist()]
        return cast(Iterator[RowView], iter(listed))

    def at(self, position: int) -> RowView:
        """The node at this place in the order of iteration."""
        return self._table.view_at(int(self.rows[position]))

    def places_of(self, rows: Sequence[int]) -> NDArray[np.intp]:
        """The places of the nodes on these rows of the table in the order of iteration."""
        listed = np.array(rows, np.intp)
        if self._is_prefix:
            return listed
        places = np.empty(self._table.capacity, np.intp)
        places[self.rows] = np.arange(len(self.rows))
        return places.take(listed)

    def where(self, mask: BoolArray) -> Rows:
        """Those of them where the mask is true."""
        [places] = mask.nonzero()  # faster than an array indexed by a mask
        return Rows(self._table, places if self._is_prefix else self.rows.take(places))

    def without(self, mask: BoolArray) -> Rows:
        """Those of them where the mask is false. For a mask that cannot change, the same object as before."""
        if self._without is not None and self._without[0] is mask:
            return self._without[1]
        left = self.where(~mask)
        if mask.base is None and not mask.flags.writeable:  # a view may show a column, which changes
            self._without = mask, left
        return left

    def without_rows(self, rows: IntArray) -> Rows:
        """Those of them that are not on these rows of the table."""
        is_left = np.ones(self._table.capacity, np.bool_)
        is_left[rows] = False
        return self.where(is_left.take(self.rows))

    def take(self, positions: IntArray) -> Rows:
        """Those at these places, in this order."""
        return Rows(self._table, self.rows[positions])

    def of_rows(self, rows: IntArray) -> Rows:
        """The nodes on these rows of the table."""
        return Rows(self._table, rows)

    def outside(self, mask: BoolArray, count: int) -> Rows:
        """The nodes on rows where a mask over the table is false; so many. They are listed when they are first read."""
        return LazyRows(self._table, mask, count)

    def cells_of(self, mask: BoolArray) -> BoolArray:
        """Of a mask over the whole table, the cells of these nodes."""
        return mask[: len(self.rows)] if self._is_prefix else mask.take(self.rows)

    def cells(self, column: Column) -> NDArray[Any]:
        """Their part of a column of the table."""
        if not self._is_prefix:
            return column.data.take(self.rows, 0)
        count = len(self.rows)
        return column.shown if len(column.shown) == count else column.first(count)

    def allocatable(self, resource: str) -> IntArray:
        column = self._table.allocatable.get(resource)
        return self.cells(column) if column is not None else np.zeros(len(self.rows), np.int64)

    def capacity(self, resource: str) -> Capacity:
        column = self._table.allocatable.get(resource)
        if column is not None and self._is_prefix:
            return column.ready(len(self.rows))
        return Capacity(self.allocatable(resource))

    def requested(self, resource: str) -> IntArray:
        column = self._table.requested.get(resource)
        return self.cells(column) if column is not None else np.zeros(len(self.rows), np.int64)

    def requested_nonzero(self, resource: str) -> IntArray:
        column = self._table.requested_nonzero.get(resource)
        return self.cells(column) if column is not None else self.requested(resource)

    def used(self, resource: str, *, nonzero: bool = False) -> FloatArray:
        column = self._table.requested_nonzero.get(resource) if nonzero else None
        column = column or self._table.requested.get(resource)
        return self.cells(column.floats()) if column is not None else np.zeros(len(self.rows))

    def is_room_everywhere(self, resource: str, amount: int, *, nonzero: bool = False) -> bool:
        table = self._table
        lowest = table.lowest_allocatable.get(resource)
        spare = (table.find_lowest(resource) if lowest is None else lowest) - amount
        if spare < 0:
            return False
        column = table.requested_nonzero.get(resource) if nonzero else None
        column = column or table.requested.get(resource)
        return column is None or spare >= column.bound or column.stays_within(spare)

    def free(self, resource: str) -> IntArray:
        free: IntArray = self.allocatable(resource) - self.requested(resource)
        return free

    def cached(
        self,
        key: Hashable,
        compute: Callable[[Rows], NDArray[Any]],
        compute_one: Callable[[RowView], Any],
    ) -> NDArray[Any]:
        return self._table.cached(key, self, compute, compute_one)

    def where_label(self, key: str, test: Callable[[str | None], bool]) -> BoolArray:
        column = self._table.label(key)
        return column.where(self.codes(column), test)

    def where_label_in(self, key: str, values: Iterable[str]) -> BoolArray:
        column = self._table.label(key)
        return column.where_any(self.codes(column), values)

    def where_label_lacking(self, key: str) -> BoolArray:
        lacking: BoolArray = self.codes(self._table.label(key)) == 0
        return lacking

    def label_integers(self, key: str) -> tuple[IntArray, BoolArray]:
        column = self._table.label(key)
        numbers, is_number = column.integers()
        codes = self.codes(column)
        return numbers.take(codes), is_number.take(codes)

    def where_named(self, names: Iterable[str]) -> BoolArray:
        mask = np.zeros(self._table.capacity, bool)
        for name in names:
            view = self._table.get(name)
            if view is not None:
                mask[view.row] = True
        return self.cells_of(mask)

    def label_numbers(self, key: str, number: Callable[[str | None], int]) -> IntArray:
        column = self._table.label(key)
        return column.numbers(self.codes(column), number)

    def where_taints(self, test: Callable[[Sequence[Taint]], bool]) -> BoolArray:
        column = self._table.taints
        return column.where(self.codes(column), test)

    def where_features(self, test: Callable[[Sequence[str]], bool]) -> BoolArray:
        column = self._table.features
        return column.where(self.codes(column), test)

    def count_taints(self, count: Callable[[Sequence[Taint]], int]) -> IntArray:
        column = self._table.taints
        return column.numbers(self.codes(column), count)

    def where_port_taken(self, wanted: Sequence[HostPort]) -> BoolArray:
        mask = self._table.ports.where_taken(wanted, self._table.capacity)
        return np.zeros(len(self.rows), bool) if mask is None else self.cells_of(mask)

    def where_disk_mounted(self, disks: Sequence[Disk]) -> BoolArray:
        mask = self._table.volumes.where_mounted(disks, self._table.capacity)
        return np.zeros(len(self.rows), bool) if mask is None else self.cells_of(mask)

    @property
    def volume_mounts(self) -> IntArray:
        return self.cells(self._table.volumes.mounts)

    def codes(self, column: InternedColumn[Any]) -> NDArray[np.intp]:
        return self.cells(column.codes)


class LazyRows(Rows):
    """The nodes on rows where a mask over the table is false. The mask must not change before they are read."""

    __slots__ = ("_count", "_listed", "_mask")

    def __init__(self, table: Table, mask: BoolArray, count: int) -> None:
        self._table = table
        self._mask = mask
        self._count = count
        self._listed: IntArray | None = None
        self._is_prefix = False
        self._names = None
        self._without = None

    @property
    def rows(self) -> IntArray:
        if self._listed is None:
            self._listed = np.flatnonzero(~self._mask)
            self._listed.flags.writeable = False
        return self._listed

    def __len__(self) -> int:
        return self._count
