"""How a plugin sees nodes: one at a time (`NodeView`) or many at once (`NodeRows`).

Amounts are whole numbers in the scheduler's units: thousandths of a CPU, bytes, pieces. `pods` is a resource too:
`allocatable("pods")` is how many pods the node takes, `requested("pods")` how many it has.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from mooring.framework.verdicts import BoolArray, FloatArray, IntArray
from mooring.objects.core import ContainerImage, Taint
from mooring.objects.placed import HostPort, PlacedPod
from mooring.objects.volumes import Disk


class NodeView(Protocol):
    """One node as it stands now: its object, and what runs or is assumed on it. Live: do not keep it across cycles."""

    @property
    def name(self) -> str: ...
    @property
    def row(self) -> int:
        """Its place in the node table; stable while the node exists."""
        ...

    @property
    def labels(self) -> Mapping[str, str]: ...
    @property
    def annotations(self) -> Mapping[str, str]: ...
    @property
    def taints(self) -> Sequence[Taint]: ...
    @property
    def is_unschedulable(self) -> bool:
        """Cordoned."""
        ...

    @property
    def conditions(self) -> Mapping[str, str]:
        """Condition type → status."""
        ...

    @property
    def images(self) -> Sequence[ContainerImage]: ...
    @property
    def declared_features(self) -> Sequence[str]:
        """The features that its kubelet declares."""
        ...

    @property
    def pods(self) -> Sequence[PlacedPod]:
        """The pods on it, the assumed ones among them (they carry the time of the decision)."""
        ...

    @property
    def ports(self) -> Sequence[HostPort]:
        """The host ports that its pods hold."""
        ...

    def allocatable(self, resource: str) -> int: ...
    def offers(self, resource: str) -> bool:
        """Whether the node reports the resource at all, if only as 0."""
        ...

    def requested(self, resource: str) -> int: ...
    def requested_nonzero(self, resource: str) -> int:
        """As `requested`, with 100m CPU and 200Mi for each container that names none: for scoring."""
        ...

    def free(self, resource: str) -> int: ...
    def domain(self, key: str) -> str | None:
        """The value of a topology label, if the node has it."""
        ...


class Capacity:
    """How much of a resource many nodes have: as floating point, because NumPy divides whole numbers slowly."""

    __slots__ = ("_percents", "floats", "highest", "lowest")

    def __init__(self, amounts: IntArray) -> None:
        self.floats: FloatArray = amounts.astype(np.float64)
        self.floats.flags.writeable = False
        self.lowest = float(self.floats.min()) if len(amounts) else 0.0
        self.highest = float(self.floats.max()) if len(amounts) else 0.0
        self._percents: FloatArray | None = None

    @property
    def percents(self) -> FloatArray:
        """How many percent of it one unit is; only where no node has 0. Multiplying is faster than dividing."""
        if self._percents is None:
            self._percents = 100.0 / self.floats
            self._percents.flags.writeable = False
        return self._percents


class NodeRows(Protocol):
    """Many nodes at once, as NumPy columns. Every array has one entry per node, in the order of iteration."""

    @property
    def rows(self) -> IntArray:
        """Their places in the node table."""
        ...

    @property
    def names(self) -> Sequence[str]: ...
    @property
    def is_unschedulable(self) -> BoolArray: ...
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[NodeView]: ...
    def at(self, position: int) -> NodeView:
        """The node at this place in the order of iteration."""
        ...

    def take(self, positions: IntArray) -> NodeRows:
        """Those at these places, in this order."""
        ...

    def allocatable(self, resource: str) -> IntArray: ...
    def capacity(self, resource: str) -> Capacity:
        """`allocatable`, made ready for arithmetic."""
        ...

    def requested(self, resource: str) -> IntArray: ...
    def requested_nonzero(self, resource: str) -> IntArray: ...
    def used(self, resource: str, *, nonzero: bool = False) -> FloatArray:
        """`requested` (or `requested_nonzero`), made ready for arithmetic."""
        ...

    def is_room_everywhere(self, resource: str, amount: int, *, nonzero: bool = False) -> bool:
        """Whether certainly every node has so much free; False where each must be read."""
        ...

    def free(self, resource: str) -> IntArray: ...
    def cached(
        self, key: Hashable, compute: Callable[[NodeRows], NDArray[Any]], compute_one: Callable[[NodeView], Any]
    ) -> NDArray[Any]:
        """One value for each of these nodes, or a row of values, cached under the key: computed again only for nodes
        that changed.

        `compute` may read nothing but the nodes and the pods on them; `compute_one` is the same for one node.
        """
        ...

    def where_label(self, key: str, test: Callable[[str | None], bool]) -> BoolArray:
        """Where the label's value (None: absent) passes; the test runs once per distinct value."""
        ...

    def where_label_in(self, key: str, values: Iterable[str]) -> BoolArray:
        """Where the label is there and has one of these values: faster than a test where values are many."""
        ...

    def where_label_lacking(self, key: str) -> BoolArray:
        """Where there is no label of this key."""
        ...

    def label_integers(self, key: str) -> tuple[IntArray, BoolArray]:
        """The label as a whole number of 64 bits, and where it is one."""
        ...

    def where_named(self, names: Iterable[str]) -> BoolArray:
        """Where the node has one of these names."""
        ...

    def where_taints(self, test: Callable[[Sequence[Taint]], bool]) -> BoolArray:
        """Where the taints pass; the test runs once per distinct list of taints."""
        ...

    def count_taints(self, count: Callable[[Sequence[Taint]], int]) -> IntArray:
        """A number per node from its taints; computed once per distinct list."""
        ...

    def where_features(self, test: Callable[[Sequence[str]], bool]) -> BoolArray:
        """Where the declared features pass; the test runs once per distinct list."""
        ...

    def label_numbers(self, key: str, number: Callable[[str | None], int]) -> IntArray:
        """A number per node from a label's value; computed once per distinct value."""
        ...

    def where_port_taken(self, wanted: Sequence[HostPort]) -> BoolArray:
        """Where a pod holds one of these host ports, on the same address or on all of them."""
        ...

    def where_disk_mounted(self, disks: Sequence[Disk]) -> BoolArray:
        """Where a pod mounts one of these disks, for reading or writing."""
        ...

    @property
    def volume_mounts(self) -> IntArray:
        """How many volumes with a claim or disk the pods on each node have; one that two pods mount counts twice."""
        ...
