"""NodeResourcesBalancedAllocation: favour nodes whose resources the pod brings closer to being used alike.

How balanced a node is, is 100 less the standard deviation of the used shares of its resources in percent. The score
is how much the pod improves that: 75 changes nothing, more is better than before. What counts is what pods request,
without the stand-ins for missing requests that other scores have. Pods that request nothing are not scored.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from math import sqrt
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from mooring.base.errors import StateMissing
from mooring.framework import (
    Args,
    BoolArray,
    ClaimsInFlight,
    Cycle,
    FeatureGates,
    Meta,
    NodeRows,
    NodeView,
    Objects,
    Plugin,
    Pod,
    Reads,
    Skip,
)
from mooring.framework.nodes import Capacity
from mooring.framework.normalizers import HIGHEST_SCORE
from mooring.objects.requests import Amounts, requests_on_node
from mooring.objects.resource import DeviceClass, ResourceClaim, ResourceSlice
from mooring.plugins.default.dynamic_resources.extended_resources import ExtendedResourceUsage
from mooring.plugins.default.resource_scores import ResourceSpec

HALF = HIGHEST_SCORE // 2
ON_EVERY_NODE = ("cpu", "memory", "ephemeral-storage")
"""These count for every pod; any other resource only for pods that request it."""

FloatArray = NDArray[np.float64]


class NodeResourcesBalancedAllocationArgs(Args):
    """Arguments of NodeResourcesBalancedAllocation."""

    resources: Annotated[
        list[ResourceSpec], Meta(description="What to balance, each with weight 1; none given: cpu and memory.")
    ] = []

    def mistakes(self) -> Iterable[tuple[str, str]]:
        seen: set[str] = set()
        for at, resource in enumerate(self.resources):
            if resource.name in seen:
                yield f"resources[{at}].name", f'Duplicate value: "{resource.name}"'
            seen.add(resource.name)
            if resource.weight not in (0, 1):  # 0 is none given
                yield f"resources[{at}].weight", f"must be 1, got {resource.weight}"


class NodeResourcesBalancedAllocation(Plugin):
    """Favour nodes whose resources the pod brings closer to being used alike."""

    pod_fields = ("spec.containers", "spec.initContainers")
    reads = Reads.REQUESTED
    per_template = True
    score_needs_pre_score = False

    def __init__(
        self,
        args: NodeResourcesBalancedAllocationArgs,
        classes: Objects[DeviceClass],
        claims: Objects[ResourceClaim],
        slices: Objects[ResourceSlice],
        in_flight: ClaimsInFlight,
        gates: FeatureGates,
    ) -> None:
        self._resources = [spec.name for spec in args.resources] or ["cpu", "memory"]
        self._balances_devices = any("/" in resource for resource in self._resources)
        self._devices = ExtendedResourceUsage(classes, claims, slices, in_flight, gates)

    def sign(self, pod: Pod) -> Hashable | None:
        """What the score reads of the pod. Where devices stand in for a resource, it reads more than pod and node."""
        if self._balances_devices:
            return None
        return tuple(requests_on_node(pod).amounts.items())

    def pre_score(self, pod: Pod, feasible: NodeRows, cycle: Cycle) -> Amounts | Skip:
        """What the pod requests of each resource that counts."""
        # As a pod on a node counts: also by what containers report, though the pod is on none yet. NodeResourcesFit
        # counts it by its spec alone.
        requested = requests_on_node(pod).amounts
        if not any(requested.get(resource) for resource in self._resources):
            return Skip()
        return {
            resource: requested.get(resource, 0)
            for resource in self._resources
            if requested.get(resource) or resource in ON_EVERY_NODE
        }

    def score(self, pod: Pod, node: NodeView, cycle: Cycle) -> int:
        requested = self._requested(pod, cycle)
        if isinstance(requested, Skip):
            return 0
        before, after = [], []
        for resource, amount in requested.items():
            used, capacity = node.requested(resource), node.allocatable(resource)
            if not capacity:
                used, capacity = self._devices.usage(node, resource, used, capacity)
            if capacity:
                share, with_pod = used / capacity, (used + amount) / capacity
                before.append(share if share < 1.0 else 1.0)
                after.append(with_pod if with_pod < 1.0 else 1.0)
        return HALF + (HALF + _balance(after) - _balance(before)) // 2

    def score_nodes(self, pod: Pod, nodes: NodeRows, cycle: Cycle) -> NDArray[Any]:
        """`score`, for many nodes at once."""
        requested = self._requested(pod, cycle)
        if isinstance(requested, Skip) or not len(nodes):
            return np.zeros(len(nodes), np.int32)
        scores = self._balances(nodes, requested)
        scores += self._without_pod(nodes, tuple(requested))
        scores >>= 1
        return scores

    def _without_pod(self, nodes: NodeRows, resources: tuple[str, ...]) -> NDArray[np.int32]:
        """What nodes have of twice the score without the pod: kept, except where devices stand in for a resource."""
        if self._balances_devices and any("/" in resource for resource in resources):
            return self._of_balances_before(nodes, resources)
        return nodes.cached(
            (NodeResourcesBalancedAllocation, resources),
            lambda others: self._of_balances_before(others, resources),
            lambda node: 3 * HALF - _balance_before(node, resources),
        )

    def _of_balances_before(self, nodes: NodeRows, resources: tuple[str, ...]) -> NDArray[np.int32]:
        before = self._balances(nodes, dict.fromkeys(resources, 0))
        return np.subtract(3 * HALF, before, out=before)

    def _balances(self, nodes: NodeRows, requested: Amounts) -> NDArray[np.int32]:
        """How balanced nodes are with so much more."""
        shares: list[FloatArray] = []
        capacities: list[Capacity] = []
        has_all = True
        for resource, amount in requested.items():
            used, capacity = self._usage_of_nodes(nodes, resource)
            can_exceed = "/" in resource or not nodes.is_room_everywhere(resource, amount)
            shares.append(_shares(used, capacity, amount, can_exceed=can_exceed))
            capacities.append(capacity)
            has_all = has_all and capacity.lowest > 0
        if has_all and len(shares) == 2:
            return _balances_of_two(*shares)
        return _balances(shares, [capacity.floats > 0 for capacity in capacities])

    def _usage_of_nodes(self, nodes: NodeRows, resource: str) -> tuple[FloatArray, Capacity]:
        """How much of the resource is requested, of how much."""
        if "/" not in resource:
            return nodes.used(resource), nodes.capacity(resource)
        requested, capacity = nodes.requested(resource), nodes.allocatable(resource)
        requested, capacity = self._devices.usage_of_nodes(nodes, resource, requested, capacity)
        return requested.astype(np.float64), Capacity(capacity)

    def _requested(self, pod: Pod, cycle: Cycle) -> Amounts | Skip:
        try:
            requested: Amounts = cycle.score_state(self)
        except StateMissing:  # pre_score is switched off in this profile
            return self.pre_score(pod, cycle.nodes, cycle)
        return requested


# In the following, numbers are added and divided in kube-scheduler's order: the last bit decides a score.


def _balance_before(node: NodeView, resources: Iterable[str]) -> int:
    """How balanced a node is without the pod."""
    shares: list[float] = []
    for resource in resources:
        if capacity := node.allocatable(resource):
            share = node.requested(resource) / capacity
            shares.append(share if share < 1.0 else 1.0)
    return _balance(shares)


def _balance(shares: Sequence[float]) -> int:
    """0…100 for one node's used shares."""
    deviation = 0.0
    if len(shares) == 2:
        deviation = abs((shares[0] - shares[1]) / 2)
    elif len(shares) > 2:
        mean = _sum(shares) / len(shares)
        deviation = sqrt(_sum([(share - mean) * (share - mean) for share in shares]) / len(shares))
    return int((1 - deviation) * HIGHEST_SCORE)


