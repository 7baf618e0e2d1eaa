"""How preemption candidates are ordered: which pods of a node are more important, and which node loses least.

Every plugin that preempts, extenders that strike candidates, and the shadow's comparison use this order.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mooring.framework.verdicts import BoolArray, Candidate, IntArray
from mooring.framework.what_if import LowerPriorityPods
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


def disruption(candidate: Candidate) -> tuple[int, int, int, int, float]:
    """Compared in order: violated budgets, highest priority of a victim, sum of priorities, number of victims, and
    the earliest start among the victims of highest priority: the latest is best."""
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


def least_disruptive(candidates: Sequence[Candidate], seed: int) -> Candidate:
    """The candidate with the least disruption; the seed breaks ties."""
    columns = [np.array(column) for column in zip(*map(disruption, candidates), strict=True)]
    return candidates[least_disruption(columns, seed)]


def least_disruption(columns: Sequence[NDArray[Any]], seed: int) -> int:
    """The position of the least, by what `disruption` compares as columns; the seed breaks ties."""
    ties = np.arange(len(columns[0]))
    for column in columns:
        left = column.take(ties)
        ties = ties[left == left.min()]
    return int(ties[seed % len(ties)])


def disruption_columns(lower: LowerPriorityPods, is_victim: BoolArray, violations: IntArray) -> list[NDArray[Any]]:
    """`disruption`, for every node; of no meaning where a node has no victim."""
    first, priority = lower.first, lower.priority
    highest = np.maximum.reduceat(np.where(is_victim, priority, -_OFFSET), first)
    is_highest = is_victim & (priority == highest.take(lower.node))
    return [
        violations,
        highest,
        np.add.reduceat(np.where(is_victim, priority + _OFFSET, 0), first),
        np.add.reduceat(is_victim, first, dtype=np.int64),
        -np.minimum.reduceat(np.where(is_highest, lower.started, math.inf), first),
    ]
