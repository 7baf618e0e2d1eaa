"""How preemption candidates are ordered: which pods of a node are more important, and which node loses least.

Every plugin that preempts, extenders that strike candidates, and the shadow's comparison use this order.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from mooring.framework.verdicts import Candidate
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

    kube-scheduler takes the present for a missing start time, anew in each comparison: the pod that it reads first has
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
    disruptions = [disruption(candidate) for candidate in candidates]
    least = min(disruptions)
    ties = [candidate for candidate, each in zip(candidates, disruptions, strict=True) if each == least]
    return ties[seed % len(ties)]
