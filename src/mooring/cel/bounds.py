"""Least and most: what costs and sizes are before the values are known.

Numbers are unsigned and of 64 bits; what would be more is the most there is.
"""

from __future__ import annotations

import math
from typing import NamedTuple

MOST = 2**64 - 1


class Bounds(NamedTuple):
    """An interval of costs or of sizes."""

    least: int
    most: int

    def plus(self, other: Bounds) -> Bounds:
        return Bounds(min(self.least + other.least, MOST), min(self.most + other.most, MOST))

    def times(self, other: Bounds) -> Bounds:
        return Bounds(min(self.least * other.least, MOST), min(self.most * other.most, MOST))

    def scaled(self, factor: float) -> Bounds:
        """Times a factor, rounded up."""
        return Bounds(_scaled(self.least, factor), _scaled(self.most, factor))

    def joined(self, other: Bounds) -> Bounds:
        return Bounds(min(self.least, other.least), max(self.most, other.most))


def exactly(value: int) -> Bounds:
    return Bounds(value, value)


UNKNOWN = Bounds(0, MOST)
ZERO, ONE = exactly(0), exactly(1)


def _scaled(value: int, factor: float) -> int:
    if value and factor and float(value) > MOST / factor:
        return MOST
    product = math.ceil(float(value) * factor)
    return MOST if product >= 2**64 else product
