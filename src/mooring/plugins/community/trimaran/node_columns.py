"""Numbers per node that follow from the measured loads, as columns: computed when loads or nodes change."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from mooring.framework import Cycle, NodeRows
from mooring.framework.verdicts import FloatArray


class NodeColumns:
    """Columns over all nodes, and their values at some."""

    def __init__(self, numbers: Callable[[str], Sequence[float]]) -> None:
        """`numbers`: those of the node of this name, one for each column."""
        self._numbers = numbers
        self._inputs: tuple[object, ...] = ()
        self._columns: FloatArray = np.empty((0, 0))

    def at(self, nodes: NodeRows, cycle: Cycle, *inputs: object) -> FloatArray:
        """The columns at these nodes. `inputs`: what the numbers are computed from, compared by identity."""
        every = cycle.nodes
        wanted = (every, *inputs)
        if len(wanted) != len(self._inputs) or any(map(_is_other, wanted, self._inputs)):
            self._columns = np.array([self._numbers(name) for name in every.names], np.float64).T
            self._inputs = wanted
        if len(nodes) == len(every):
            return self._columns
        return self._columns[:, np.searchsorted(every.rows, nodes.rows)]


def _is_other(one: object, other: object) -> bool:
    return one is not other and not (isinstance(one, int) and one == other)


def rounded(number: float) -> int:
    """To the nearest whole number, halves away from zero: as Go rounds."""
    whole = int(number)
    return whole + (1 if number >= 0 else -1) if abs(number - whole) >= 0.5 else whole


def all_rounded(numbers: FloatArray) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """`rounded`, of many."""
    whole = np.trunc(numbers)
    away = np.where(np.abs(numbers - whole) >= 0.5, np.sign(numbers), 0.0)
    return (whole + away).astype(np.int64)
