"""Random numbers that follow from a seed and a name alone, on every platform and with every version of Python.

Only `random()` of Python's generator is used, whose sequence is guaranteed; the distributions are computed here. What
is drawn for one purpose has a stream of its own, so that a change of one thing leaves the others as they were.
"""

from __future__ import annotations

import math
import random
from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import TypeVar

Item = TypeVar("Item")


class SeededRandom:
    """A stream of random numbers."""

    def __init__(self, seed: int, purpose: str) -> None:
        self.uniform = random.Random(f"{seed}/{purpose}").random
        """At least 0, less than 1."""

    def exponential(self, mean: float) -> float:
        return -mean * math.log(1.0 - self.uniform())

    def normal(self) -> float:
        """Mean 0, deviation 1 (Box and Muller)."""
        radius = math.sqrt(-2.0 * math.log(1.0 - self.uniform()))
        return radius * math.cos(2.0 * math.pi * self.uniform())

    def whole(self, least: int, most: int) -> int:
        """Both may be drawn."""
        return least + int(self.uniform() * (most - least + 1))

    def one_of(self, items: Sequence[Item]) -> Item:
        return items[self.whole(0, len(items) - 1)]

    def shuffled(self, items: Sequence[Item]) -> list[Item]:
        mixed = list(items)
        for index in range(len(mixed) - 1, 0, -1):
            other = self.whole(0, index)
            mixed[index], mixed[other] = mixed[other], mixed[index]
        return mixed


class Weighted:
    """Draws the index of a weight, in proportion to it."""

    def __init__(self, weights: Sequence[float]) -> None:
        self._bounds = list(accumulate(weights))

    def draw(self, stream: SeededRandom) -> int:
        return min(bisect_right(self._bounds, stream.uniform() * self._bounds[-1]), len(self._bounds) - 1)
