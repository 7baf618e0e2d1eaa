"""Columns of the node table: one cell per row, read as a whole by NumPy and one by one as plain numbers.

A column grows by doubling. Its last cell belongs to no node and stays zero, so that the view of a node that has been
removed can point there (row -1) and reads nothing instead of its successor's numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from mooring.framework import BoolArray, IntArray
from mooring.framework.nodes import Capacity
from mooring.framework.verdicts import constant
from mooring.objects.selectors import integer

LARGEST = 2**63 - 1
FEW_CODES, MOST_MASKS = 256, 8

V = TypeVar("V")


class Column:
    """Numbers of one type, one per row; or several, of a shape."""

    __slots__ = ("cells", "data", "shown")

    def __init__(self, capacity: int, dtype: type, shape: tuple[int, ...] = ()) -> None:
        self.data: NDArray[Any] = np.zeros((capacity, *shape), dtype)
        self.cells = self.data.data
        self.shown: NDArray[Any] = self.data[:0]
        """What `first` returned last."""

    def grow(self, capacity: int) -> None:
        larger = np.zeros((capacity, *self.data.shape[1:]), self.data.dtype)
        larger[: len(self.data)] = self.data
        self.data = larger
        self.cells = larger.data
        self.shown = larger[:0]

    def first(self, count: int) -> NDArray[Any]:
        """The first cells, without copying and closed to writing: plugins are handed this."""
        if len(self.shown) != count:
            self.shown = self.data[:count]
            self.shown.flags.writeable = False
        return self.shown


class AmountColumn(Column):
    """Sums of amounts. A sum beyond 64 bits is shown as the largest number and kept exactly, so that it can shrink.

    They are also in a list, which a rule that runs node by node reads in a third of the time. Once they were read as
    floating point they are kept as that too: NumPy takes three times as long over whole numbers and fractions in one
    operation.
    """

    __slots__ = ("_beyond", "_floats", "_is_bound_loose", "amounts", "bound")

    def __init__(self, capacity: int) -> None:
        super().__init__(capacity, np.int64)
        self.amounts = [0] * capacity
        self._beyond: dict[int, int] = {}
        self._floats: Column | None = None
        self.bound = 0
        """No cell has more; mostly one has as much."""
        self._is_bound_loose = False

    def stays_within(self, amount: float) -> bool:
        """Whether no cell has more than this."""
        if self._is_bound_loose:
            self.bound = int(self.data.max())
            self._is_bound_loose = False
        return self.bound <= amount

    def grow(self, capacity: int) -> None:
        super().grow(capacity)
        self.amounts += [0] * (capacity - len(self.amounts))
        if self._floats is not None:
            self._floats.grow(capacity)

    def floats(self) -> Column:
        if self._floats is None:
            self._floats = Column(len(self.data), np.float64)
            self._floats.data[:] = self.data
        return self._floats

    def add(self, row: int, amount: int) -> int:
        """Returns by how much the sum that is shown grew."""
        if self._beyond and row in self._beyond:
            return self._set_beyond(row, self._beyond.pop(row) + amount)
        amounts = self.amounts
        before = amounts[row]
        total = before + amount
        if not -LARGEST <= total <= LARGEST:
            return self._set_beyond(row, total)
        if total > self.bound:
            self.bound = total
        elif before == self.bound:
            self._is_bound_loose = True
        amounts[row] = self.cells[row] = total
        if self._floats is not None:
            self._floats.cells[row] = total
        return amount

    def put(self, row: int, amount: int) -> int:
        """Returns by how much the amount that is shown grew."""
        self._beyond.pop(row, None)
        return self._set_beyond(row, amount)

    def _set_beyond(self, row: int, total: int) -> int:
        before, shown = self.amounts[row], max(-LARGEST, min(LARGEST, total))
        if shown != total:
            self._beyond[row] = total
        if shown > self.bound:
            self.bound = shown
        elif before == self.bound:
            self._is_bound_loose = True
        self.amounts[row] = self.cells[row] = shown
        if self._floats is not None:
            self._floats.cells[row] = shown
        return shown - before


class CapacityColumn(AmountColumn):
    """Amounts that seldom change: what arithmetic needs of them is kept until they do."""

    __slots__ = ("_ready",)

    def __init__(self, capacity: int) -> None:
        super().__init__(capacity)
        self._ready: Capacity | None = None

    def grow(self, capacity: int) -> None:
        super().grow(capacity)
        self._ready = None

    def put(self, row: int, amount: int) -> int:
        self._ready = None
        return super().put(row, amount)

    def ready(self, count: int) -> Capacity:
        """The first cells, ready for arithmetic."""
        if self._ready is None or len(self._ready.floats) != count:
            self._ready = Capacity(self.data[:count])
        return self._ready


class InternedColumn(Generic[V]):
    """Values as small numbers (codes), equal values sharing one. Code 0 is the absent value.

    A code whose last row has left is used again, so a column does not grow with nodes that come and go.
    """

    __slots__ = ("_code_of", "_empty", "_integers", "_masks", "_spare", "_uses", "codes", "pins", "values")

    def __init__(self, capacity: int, absent: V, empty: Column | None = None) -> None:
        """`empty`: a column of zeros to share as long as no row has a value. Its owner lets it grow."""
        self._empty = empty
        # NumPy indexes by this type without converting.
        self.codes = empty if empty is not None else Column(capacity, np.intp)
        self.values: list[V] = [absent]
        self._code_of: dict[V, int] = {absent: 0}
        self._uses: list[int] = [0]
        self._spare: list[int] = []
        self._integers: tuple[IntArray, BoolArray] | None = None
        self._masks: dict[bytes, tuple[object, BoolArray]] = {}
        """What `of_codes` returned, and for which nodes; until a row changes."""
        self.pins = 0
        """How many tallies count by these codes; a pinned column must not be dropped."""

    @property
    def size(self) -> int:
        """One more than the largest code."""
        return len(self.values)

    @property
    def is_empty(self) -> bool:
        """No row has, or had, a value: the codes are shared with other columns."""
        return self.codes is self._empty

    def put(self, row: int, value: V) -> None:
        old = self.codes.cells[row]
        if self.values[old] == value:
            return
        if self.is_empty:
            self.codes = Column(len(self.codes.data), np.intp)
        self._masks.clear()
        self.codes.cells[row] = self._taken(value)
        self._release(old)

    def fill(self, values: Iterable[tuple[int, V]]) -> None:
        """`put` for many rows of a column that has no values yet."""
        codes, code_of, uses = Column(len(self.codes.data), np.intp), self._code_of, self._uses
        for row, value in values:
            code = code_of.get(value)
            if code is None:
                code = code_of[value] = len(self.values)
                self.values.append(value)
                uses.append(0)
            if code:
                uses[code] += 1
                codes.cells[row] = code
        self.codes = codes
        self._masks.clear()

    def _taken(self, value: V) -> int:
        code = self._code_of.get(value)
        if code is None:
            self._integers = None
            if self._spare:
                code = self._spare.pop()
                self.values[code] = value
            else:
                code = len(self.values)
                self.values.append(value)
                self._uses.append(0)
            self._code_of[value] = code
        if code:
            self._uses[code] += 1
        return code

    def _release(self, code: int) -> None:
        if not code:
            return
        self._uses[code] -= 1
        if not self._uses[code]:
            del self._code_of[self.values[code]]
            self.values[code] = self.values[0]
            self._spare.append(code)

    def of_codes(self, values: NDArray[Any], nodes: object, codes: NDArray[np.intp]) -> NDArray[Any]:
        """Per node what its code has. `codes` are those of these nodes.

        Masks by few codes are kept: which zones a pod may go to seldom changes from one pod to the next.
        """
        if len(values) > FEW_CODES or values.dtype != np.bool_:
            return values.take(codes)
        key = values.tobytes()
        known = self._masks.get(key)
        if known is not None and known[0] is nodes:
            return known[1]
        if len(self._masks) >= MOST_MASKS:
            self._masks.clear()
        mask: BoolArray = values.take(codes)
        mask.flags.writeable = False
        self._masks[key] = nodes, mask
        return mask

    def where(self, codes: NDArray[np.intp], test: Callable[[V], bool]) -> BoolArray:
        """Where the value passes; the test runs once per distinct value."""
        return self._computed(codes, lambda value: bool(test(value)), np.bool_)

    def where_any(self, codes: NDArray[np.intp], values: Iterable[V]) -> BoolArray:
        """Where the value is one of these; runs no test, however many distinct values there are."""
        wanted = [code for value in set(values) if (code := self._code_of.get(value)) is not None]
        if not wanted:
            return np.zeros(len(codes), bool)
        is_wanted = np.zeros(len(self.values), bool)
        is_wanted[wanted] = True
        return is_wanted.take(codes)

    def integers(self: InternedColumn[str | None]) -> tuple[IntArray, BoolArray]:
        """Per code its value as a whole number, and whether it is one. Kept until a value is new."""
        if self._integers is None:
            read = [integer(value) for value in self.values]
            numbers = np.array([number or 0 for number in read], np.int64)
            self._integers = numbers, np.array([number is not None for number in read], np.bool_)
        return self._integers

    def numbers(self, codes: NDArray[np.intp], number: Callable[[V], int]) -> IntArray:
        """A number per row from its value; computed once per distinct value."""
        return self._computed(codes, number, np.int64)

    def _computed(self, codes: NDArray[np.intp], compute: Callable[[V], Any], dtype: type) -> NDArray[Any]:
        if len(self.values) <= len(codes):
            used = self._uses
            results = [compute(value) if used[code] or not code else 0 for code, value in enumerate(self.values)]
            if len(set(results)) == 1:
                # Closed to writing, as every column that plugins are handed.
                return constant(np.array(results[:1], dtype), len(codes))
            return np.array(results, dtype).take(codes)
        distinct, places = np.unique(codes, return_inverse=True)
        return np.array([compute(self.values[code]) for code in distinct.tolist()], dtype).take(places)
