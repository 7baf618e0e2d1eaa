"""How preemption candidates are ordered: which pods of a node are more important, and which node loses least.

Every plugin that preempts, extenders that strike candidates, and the shadow's comparison use this order.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mooring.framework.verdicts import Candidate, FloatArray, IntArray
from mooring.objects.placed import PlacedPod

MESSAGE_PREFIX = "preemption: "
"""kube-scheduler's prefix of every message about preemption."""

_OFFSET = 2**31
"""Makes every priority positive, so that one more victim always adds to the sum."""


def importance(pod: PlacedPod) -> tuple[int, float]:
    """Sorts the most important first: higher priority, then started earlier. One not started yet counts as now."""
    return -pod.priority, pod.started if pod.started is not None else math.inf


def by_importance(pods: Iterable[PlacedPod]) -> list[PlacedPod]:
    """The most important first. Of equals the first one, but of pods that have not started the last one.

    kube-scheduler takes the present for a missing start time, again in each comparison: the pod that it reads first has
    started earlier. Its sort reads the later pod first.
    """
    pods = list(pods)
    if len(pods) > 1:
        not_started = [pod for pod in pods if pod.started is None]
        if not_started:
            pods = [*(pod for pod in pods if pod.started is not None), *reversed(not_started)]
        pods.sort(key=importance)
    return pods


def disruption(candidates: Sequence[Candidate]) -> list[NDArray[Any]]:
    """The disruption that each candidate causes, as the columns of `disruption_by`."""
    victims = [victim for candidate in candidates for victim in candidate.victims]
    counts = np.array([len(candidate.victims) for candidate in candidates])
    return disruption_by(
        np.array([candidate.budget_violations for candidate in candidates]),
        np.cumsum(counts) - counts,
        np.array([victim.priority for victim in victims]),
        np.array([math.inf if victim.started is None else victim.started for victim in victims]),
    )


def disruption_by(violations: IntArray, first: IntArray, priority: IntArray, started: FloatArray) -> list[NDArray[Any]]:
    """Compared in order: violated budgets, highest priority of a victim, sum of priorities, number of victims, and
    the earliest start among the victims of highest priority: the latest is best.

    `first`: where the victims of each candidate begin, the most important first, whose priority and start these are.
    """
    counts, highest = np.diff(first, append=len(priority)), priority.take(first)
    is_highest = priority == np.repeat(highest, counts)
    earliest = np.minimum.reduceat(np.where(is_highest, started, math.inf), first)
    return [violations, highest, np.add.reduceat(priority + _OFFSET, first), counts, -earliest]


def least_disruptive(candidates: Sequence[Candidate], seed: int) -> Candidate:
    """The candidate with the least disruption; the seed breaks ties."""
    return candidates[least_disruption(disruption(candidates), seed)]


def least_disruption(columns: Sequence[NDArray[Any]], seed: int) -> int:
    """The position of the least, by the columns of `disruption`; the seed breaks ties."""
    ties = np.arange(len(columns[0]))
    for column in columns:
        left = column.take(ties)
        ties = ties[left == left.min()]
    return int(ties[seed % len(ties)])
