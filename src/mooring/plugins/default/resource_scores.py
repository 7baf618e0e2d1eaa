"""Scoring strategies over resources: how good a node is, from what would be requested and what there is.

Whole-number arithmetic as kube-scheduler's: more free is better (LeastAllocated), more used is better
(MostAllocated), or a line through given points (RequestedToCapacityRatio); then the mean over the resources by weight.
A resource that the node does not have is left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mooring.framework import ArgsPart, IntArray, Meta
from mooring.framework.nodes import Capacity
from mooring.framework.verdicts import FloatArray

HIGHEST = 100
SHAPE_HIGHEST = 10
"""Scores of a shape are given as 0…10."""


class ResourceSpec(ArgsPart):
    name: str
    weight: Annotated[int, Meta(description="How much it counts against the others; 0 counts as 1.")] = 1


class UtilizationShapePoint(ArgsPart):
    utilization: Annotated[int, Meta(description="Percent of the node that would be requested, 0 to 100.")] = 0
    score: Annotated[int, Meta(description="Score at that utilization, 0 to 10.")] = 0


class RequestedToCapacityRatioParam(ArgsPart):
    shape: list[UtilizationShapePoint] = []


class ScoringStrategy(ArgsPart):
    type: Literal["LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"] = "LeastAllocated"
    resources: Annotated[
        list[ResourceSpec], Meta(description="What to look at; none given: cpu and memory alike.")
    ] = []
    requested_to_capacity_ratio: RequestedToCapacityRatioParam | None = None

    @property
    def weights(self) -> dict[str, int]:
        """Resource → weight."""
        return {spec.name: spec.weight or 1 for spec in self.resources} or {"cpu": 1, "memory": 1}

    def mistakes(self, path: str) -> Iterable[tuple[str, str]]:
        for at, resource in enumerate(self.resources):
            if not 0 <= resource.weight <= 100:
                yield (
                    f"{path}.resources[{at}].weight",
                    f"resource weight of {resource.name} must be between 1 and 100, got {resource.weight}",
                )
        ratio = self.requested_to_capacity_ratio
        where = f"{path}.requestedToCapacityRatio"
        if self.type != "RequestedToCapacityRatio":
            if ratio is not None:
                yield where, f"must not be given with type {self.type}"
            return
        shape = ratio.shape if ratio else []
        if not shape:
            yield f"{where}.shape", "at least one point must be specified"
        yield from shape_mistakes(shape, f"{where}.shape")


def shape_mistakes(shape: Sequence[UtilizationShapePoint], path: str) -> Iterable[tuple[str, str]]:
    for at, point in enumerate(shape):
        if not 0 <= point.utilization <= 100:
            yield f"{path}[{at}].utilization", f"must be between 0 and 100, got {point.utilization}"
        if not 0 <= point.score <= SHAPE_HIGHEST:
            yield f"{path}[{at}].score", f"must be between 0 and {SHAPE_HIGHEST}, got {point.score}"
        if at and point.utilization <= shape[at - 1].utilization:
            yield f"{path}[{at}].utilization", "utilization values must be sorted in increasing order"


def line_through(shape: Sequence[UtilizationShapePoint]) -> list[int]:
    """The score at each utilization, 0 to 100 percent: straight between the points, level outside them."""
    points = [(point.utilization, point.score * HIGHEST // SHAPE_HIGHEST) for point in shape]
    return [_on_broken_line(utilization, points) for utilization in range(101)]


_GREATEST = float(2**63 - 2**10)
"""The greatest quantity, 2**63 - 1, is no float: it would become 2**63, which no whole number of 64 bits is."""


_LARGE, _SHIFT = 2**56, 7
"""Beyond this capacity a hundred times the amount has more than 64 bits: both lose their last bits."""


def _whole(amounts: FloatArray) -> IntArray:
    return np.minimum(amounts, _GREATEST).astype(np.int64)


class Usage(NamedTuple):
    """One resource of many nodes: what is used, what comes on top, of how much, and what the resource weighs."""

    used: FloatArray
    more: int
    capacity: Capacity
    weight: int
    can_exceed: bool
    """Whether used and more together may be more than there is."""


class ResourceScorer:
    """A strategy, ready to score: each resource is a triple of what would be requested, capacity and weight."""

    def __init__(self, strategy: ScoringStrategy) -> None:
        self._type = strategy.type
        ratio = strategy.requested_to_capacity_ratio
        self._line = line_through(ratio.shape) if ratio and ratio.shape else []
        self._line_array = np.array(self._line, np.int64)

    def score(self, resources: Iterable[tuple[int, int, int]]) -> int:
        """0…100 for one node: the weighted mean over the resources it has."""
        total = weights = 0
        for requested, capacity, weight in resources:
            one = self._one(requested, capacity) if capacity else 0
            if not capacity or (self._line and one == 0):
                continue  # the line's zero means "no opinion": it does not pull the mean down
            total += one * weight
            weights += weight
        if not weights:
            return 0
        return (2 * total + weights) // (2 * weights) if self._line else total // weights

    def _one(self, requested: int, capacity: int) -> int:
        used = requested if requested < capacity else capacity
        if capacity > _LARGE:
            used, capacity = used >> _SHIFT, capacity >> _SHIFT
        match self._type:
            case "LeastAllocated":
                return (capacity - used) * HIGHEST // capacity
            case "MostAllocated":
                return used * HIGHEST // capacity
            case "RequestedToCapacityRatio":
                return self._line[used * 100 // capacity]

    def score_rows(self, resources: Sequence[Usage], size: int) -> NDArray[Any]:
        """`score`, for many nodes at once."""
        if self._type == "LeastAllocated" and all(_is_plain(usage.capacity) for usage in resources):
            return _least_allocated(resources, size)
        total, weights = np.zeros(size, np.int64), np.zeros(size, np.int64)
        for used, more, capacity, weight, _ in resources:
            requested = _whole(np.minimum(used + float(more), capacity.floats))
            one = self._one_of_rows(requested, _whole(capacity.floats))
            counts = capacity.floats > 0
            if self._line:
                counts &= one > 0
            total += np.where(counts, one * weight, 0)
            weights += np.where(counts, weight, 0)
        divisor = np.maximum(weights, 1)
        return (2 * total + divisor) // (2 * divisor) if self._line else total // divisor

    def _one_of_rows(self, used: IntArray, capacity: IntArray) -> IntArray:
        if (is_large := capacity > _LARGE).any():
            shift = np.where(is_large, _SHIFT, 0)
            used, capacity = used >> shift, capacity >> shift
        divisor = np.maximum(capacity, 1)
        match self._type:
            case "LeastAllocated":
                return (capacity - used) * HIGHEST // divisor
            case "MostAllocated":
                return used * HIGHEST // divisor
            case "RequestedToCapacityRatio":
                on_line: IntArray = self._line_array[used * 100 // divisor]
                return on_line


EXACT = 2**44
ALL_FREE = HIGHEST + 2.0**-45
"""Free percents are cut off to whole numbers. Computed from capacities up to `EXACT`, percents are less than 2⁻⁴⁵ away
from the quotient of whole numbers (the rounding of `Capacity.percents`, of its product with what is used, and of the
difference from this), and a quotient that is not whole is at least 2⁻⁴⁴ away from the next whole number. So with 2⁻⁴⁵
more they are cut off where whole-number division would cut them off."""


def _is_plain(capacity: Capacity) -> bool:
    return capacity.lowest > 0 and capacity.highest <= EXACT


def _least_allocated(resources: Sequence[Usage], size: int) -> NDArray[np.int32]:
    """The most frequent strategy where every node has every resource: in place, and by floating point."""
    total: NDArray[np.int32] | None = None
    weights = 0
    for used, more, capacity, weight, can_exceed in resources:
        weights += weight
        percents = used + float(more)
        percents *= capacity.percents
        np.subtract(ALL_FREE, percents, out=percents)
        if can_exceed and percents.min() < 0.0:
            np.maximum(percents, 0.0, out=percents)
        free = percents.astype(np.int32)
        if weight != 1:
            free *= weight
        total = free if total is None else np.add(total, free, out=total)
    if total is None:
        return np.zeros(size, np.int32)
    if weights != 1:
        total //= weights
    return total


def _on_broken_line(utilization: int, shape: Sequence[tuple[int, int]]) -> int:
    """The score at a utilization: straight between the points, level outside them."""
    if utilization <= shape[0][0]:
        return shape[0][1]
    for (left, low), (right, high) in pairwise(shape):
        if utilization <= right:
            rise = (high - low) * (utilization - left)
            towards_zero = abs(rise) // (right - left)  # as Go divides
            return low + towards_zero if rise >= 0 else low - towards_zero
    return shape[-1][1]
