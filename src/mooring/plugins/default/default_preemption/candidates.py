"""The candidates of a preemption: nodes with their victims, as columns; spelled out when read."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import compress, repeat
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from mooring.framework import BoolArray, Candidate, IntArray, LowerPriorityPods, NodeView, PlacedPod
from mooring.framework.preemption import by_importance, disruption_columns, least_disruption


class Candidates(Sequence[Candidate]):
    """Candidate nodes in the order in which they were found."""

    def __init__(self) -> None:
        self._found: list[tuple[NodeView, Sequence[PlacedPod], BoolArray, BoolArray | None, int, int, int]] = []
        """Each node with its pods; which pods are victims and which would violate a budget, those of this node from
        where on and how many; and the number of budget violations."""
        self._columns: list[list[NDArray[Any]]] = []
        self.is_any_harmless = False
        """Whether one violates no disruption budget."""

    def __len__(self) -> int:
        return len(self._found)

    @overload
    def __getitem__(self, place: int) -> Candidate: ...
    @overload
    def __getitem__(self, place: slice) -> list[Candidate]: ...
    def __getitem__(self, place: int | slice) -> Candidate | list[Candidate]:
        if isinstance(place, slice):
            return [self[each] for each in range(*place.indices(len(self)))]
        node, pods, is_victim, violating, first, count, violations = self._found[place]
        lower, is_out = pods[len(pods) - count :], is_victim[first : first + count]
        protected = None if violating is None else violating[first : first + count]
        if protected is None or protected.all() or not protected.any():
            return Candidate(node.name, tuple(compress(lower, is_out.tolist())), violations)
        # As kube-scheduler: listed in the order of reprieve, then sorted, which reverses pods that have not started.
        victims = [*compress(lower, (is_out & protected).tolist()), *compress(lower, (is_out & ~protected).tolist())]
        return Candidate(node.name, tuple(by_importance(victims)), violations)

    def enough_at(self, is_candidate: BoolArray, violations: IntArray, wanted: int) -> int | None:
        """With how many of these nodes the search may end: enough are candidates, and one of them is harmless."""
        found = len(self) + np.cumsum(is_candidate)
        if not len(found) or found[-1] < wanted:
            return None
        is_harmless = np.logical_or.accumulate(is_candidate & (violations == 0)) | self.is_any_harmless
        enough = np.flatnonzero(is_candidate & (found >= wanted) & is_harmless)
        return int(enough[0]) + 1 if len(enough) else None

    def add(
        self,
        lower: LowerPriorityPods,
        is_candidate: BoolArray,
        is_victim: BoolArray,
        violating: BoolArray | None,
        violations: IntArray,
    ) -> None:
        """These nodes are candidates. `violating`: pods whose eviction would violate a budget."""
        places = np.flatnonzero(is_candidate)
        if not len(places):
            return
        columns = [column.take(places) for column in disruption_columns(lower, is_victim, violations)]
        self._columns.append(columns)
        self._found += zip(
            lower.nodes.take(places),
            lower.of_nodes(places),
            repeat(is_victim),
            repeat(violating),
            lower.first.take(places).tolist(),
            lower.counts.take(places).tolist(),
            columns[0].tolist(),
            strict=False,
        )
        self.is_any_harmless |= bool((columns[0] == 0).any())

    def least_disruptive(self, seed: int) -> Candidate:
        return self[least_disruption([np.concatenate(each) for each in zip(*self._columns, strict=True)], seed)]
