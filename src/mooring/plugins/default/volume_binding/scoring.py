"""How full the pod would make the storage it gets: the mean over storage classes, by a line through given points.

Volumes that exist count by their size; where there are none, capacities that new volumes come from.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from mooring.framework import IntArray
from mooring.objects.quantity import whole
from mooring.plugins.default.resource_scores import UtilizationShapePoint, line_through
from mooring.plugins.default.volume_binding.search import Binding, FoundRows, Provided, Search


class CapacityScorer:
    """The gate StorageCapacityScoring, at work."""

    def __init__(self, shape: Sequence[UtilizationShapePoint]) -> None:
        self._line = line_through(shape)

    def score(self, bindings: Iterable[Binding], provisions: Iterable[Provided]) -> int:
        """0…100 for one node."""
        by_class = _of_volumes(bindings) or _of_capacities(provisions)
        if not by_class:
            return 0
        total = sum(self._one(requested, capacity) for requested, capacity in by_class.values())
        return (2 * total + len(by_class)) // (2 * len(by_class))

    def _one(self, requested: int, capacity: int) -> int:
        full = 100
        return self._line[full if capacity == 0 or requested > capacity else requested * full // capacity]

    def score_rows(self, search: Search, found: FoundRows, size: int) -> IntArray:
        """`score`, for many nodes: nodes on which the claims get the same are scored once."""
        columns = [*found.matched, *found.provided]
        if not columns:
            return np.zeros(size, np.int64)
        distinct, places = np.unique(np.stack(columns), axis=1, return_inverse=True)
        scores = [self.score(*search.chosen(choices.tolist())) for choices in distinct.T]
        return np.array(scores, np.int64).take(places.reshape(-1))


def _of_volumes(bindings: Iterable[Binding]) -> dict[str, tuple[int, int]]:
    """Class → requested and available bytes."""
    found: dict[str, tuple[int, int]] = {}
    for claim, volume in bindings:
        requested, capacity = found.get(volume.spec.storage_class_name, (0, 0))
        found[volume.spec.storage_class_name] = (
            requested + (claim.requested_bytes or 0),
            capacity + volume.capacity_bytes,
        )
    return found


def _of_capacities(provisions: Iterable[Provided]) -> dict[str, tuple[int, int]]:
    found: dict[str, tuple[int, int]] = {}
    for claim, capacity in provisions:
        if capacity is not None:
            name = claim.spec.storage_class_name or ""
            # Two claims of one class share its capacity, so it does not add up.
            there = whole(capacity.capacity) if capacity.capacity is not None else 0
            found[name] = (found.get(name, (0, 0))[0] + (claim.requested_bytes or 0), there)
    return found
