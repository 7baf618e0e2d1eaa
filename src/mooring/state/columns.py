"""Columns of the node table: one cell per row, read as a whole by NumPy and one by one as plain numbers.

A column grows by doubling. Its last cell belongs to no node and stays zero, so that the view of a node that has been
removed can point there (row -1) and reads nothing instead of its successor's numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from mooring.framework import BoolArray, IntArray

LARGEST = 2**63 - 1

V = TypeVar("V")


class Column:
    """Numbers of one type, one per row."""

    __slots__ = ("_shown", "cells", "data")

    def __init__(self, capacity: int, dtype: type) -> None:
        self.data: NDArray[Any] = np.zeros(capacity, dtype)
        self.cells = self.data.data
        self._shown: NDArray[Any] = self.data[:0]

    def grow(self, capacity: int) -> None:
        larger = np.zeros(capacity, self.data.dtype)
        larger[: len(self.data)] = self.data
        self.data = larger
        self.cells = larger.data
        self._shown = larger[:0]

    def first(self, count: int) -> NDArray[Any]:
        """The first cells, without copying and closed to writing: plugins are handed this."""
        if len(self._shown) != count:
            self._shown = self.data[:count]
            self._shown.flags.writeable = False
        return self._shown


class AmountColumn(Column):
    """Sums of amounts. A sum beyond 64 bits is shown as the largest number and remembered, so that it can shrink."""

    __slots__ = ("_beyond",)

    def __init__(self, capacity: int) -> None:
        super().__init__(capacity, np.int64)
        self._beyond: dict[int, int] = {}

    def add(self, row: int, amount: int) -> None:
        if self._beyond and row in self._beyond:
            self._set_beyond(row, self._beyond.pop(row) + amount)
            return
        total = self.cells[row] + amount
        if -LARGEST <= total <= LARGEST:
            self.cells[row] = total
        else:
            self._set_beyond(row, total)

    def put(self, row: int, amount: int) -> None:
        self._beyond.pop(row, None)
        self._set_beyond(row, amount)

    def _set_beyond(self, row: int, total: int) -> None:
        shown = max(-LARGEST, min(LARGEST, total))
        if shown != total:
            self._beyond[row] = total
        self.cells[row] = shown


class InternedColumn(Generic[V]):
    """Values as small numbers (codes), equal values sharing one. Code 0 is the absent value.

    A code whose last row has left is used again, so a column does not grow with nodes that come and go.
    """

    __slots__ = ("_code_of", "_spare", "_uses", "codes", "pins", "values")

    def __init__(self, capacity: int, absent: V) -> None:
        self.codes = Column(capacity, np.intp)  # NumPy indexes by this type without converting
        self.values: list[V] = [absent]
        self._code_of: dict[V, int] = {absent: 0}
        self._uses: list[int] = [0]
        self._spare: list[int] = []
        self.pins = 0
        """How many tallies count by these codes; a pinned column must not be dropped."""

    @property
    def size(self) -> int:
        """One more than the largest code."""
        return len(self.values)

    def put(self, row: int, value: V) -> None:
        old = self.codes.cells[row]
        if old and self.values[old] == value:
            return
        self.codes.cells[row] = self._taken(value)
        self._release(old)

    def _taken(self, value: V) -> int:
        code = self._code_of.get(value)
        if code is None:
            if self._spare:
                code = self._spare.pop()
                self.values[code] = value
            else:
                code = len(self.values)
                self.values.append(value)
                self._uses.append(0)
            self._code_of[value] = code
        self._uses[code] += 1
        return code

    def _release(self, code: int) -> None:
        self._uses[code] -= 1
        if code and not self._uses[code]:
            del self._code_of[self.values[code]]
            self.values[code] = self.values[0]
            self._spare.append(code)

    def where(self, codes: NDArray[np.intp], test: Callable[[V], bool]) -> BoolArray:
        """Where the value passes; the test is asked once per distinct value."""
        return self._judged(codes, lambda value: bool(test(value)), np.bool_)

    def numbers(self, codes: NDArray[np.intp], number: Callable[[V], int]) -> IntArray:
        """A number per row from its value; asked once per distinct value."""
        return self._judged(codes, number, np.int64)

    def _judged(self, codes: NDArray[np.intp], judge: Callable[[V], Any], dtype: type) -> NDArray[Any]:
        if len(self.values) <= len(codes):
            used = self._uses
            answers = [judge(value) if used[code] or not code else 0 for code, value in enumerate(self.values)]
            if len(set(answers)) == 1:
                return np.full(len(codes), answers[0], dtype)
            return np.array(answers, dtype).take(codes)
        distinct, places = np.unique(codes, return_inverse=True)
        return np.array([judge(self.values[code]) for code in distinct.tolist()], dtype).take(places)
