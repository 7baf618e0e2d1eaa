"""Which of the nodes where preemption would help is the best: where it hurts least."""

from __future__ import annotations

import math
from collections.abc import Sequence

from mooring.framework import Candidate

_OFFSET = 2**31
"""Makes every priority positive, so that one more victim always adds to the sum."""


def harm(candidate: Candidate) -> tuple[int, int, int, int, float]:
    """Compared in turn: protected victims, the highest priority, the sum of priorities, how many there are, and how
    early the first of the most important started: the latest is best."""
    victims = candidate.victims
    highest = victims[0].priority
    earliest = min(
        victim.started if victim.started is not None else math.inf for victim in victims if victim.priority == highest
    )
    return (
        candidate.budget_violations,
        highest,
        sum(victim.priority + _OFFSET for victim in victims),
        len(victims),
        -earliest,
    )


def best(candidates: Sequence[Candidate], seed: int) -> Candidate:
    """The least harm; among equals the seed says which."""
    harms = [harm(candidate) for candidate in candidates]
    least = min(harms)
    ties = [candidate for candidate, each in zip(candidates, harms, strict=True) if each == least]
    return ties[seed % len(ties)]
