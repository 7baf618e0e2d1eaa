"""How many of something each row has, where most rows have none: by row, and as a mask over the table."""

from __future__ import annotations

import numpy as np

from mooring.framework import BoolArray

FEW_ROWS = 32
"""Up to so many rows the mask is made again each time: what one node has must not cost a cell per node."""


class RowCounts:
    """Counts per row. The mask is kept from the first read on and follows the counts."""

    __slots__ = ("_counts", "_mask")

    def __init__(self) -> None:
        self._counts: dict[int, int] = {}
        self._mask: BoolArray | None = None

    def __len__(self) -> int:
        """How many rows have any."""
        return len(self._counts)

    def __contains__(self, row: int) -> bool:
        return row in self._counts

    def add(self, row: int, amount: int) -> None:
        count = self._counts.get(row, 0) + amount
        if count:
            self._counts[row] = count
        else:
            del self._counts[row]
        if self._mask is not None:
            if row < len(self._mask):
                self._mask[row] = count > 0
            else:
                self._mask = None  # the table has grown

    def mask(self, capacity: int) -> BoolArray:
        """True where a row has any; a cell for each row of a table of this capacity. Not to be written to."""
        if self._mask is not None and len(self._mask) == capacity:
            return self._mask
        mask = np.zeros(capacity, bool)
        mask[np.fromiter(self._counts, np.intp, len(self._counts))] = True
        if len(self._counts) > FEW_ROWS:
            self._mask = mask
        return mask
