"""How a plugin sees nodes: one at a time (`NodeView`) or many at once (`NodeRows`).

Amounts are whole numbers in the scheduler's units: thousandths of a CPU, bytes, pieces. `pods` is a resource too:
`allocatable("pods")` is how many pods the node takes, `requested("pods")` how many it has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Protocol

from mooring.framework.verdicts import BoolArray, IntArray
from mooring.objects.core import ContainerImage, Taint
from mooring.objects.placed import PlacedPod


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
    def pods(self) -> Sequence[PlacedPod]:
        """The pods on it, the assumed ones among them (they carry the time of the decision)."""
        ...

    def allocatable(self, resource: str) -> int: ...
    def requested(self, resource: str) -> int: ...
    def requested_nonzero(self, resource: str) -> int:
        """As `requested`, with 100m CPU and 200Mi for each container that names none: for scoring."""
        ...

    def free(self, resource: str) -> int: ...
    def domain(self, key: str) -> str | None:
        """The value of a topology label, if the node has it."""
        ...


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
    def allocatable(self, resource: str) -> IntArray: ...
    def requested(self, resource: str) -> IntArray: ...
    def requested_nonzero(self, resource: str) -> IntArray: ...
    def free(self, resource: str) -> IntArray: ...
    def where_label(self, key: str, test: Callable[[str | None], bool]) -> BoolArray:
        """Where the label's value (None: absent) passes; the test is asked once per distinct value."""
        ...

    def where_taints(self, test: Callable[[Sequence[Taint]], bool]) -> BoolArray:
        """Where the taints pass; the test is asked once per distinct list of taints."""
        ...

    def count_taints(self, count: Callable[[Sequence[Taint]], int]) -> IntArray:
        """A number per node from its taints; asked once per distinct list."""
        ...

    def label_numbers(self, key: str, number: Callable[[str | None], int]) -> IntArray:
        """A number per node from a label's value; asked once per distinct value."""
        ...
