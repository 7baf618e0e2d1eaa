"""The framework's `WhatIf`: whether a pod would fit a node if some of its pods were evicted.

Preemption runs filters thousands of times in one decision, each time on one node with another pod reprieved. So a
plugin does not run again where its result cannot have changed: PreFilters that read no pods, and filters that read the
node object alone once they have passed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import cast

import numpy as np

from mooring.engine.cycle import EngineCycle
from mooring.engine.filtering import (
    first_refusal,
    not_satisfied,
    refusal_among_nominated,
    run_filter_at_once,
    run_pre_filters,
)
from mooring.engine.profile import FilterPlugin
from mooring.engine.rejected import Rejected, Step
from mooring.engine.time_budget import AttemptTimeout
from mooring.framework import BoolArray, Evicted, IntArray, NodeView, PlacedPod, Plugin, Pod, Reads, Refusal
from mooring.state import PODS, Rows, RowsAfterEviction, RowView

LARGEST_AMOUNT = 2**53
"""Sums of these on one node stay within 64 bits."""


class EngineWhatIf:
    """The framework's `WhatIf` for one cycle."""

    def __init__(self, cycle: EngineCycle) -> None:
        self._cycle = cycle
        profile = cycle.profile
        self._filterers = tuple(each for each in profile.filterers if each.name not in cycle.skipped_filters)
        self._of_pods = tuple(each for each in self._filterers if _reads(each, profile.pre_filters) is not Reads.NODE)
        self._accepted: set[int] = set()
        """The rows that filters of the node object alone have passed for the cycle's pod."""
        self._standing: EngineCycle | None = None
        """The cycle to run filters with, where no PreFilter has to run again."""

    @property
    def seed(self) -> int:
        return self._cycle.seed

    def unpreemptable(self, pod: Pod, nodes: Sequence[NodeView]) -> Mapping[str, Refusal]:
        """Runs the first filters in order, as long as each reads a node and its pods alone: then pods of other nodes
        do not matter, and all nodes are evaluated at once, each without its own pods of lower priority."""
        cycle = self._cycle
        if pod is not cycle.pod or not nodes:
            return {}
        # With nominated pods filters run twice: that is left to the dry run.
        nominated = cycle.state.nominations.nodes
        rows = sorted(node.row for node in nodes if node.name not in nominated)
        candidates = cycle.nodes.of_rows(np.array(rows, np.int64))
        freed = cycle.state.after_eviction(candidates, pod.priority)
        if freed is None or not len(candidates):
            return {}
        steps, _ = self._steps(freed, self._filterers)
        if not steps:
            return {}
        return {name: refusal for name, (_, refusal) in Rejected.by_steps(candidates, steps).items()}

    def victims(
        self, pod: Pod, reprieve_order: Sequence[tuple[NodeView, Sequence[PlacedPod]]]
    ) -> Mapping[str, Sequence[PlacedPod]]:
        """Reprieves the first pod of every node, then the second, and so on: one vectorized pass for each."""
        cycle = self._cycle
        if pod is not cycle.pod or not self._is_vectorizable():
            return {}
        nominated = cycle.state.nominations.nodes
        ordered = [each for each in reprieve_order if each[0].name not in nominated]
        for names in cycle.limits.values():
            ordered = [each for each in ordered if each[0].name in names]
        ordered.sort(key=lambda each: each[0].row)
        nodes = cycle.nodes.of_rows(np.array([node.row for node, _ in ordered], np.int64))
        freed = cycle.state.after_eviction(nodes, pod.priority)
        if freed is None or not ordered:
            return {}
        steps, is_whole = self._steps(freed, self._filterers)
        if not is_whole:
            return {}
        is_unpreemptable = _are_refused(freed.rows, steps)  # the dry run reports why
        left = [each for each, is_out in zip(ordered, is_unpreemptable.tolist(), strict=True) if not is_out]
        return self._reprieve_in_order(freed.where(~is_unpreemptable), left)

    def _reprieve_in_order(
        self, freed: RowsAfterEviction, ordered: Sequence[tuple[NodeView, Sequence[PlacedPod]]]
    ) -> Mapping[str, Sequence[PlacedPod]]:
        """The victims, on nodes where the pod fits without all lower-priority pods; empty if not computable."""
        victims: dict[str, list[PlacedPod]] = {node.name: [] for node, _ in ordered}
        back: dict[str, IntArray] = {}
        for turn in range(max((len(pods) for _, pods in ordered), default=0)):
            has_one = np.array([turn < len(pods) for _, pods in ordered])
            reprieved = [(place, pods[turn]) for place, (_, pods) in enumerate(ordered) if turn < len(pods)]
            held = _held([each for _, each in reprieved])
            if held is None:
                return {}
            for resource, amounts in held.items():
                back.setdefault(resource, np.zeros(len(ordered), np.int64))[has_one] += amounts
            steps, is_whole = self._steps(freed.with_back(back).where(has_one), self._of_pods)
            if not is_whole:
                return {}
            if not steps:
                continue
            cannot_stay = _are_refused(freed.rows[has_one], steps)
            for resource, amounts in held.items():
                back[resource][has_one] -= np.where(cannot_stay, amounts, 0)
            for which in np.flatnonzero(cannot_stay).tolist():
                place, each = reprieved[which]
                victims[ordered[place][0].name].append(each)
        return victims

    def _is_vectorizable(self) -> bool:
        """Whether no PreFilter has to run again when pods are evicted, and none rejected the pod."""
        cycle = self._cycle
        return all(
            plugin.name in cycle.skipped_filters
            or (plugin.name in cycle.filter_states and not plugin.pre_filter_reads_pods)
            for plugin in cycle.profile.pre_filters
        )

    def _steps(self, nodes: RowsAfterEviction, filterers: Iterable[FilterPlugin]) -> tuple[list[Step], bool]:
        """The rejections of these nodes, filter by filter; and whether all filters could run on many nodes."""
        steps: list[Step] = []
        for filterer in filterers:
            if not len(nodes):
                break
            reads = _reads(filterer, self._cycle.profile.pre_filters)
            if filterer.at_once is None or reads not in (Reads.NODE, Reads.PODS):
                return steps, False
            try:
                step = run_filter_at_once(filterer, self._cycle, cast(Rows, nodes))
            except (KeyboardInterrupt, AttemptTimeout):
                raise
            except BaseException:  # the dry run reports it
                return steps, False
            if step is not None:
                steps.append(step)
                nodes = nodes.where(~step.mask)
        return steps, True

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
            filterers = self._of_pods if is_ours and view.row in self._accepted else self._filterers
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


def _are_refused(rows: IntArray, steps: Sequence[Step]) -> BoolArray:
    """Which of these rows some filter rejects."""
    refused = [step.rows[step.mask] for step in steps]
    return np.isin(rows, np.concatenate(refused)) if refused else np.zeros(len(rows), np.bool_)


def _held(pods: Sequence[PlacedPod]) -> dict[str, IntArray] | None:
    """What these pods hold, by resource, one number for each pod; None if sums of it could be beyond 64 bits."""
    requests = [each.requests.amounts for each in pods]
    held = {PODS: np.ones(len(pods), np.int64)}
    for resource in {resource for amounts in requests for resource in amounts}:
        requested = [amounts.get(resource, 0) for amounts in requests]
        if max(requested) > LARGEST_AMOUNT:
            return None
        held[resource] = np.array(requested, np.int64)
    return held


def _reads(filterer: FilterPlugin, pre_filters: tuple[Plugin, ...]) -> Reads:
    """What the filter's result depends on; anything, if its PreFilter state depends on pods."""
    plugin = filterer.plugin
    if plugin.pre_filter_reads_pods and plugin in pre_filters:
        return Reads.ANYTHING
    return plugin.reads
