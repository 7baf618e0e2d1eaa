"""Ways to bring raw scores to 0…100, declared as a plugin's `normalizer`.

A normalizer reads the lowest and highest raw score over the feasible nodes (`measure`) and scales each score
by that alone (`scale`), so that an unchanged measure need not touch unchanged scores.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from mooring.framework.verdicts import IntArray

HIGHEST_SCORE = 100


class Normalizer(Protocol):
    """How raw scores become 0…100."""

    def measure(self, lowest: int, highest: int) -> Hashable:
        """What the scaling depends on, from the extremes over the feasible nodes."""
        ...

    def scale(self, scores: IntArray, measure: Any) -> IntArray:
        """Each score scaled by the measure, independently of the others."""
        ...


@dataclass(frozen=True)
class ToMax:
    """The highest becomes 100, the others in proportion (whole numbers, rounded down); `reverse` turns it round.

    kube-scheduler's default normalisation: all zero stays zero, or becomes 100 for every node when reversed.
    """

    reverse: bool = False

    def measure(self, lowest: int, highest: int) -> int:
        return highest

    def scale(self, scores: IntArray, measure: int) -> IntArray:
        if measure == 0:
            return np.full_like(scores, HIGHEST_SCORE) if self.reverse else scores
        scaled = scores * HIGHEST_SCORE // measure
        return HIGHEST_SCORE - scaled if self.reverse else scaled
