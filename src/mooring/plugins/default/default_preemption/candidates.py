"""The candidates of a preemption: nodes with their victims, as columns; spelled out when read."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import compress
from typing import Any, NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from mooring.framework import BoolArray, Candidate, IntArray, LowerPriorityPods, NodeRows, PlacedPod
from mooring.framework.preemption import by_importance, disruption_by, least_disruption


class _Batch(NamedTuple):
    """Candidates that were found together."""

    begins: int
    """The place of the first."""
    rows: IntArray
    first: IntArray
    """Per node, where its pods begin."""
    counts: IntArray
    is_victim: BoolArray
    """Per pod."""
    violating: BoolArray | None
    """Per pod, whether its eviction would violate a budget; None: none does."""
    columns: list[NDArray[Any]]
    """Per node its disruption: of these the first is the number of budget violations."""


class Candidates(Sequence[Candidate]):
    """Candidate nodes in the order in which they were found."""

    def __init__(self, every_node: NodeRows) -> None:
        self._names, self._rows = every_node.names, every_node.rows
        self._pods: list[Sequence[PlacedPod]] = []
        self._batches: list[_Batch] = []
        self.is_any_harmless = False
        """Whether one violates no disruption budget."""

    def __len__(self) -> int:
        return len(self._pods)

    @overload
    def __getitem__(self, place: int) -> Candidate: ...
    @overload
    def __getitem__(self, place: slice) -> list[Candidate]: ...
    def __getitem__(self, place: int | slice) -> Candidate | list[Candidate]:
        if isinstance(place, slice):
            return [self[each] for each in range(*place.indices(len(self)))]
        pods, place = self._pods[place], place % len(self)
        for batch in reversed(self._batches):  # the last that begins there or before
            if batch.begins <= place:
                break
        at = place - batch.begins
        first, count, violations = batch.first.item(at), batch.counts.item(at), batch.columns[0].item(at)
        name = self._names[self._rows.searchsorted(batch.rows[at])]
        lower, is_out = pods[-count:], batch.is_victim[first : first + count]
        protected = None if batch.violating is None else batch.violating[first : first + count]
        if protected is None or protected.all() or not protected.any():
            return Candidate(name, tuple(compress(lower, is_out.tolist())), violations)
        # As kube-scheduler: listed in the order of reprieve, then sorted, which reverses pods that have not started.
        victims = [*compress(lower, (is_out & protected).tolist()), *compress(lower, (is_out & ~protected).tolist())]
        return Candidate(name, tuple(by_importance(victims)), violations)

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
        """These nodes, which have victims, are candidates. `violating`: pods whose eviction would violate a budget."""
        places = np.flatnonzero(is_candidate)
        if not len(places):
            return
        victims = np.flatnonzero(is_victim & is_candidate.take(lower.node))
        begins = np.flatnonzero(np.diff(lower.node.take(victims), prepend=-1))
        columns = disruption_by(
            violations.take(places), begins, lower.priority.take(victims), lower.started.take(victims)
        )
        first, counts = lower.first.take(places), lower.counts.take(places)
        rows = lower.nodes.rows.take(places)
        self._batches.append(_Batch(len(self), rows, first, counts, is_victim, violating, columns))
        self._pods += lower.of_nodes(places)
        self.is_any_harmless |= bool((columns[0] == 0).any())

    def least_disruptive(self, seed: int) -> Candidate:
        columns = zip(*(batch.columns for batch in self._batches), strict=True)
        return self[least_disruption([np.concatenate(each) for each in columns], seed)]
