"""How well the NUMA nodes of a node would serve the pod: four strategies.

LeastAllocated, MostAllocated and BalancedAllocation score each NUMA node by the shares that would be used, and take
the worst that would do at all. LeastNUMANodes favours nodes where the pod spreads over few NUMA nodes close together.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from itertools import combinations
from statistics import fmean

from mooring.plugins.community.go_arithmetic import quotient
from mooring.plugins.community.node_resource_topology.pod_needs import Amounts, PodNeeds
from mooring.plugins.community.node_resource_topology.topologies import POD, KubeletTopology, NumaNode

HIGHEST = 100
UNKNOWN_DISTANCE = 255
GO_NAN = -(2**63)
"""What Go makes of "not a number" as a whole number."""

NumaScore = Callable[[Amounts, NumaNode], int]


def least_allocated(weights: Mapping[str, int]) -> NumaScore:
    return lambda requests, numa: _weighted(requests, numa, weights, is_free_better=True)


def most_allocated(weights: Mapping[str, int]) -> NumaScore:
    return lambda requests, numa: _weighted(requests, numa, weights, is_free_better=False)


def _weighted(requests: Amounts, numa: NumaNode, weights: Mapping[str, int], *, is_free_better: bool) -> int:
    total = divisor = 0
    for resource, amount in requests.items():
        wanted, have = math.ceil(amount), math.ceil(numa.available.get(resource, 0))
        weight = max(weights.get(resource, 1), 1)
        part = have - wanted if is_free_better else wanted
        total += weight * (part * HIGHEST // have if have and wanted <= have else 0)
        divisor += weight
    return quotient(total, divisor) if divisor else 0


def balanced_allocation(*, one_is_nan: bool) -> NumaScore:
    """`one_is_nan`: a single resource has no variance, as in scheduler-plugins; otherwise it is balanced."""

    def score(requests: Amounts, numa: NumaNode) -> int:
        shares = []
        for resource, amount in requests.items():
            have = math.ceil(numa.available.get(resource, 0))
            share = math.ceil(amount) / have if have else 1.0
            if share > 1:
                return 0
            shares.append(share)
        if len(shares) < 2:
            return GO_NAN if one_is_nan else HIGHEST
        mean = sum(shares) / len(shares)
        variance = sum((share - mean) ** 2 for share in shares) / (len(shares) - 1)
        return int((1 - variance) * HIGHEST)

    return score


def allocation_score(
    score: NumaScore, numa_nodes: tuple[NumaNode, ...], kubelet: KubeletTopology, needs: PodNeeds
) -> int:
    """By one of the strategies above."""
    if kubelet.scope == POD:
        return _worst(score, needs.whole, numa_nodes)
    return int(fmean(_worst(score, each.requests, numa_nodes) for each in needs.containers))


def _worst(score: NumaScore, requests: Amounts, numa_nodes: tuple[NumaNode, ...]) -> int:
    """The lowest score that is not 0: a NUMA node with 0 would not be used."""
    worst = 0
    for numa in numa_nodes:
        found = score(requests, numa)
        if worst == 0 or (found != 0 and found < worst):
            worst = found
    return worst


def least_numa_nodes_score(numa_nodes: tuple[NumaNode, ...], kubelet: KubeletTopology, needs: PodNeeds) -> int:
    left = [numa._replace(available=dict(numa.available)) for numa in numa_nodes]
    parts = [needs.whole] if kubelet.scope == POD else [each.requests for each in needs.containers]
    most, are_nearest = 0, True
    for requests in parts:
        if not any(resource in numa.available for resource in requests for numa in left):
            continue  # nothing that is bound to NUMA nodes
        found = _fewest(left, needs, requests)
        if found is None:
            return 0
        chosen, is_nearest = found
        most, are_nearest = max(most, len(chosen)), are_nearest and is_nearest
        _take(chosen, requests)
    if not most:
        return HIGHEST
    step = HIGHEST // kubelet.most_numa_nodes
    return HIGHEST - most * step + (step // 2 if are_nearest else 0)


def _fewest(numa_nodes: list[NumaNode], needs: PodNeeds, requests: Amounts) -> tuple[tuple[NumaNode, ...], bool] | None:
    """The fewest NUMA nodes that together have all this, the nearest of those; and whether none are nearer."""
    for count in range(1, len(numa_nodes) + 1):
        groups = list(combinations(numa_nodes, count))
        nearest = min(UNKNOWN_DISTANCE * count * count, min(map(_distance, groups)))
        best: tuple[NumaNode, ...] | None = None
        best_distance = (UNKNOWN_DISTANCE + 1) * count * count
        for group in groups:
            if not _has_all(group, needs, requests):
                continue
            distance = _distance(group)
            if distance == nearest:
                return group, True
            if distance < best_distance:
                best, best_distance = group, distance
        if best is not None:
            return best, False
    return None


def _distance(group: tuple[NumaNode, ...]) -> int:
    """The sum over all pairs, each with itself included."""
    return sum(one.costs.get(other.id, UNKNOWN_DISTANCE) for one in group for other in group)


def _has_all(group: tuple[NumaNode, ...], needs: PodNeeds, requests: Amounts) -> bool:
    for resource, wanted in requests.items():
        if any(resource not in numa.available for numa in group):
            return False
        together = sum((numa.available[resource] for numa in group), Fraction(0))
        if wanted and not needs.is_suitable(resource, wanted, together):
            return False
    return True


def _take(chosen: tuple[NumaNode, ...], requests: Amounts) -> None:
    """Take what is requested from the chosen ones, in the order of their ids."""
    for resource, wanted in requests.items():
        for numa in sorted(chosen, key=lambda each: each.id):
            available: dict[str, Fraction] = numa.available  # type: ignore[assignment]  # a copy of the score's own
            if resource in available:
                taken = min(wanted, available[resource])
                available[resource] -= taken
                wanted -= taken
