"""The framework's `WhatIf`: whether a pod would fit a node if some of its pods were evicted.

Preemption runs filters thousands of times in one decision, each time on one node with another pod reprieved. So a
plugin does not run again where its result cannot have changed: PreFilters that read no pods, and filters that read the
node object alone once they have passed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import cast

import numpy as np

from mooring.engine.cycle import EngineCycle
from mooring.engine.filtering import first_refusal, not_satisfied, refusal_among_nominated, run_pre_filters
from mooring.engine.rejected import Rejected, Step
from mooring.engine.what_if_filters import WhatIfFilters
from mooring.framework import (
    BoolArray,
    Evicted,
    IntArray,
    LowerPriorityPods,
    NodeRows,
    NodeView,
    PlacedPod,
    Pod,
    Refusal,
    Victims,
)
from mooring.state import Eviction, EvictionBeside, Rows, RowView, WhatIfRows
from mooring.state import LowerPriorityPods as StateLowerPriorityPods


class _Refusals:
    """The rows of nodes that filters rejected, by refusal. Read only where there is no candidate: computed then."""

    def __init__(self, nodes: Rows, steps: Sequence[Step]) -> None:
        self._nodes = nodes
        self._steps = steps

    def __iter__(self) -> Iterator[tuple[IntArray, Refusal]]:
        if self._steps:
            for rows, verdict in Rejected.by_steps(self._nodes, self._steps).rows_by_verdict():
                yield rows, verdict.refusal


class EngineWhatIf:
    """The framework's `WhatIf` for one cycle."""

    __slots__ = ("_accepted", "_cycle", "_filters", "_standing")

    def __init__(self, cycle: EngineCycle) -> None:
        self._cycle = cycle
        self._filters = WhatIfFilters(cycle)
        self._accepted: set[int] = set()
        """The rows that filters of the node object alone have passed for the cycle's pod."""
        self._standing: EngineCycle | None = None
        """The cycle to run filters with, where no PreFilter has to run again."""

    @property
    def seed(self) -> int:
        return self._cycle.seed

    def lower_priority_pods(self, pod: Pod, nodes: NodeRows) -> LowerPriorityPods:
        return self._cycle.state.lower_priority_pods(pod.priority, cast(Rows, nodes))

    def victims(self, pod: Pod, lower: LowerPriorityPods, reprieve_order: IntArray | None = None) -> Victims:
        """Runs the filters on all nodes without their pods of lower priority, then with the first pod of every node
        reprieved, then the second, and so on: one vectorized pass for each.

        Where some filter cannot run on many nodes, the rejections of those before it are known nevertheless.
        """
        pods = cast(StateLowerPriorityPods, lower)
        is_known, is_victim = np.zeros(len(pods.nodes), np.bool_), np.zeros(len(pods), np.bool_)
        places, nominated = self._vectorizable(pod, pods.nodes)
        if not len(places) and not len(nominated):
            return Victims((), is_known, is_known, is_victim)
        eviction = Eviction(pods)
        steps, passing = self._filters.run(WhatIfRows.of(eviction, places))
        is_known[places] = True
        if len(nominated):
            refused, refusing = self._refused_among_nominated(eviction, nominated)
            is_known[refused] = True
            steps += refusing
        is_refused = is_known.copy()
        is_refused[passing.places] = False
        if not (
            passing.are_certain
            and self._filters.are_states_valid
            and self._reprieve_in_order(eviction, passing.places, reprieve_order, is_victim)
        ):
            is_known[passing.places] = False
        return Victims(_Refusals(self._cycle.nodes, steps), is_refused, is_known, is_victim)

    def _vectorizable(self, pod: Pod, nodes: Rows) -> tuple[IntArray, IntArray]:
        """The positions of nodes where filters run once, and of those where they run with nominated pods first."""
        cycle = self._cycle
        is_left = np.full(len(nodes), pod is cycle.pod)
        for names in cycle.limits.values():
            is_left &= nodes.where_named(names)
        if not cycle.state.nominations.nodes:
            return np.flatnonzero(is_left), np.empty(0, np.int64)
        is_nominated = np.isin(nodes.rows, cycle.state.nominated_ahead_of(pod).rows)
        return np.flatnonzero(is_left & ~is_nominated), np.flatnonzero(is_left & is_nominated)

    def _refused_among_nominated(self, eviction: Eviction, places: IntArray) -> tuple[IntArray, list[Step]]:
        """Those of these nodes that filters reject with the pods that are nominated to them, and the rejections.

        The others are left to a what-if about each of them.
        """
        ahead, nodes = self._cycle.state.nominated_ahead_of(self._cycle.pod), eviction.pods.nodes
        by_row = np.argsort(ahead.rows)
        nominated = by_row.take(np.searchsorted(ahead.rows, nodes.rows.take(places), sorter=by_row))
        # PreFilter states do not count the terms of nominated pods.
        is_countable = ~ahead.has_affinity.take(nominated) & self._filters.are_states_valid
        places, nominated = places[is_countable], nominated[is_countable]
        beside = EvictionBeside(eviction, ahead.addition, places, nominated)
        steps, passing = self._filters.run(WhatIfRows(nodes.take(places), beside, places))
        return np.setdiff1d(places, passing.places), steps

    def _reprieve_in_order(
        self, eviction: Eviction, fitting: IntArray, order: IntArray | None, is_victim: BoolArray
    ) -> bool:
        """Find the victims on these nodes, where the pod fits without all pods of lower priority. Returns whether
        all filters could run."""
        pods = eviction.pods
        most_first = fitting[np.argsort(-pods.counts.take(fitting), kind="stable")]
        first, counts = pods.first.take(most_first), pods.counts.take(most_first)
        evaluated = WhatIfRows.of(eviction, most_first)
        for turn in range(int(counts[0]) if len(counts) else 0):
            nodes = most_first[: np.searchsorted(-counts, -turn)]
            if 2 * len(nodes) < len(evaluated):  # the others would only be evaluated as before
                evaluated = WhatIfRows.of(eviction, nodes)
            reprieved = first[: len(nodes)] + turn
            if order is not None:
                reprieved = order.take(reprieved)
            eviction.reprieve(reprieved, nodes)
            _, passing = self._filters.run(evaluated, of_pods_only=True)
            if not passing.are_certain:
                return False
            if len(passing.places) < len(evaluated):
                is_passing = np.zeros(len(pods.nodes), np.bool_)
                is_passing[passing.places] = True
                cannot_stay = ~is_passing.take(nodes)
                victims = reprieved[cannot_stay]
                eviction.evict(victims, nodes[cannot_stay])
                is_victim[victims] = True
        return True

    def caused_by_others(self, share: float) -> AbstractContextManager[None]:
        budget = self._cycle.budget
        return nullcontext() if budget is None else budget.caused_by_others(share)

    def without(self, node: NodeView, pods: Iterable[PlacedPod]) -> AbstractContextManager[Evicted]:
        return self._cycle.state.what_if(node.name, without=pods)

    def fits(self, pod: Pod, node: NodeView) -> bool:
        return self.refusal(pod, node) is None

    def refusal(self, pod: Pod, node: NodeView) -> Refusal | None:
        is_ours = pod is self._cycle.pod
        cycle = self._cycle_for(pod) if self._standing is None or not is_ours else self._standing
        if isinstance(cycle, Refusal):
            return cycle
        if any(node.name not in names for names in cycle.limits.values()):
            return not_satisfied(tuple(cycle.limits))
        view = cast(RowView, node)
        verdict = refusal_among_nominated(cycle, view)
        if verdict is None:
            filterers = self._filters.of_pods if is_ours and view.row in self._accepted else self._filters.all
            verdict = first_refusal(cycle, view, filterers)
        if verdict is not None:
            return verdict.refusal
        if is_ours:
            self._accepted.add(view.row)
        return None

    def _cycle_for(self, pod: Pod) -> EngineCycle | Refusal:
        """A cycle of the state as it is now; PreFilters that read pods run again."""
        cycle = self._cycle.for_what_if(pod)
        stands = all(
            plugin.name in cycle.filter_states or plugin.name in cycle.skipped_filters
            for plugin in cycle.profile.pre_filters
        )
        narrowed = run_pre_filters(cycle)
        if narrowed.refusal is not None:
            return narrowed.refusal.refusal
        if stands and pod is self._cycle.pod:
            self._standing = cycle
        return cycle
