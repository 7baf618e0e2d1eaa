"""Whole numbers as Go computes with them: 64 bits that wrap around, and division towards zero.

Raw scores of some plugins are amounts of bytes times weights. Where they leave 64 bits, the order of nodes follows
from how they wrap. NumPy's whole numbers wrap by themselves.
"""

from __future__ import annotations

import numpy as np

from mooring.framework import IntArray
from mooring.framework.normalizers import HIGHEST_SCORE

_RANGE, _HALF = 2**64, 2**63


def wrapped(value: int) -> int:
    """The value as an int64 holds it."""
    return (value + _HALF) % _RANGE - _HALF


def quotient(dividend: int, divisor: int) -> int:
    """Divided towards zero."""
    magnitude = abs(dividend) // abs(divisor)
    return magnitude if (dividend < 0) == (divisor < 0) else -magnitude


def quotients(dividends: IntArray, divisor: int) -> IntArray:
    """`quotient`, of many."""
    floors, rest = np.divmod(dividends, np.int64(divisor))
    towards_zero: IntArray = floors + ((rest != 0) & ((dividends < 0) != (divisor < 0)))
    return towards_zero


class MinMax:
    """The lowest becomes 0, the highest 100, the others in proportion; equal ones become 0."""

    def measure(self, lowest: int, highest: int) -> tuple[int, int]:
        return lowest, highest

    def scale(self, scores: IntArray, measure: tuple[int, int]) -> IntArray:
        lowest, highest = measure
        span = wrapped(highest - lowest)
        if span == 0:
            return np.zeros_like(scores)
        return quotients((scores - np.int64(lowest)) * HIGHEST_SCORE, span)


class CheapestBest:
    """Raw scores are costs: the lowest becomes 100, the highest 0, the others in proportion; equal ones become 100.

    Where nothing costs anything, every node has 0.
    """

    def measure(self, lowest: int, highest: int) -> tuple[int, int]:
        return lowest, highest

    def scale(self, scores: IntArray, measure: tuple[int, int]) -> IntArray:
        lowest, highest = measure
        if lowest == highest:
            return np.full_like(scores, HIGHEST_SCORE if highest else 0)
        span = float(wrapped(highest - lowest))
        share = HIGHEST_SCORE * (scores - np.int64(lowest)).astype(np.float64) / span
        return HIGHEST_SCORE - share.astype(np.int64)


class FewestBest:
    """100 less the share of the highest raw score: kube-scheduler's default normalisation, reversed."""

    def measure(self, lowest: int, highest: int) -> int:
        return max(highest, 0)

    def scale(self, scores: IntArray, measure: int) -> IntArray:
        if measure == 0:
            return np.full_like(scores, HIGHEST_SCORE)
        return HIGHEST_SCORE - quotients(scores * HIGHEST_SCORE, measure)