def _sum(numbers: Iterable[float]) -> float:
    """One after the other, as Go adds; `sum` of newer Pythons makes up for lost bits."""
    total = 0.0
    for number in numbers:
        total += number
    return total


def _shares(requested: FloatArray, capacity: Capacity, amount: int, *, can_exceed: bool) -> FloatArray:
    """The used share of one resource on each node, with so much more; that may exceed what there is, or not."""
    shares: FloatArray = requested + float(amount)
    shares /= capacity.floats if capacity.lowest > 0 else np.maximum(capacity.floats, 1.0)
    if can_exceed and shares.max() > 1.0:
        np.minimum(shares, 1.0, out=shares)
    return shares


def _balances_of_two(one: FloatArray, other: FloatArray) -> NDArray[np.int32]:
    """`_balance` of two resources that no node lacks: nearly always so. Writes into its arguments."""
    one -= other
    np.abs(one, out=one)
    # (1 - deviation) * 100 with numbers twice as large: halving is exact, so that the same bits are rounded off.
    np.subtract(2.0, one, out=one)
    one *= HALF
    return one.astype(np.int32)  # faster than to 64 bits


def _balances(shares: Sequence[FloatArray], has: Sequence[BoolArray]) -> NDArray[np.int32]:
    """`_balance`, for many nodes, each with those of the resources that it has."""
    count = sum(is_there.astype(np.int64) for is_there in has)
    at_least_one = np.maximum(count, 1)
    used = [np.where(is_there, share, 0.0) for share, is_there in zip(shares, has, strict=True)]
    total = np.zeros_like(shares[0])
    for share in used:
        total += share
    mean = total / at_least_one
    squares = np.zeros_like(mean)
    # Of two resources the difference between them is all there is; the signs cancel it out of the sum.
    difference = np.zeros_like(mean)
    for share, is_there in zip(used, has, strict=True):
        squares += np.where(is_there, (share - mean) * (share - mean), 0.0)
        difference = np.where(is_there, share - difference, difference)
    deviation = np.where(count == 2, np.abs(difference / 2), np.sqrt(squares / at_least_one))
    return ((1.0 - np.where(count >= 2, deviation, 0.0)) * HIGHEST_SCORE).astype(np.int32)
