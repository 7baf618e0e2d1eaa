"""What a post_filter plugin may suppose: pods that are not there, and what filters would say of a node then.

Preemption asks thousands of times in one decision, each time about one node with another pod put back. So nothing is
asked again whose answer cannot have changed: pre_filters that do not look at pods, and filters of the node object alone
once they have accepted it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import cast

import numpy as np

from mooring.engine.cycle import EngineCycle
from mooring.engine.feasible import ask_at_once, ask_pre_filters, first_refusal, not_satisfied, refusal_among_nominated
from mooring.engine.profile import Filterer
from mooring.engine.rejected import Rejected, Step
from mooring.engine.time_budget import AttemptTimeout
from mooring.framework import BoolArray, IntArray, NodeView, PlacedPod, Plugin, Pod, Reads, Refusal, Supposed
from mooring.state import PODS, FreedRows, Rows, RowView

LARGEST_TOLD = 2**53
"""Sums of these on one node stay within 64 bits."""


class Suppositions:
    """The framework's `WhatIf` for one cycle."""

    def __init__(self, cycle: EngineCycle) -> None:
        self._cycle = cycle
        profile = cycle.profile
        self._filterers = tuple(each for each in profile.filterers if each.name not in cycle.skipped_filters)
        self._of_pods = tuple(each for each in self._filterers if _reads(each, profile.pre_filters) is not Reads.NODE)
        self._accepted: set[int] = set()
        """The rows that the filters of the node object alone have accepted for the cycle's pod."""
        self._standing: EngineCycle | None = None
        """The cycle to ask filters with, where no pre_filter has to be asked again."""

    @property
    def seed(self) -> int:
        return self._cycle.seed

    def hopeless(self, pod: Pod, nodes: Sequence[NodeView]) -> Mapping[str, Refusal]:
        """The first filters in order, as long as each looks at a node and its pods alone: then those of other nodes
        do not matter, and all nodes can be asked as if each had lost its own."""
        cycle = self._cycle
        if pod is not cycle.pod or not nodes:
            return {}
        # Where pods are nominated, filters are asked twice: that is left to the dry run.
        nominated = cycle.state.nominations.nodes
        rows = sorted(node.row for node in nodes if node.name not in nominated)
        asked = cycle.nodes.of_rows(np.array(rows, np.int64))
        freed = cycle.state.freed(asked, pod.priority)
        if freed is None or not len(asked):
            return {}
        steps, _ = self._steps(freed, self._filterers)
        if not steps:
            return {}
        return {name: refusal for name, (_, refusal) in Rejected.by_steps(asked, steps).items()}

    def leaving(
        self, pod: Pod, orders: Sequence[tuple[NodeView, Sequence[PlacedPod]]]
    ) -> Mapping[str, Sequence[PlacedPod]]:
        """All nodes take their first pod back, then their second, and so on: a look at many for each turn."""
        cycle = self._cycle
        if pod is not cycle.pod or not self._are_told_at_once():
            return {}
        nominated = cycle.state.nominations.nodes
        told = [each for each in orders if each[0].name not in nominated]
        for names in cycle.limits.values():
            told = [each for each in told if each[0].name in names]
        told.sort(key=lambda each: each[0].row)
        nodes = cycle.nodes.of_rows(np.array([node.row for node, _ in told], np.int64))
        freed = cycle.state.freed(nodes, pod.priority)
        if freed is None or not told:
            return {}
        steps, is_whole = self._steps(freed, self._filterers)
        if not is_whole:
            return {}
        is_hopeless = _are_refused(freed.rows, steps)  # why, the dry run says
        left = [each for each, is_out in zip(told, is_hopeless.tolist(), strict=True) if not is_out]
        return self._put_back_in_turn(freed.where(~is_hopeless), left)

    def _put_back_in_turn(
        self, freed: FreedRows, told: Sequence[tuple[NodeView, Sequence[PlacedPod]]]
    ) -> Mapping[str, Sequence[PlacedPod]]:
        """Who cannot stay, on nodes where the pod fits without all of them; nothing if that cannot be told."""
        leaving: dict[str, list[PlacedPod]] = {node.name: [] for node, _ in told}
        back: dict[str, IntArray] = {}
        for turn in range(max((len(pods) for _, pods in told), default=0)):
            has_one = np.array([turn < len(pods) for _, pods in told])
            coming = [(place, pods[turn]) for place, (_, pods) in enumerate(told) if turn < len(pods)]
            held = _held([each for _, each in coming])
            if held is None:
                return {}
            for resource, amounts in held.items():
                back.setdefault(resource, np.zeros(len(told), np.int64))[has_one] += amounts
            steps, is_whole = self._steps(freed.with_back(back).where(has_one), self._of_pods)
            if not is_whole:
                return {}
            if not steps:
                continue
            cannot_stay = _are_refused(freed.rows[has_one], steps)
            for resource, amounts in held.items():
                back[resource][has_one] -= np.where(cannot_stay, amounts, 0)
            for which in np.flatnonzero(cannot_stay).tolist():
                place, each = coming[which]
                leaving[told[place][0].name].append(each)
        return leaving

    def _are_told_at_once(self) -> bool:
        """Whether no pre_filter has to be asked again when pods are supposed away, and none refused the pod."""
        cycle = self._cycle
        return all(
            plugin.name in cycle.skipped_filters
            or (plugin.name in cycle.filter_states and not plugin.pre_filter_reads_pods)
            for plugin in cycle.profile.pre_filters
        )

    def _steps(self, nodes: FreedRows, filterers: Iterable[Filterer]) -> tuple[list[Step], bool]:
        """What filters say of these nodes at once, each of those that are left; and whether all could be asked."""
        steps: list[Step] = []
        for filterer in filterers:
            if not len(nodes):
                break
            looks_at = _reads(filterer, self._cycle.profile.pre_filters)
            if filterer.at_once is None or looks_at not in (Reads.NODE, Reads.PODS):
                return steps, False
            try:
                step = ask_at_once(filterer, self._cycle, cast(Rows, nodes))
            except (KeyboardInterrupt, AttemptTimeout):
                raise
            except BaseException:  # not known here; the dry run reports what is wrong
                return steps, False
            if step is not None:
                steps.append(step)
                nodes = nodes.where(~step.mask)
        return steps, True

    def without(self, node: NodeView, pods: Iterable[PlacedPod]) -> AbstractContextManager[Supposed]:
        return self._cycle.state.what_if(node.name, without=pods)

    def fits(self, pod: Pod, node: NodeView) -> bool:
        return self.refusal(pod, node) is None

    def refusal(self, pod: Pod, node: NodeView) -> Refusal | None:
        is_ours = pod is self._cycle.pod
        cycle = self._supposed(pod) if self._standing is None or not is_ours else self._standing
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
            return verdict[1]
        if is_ours:
            self._accepted.add(view.row)
        return None

    def _supposed(self, pod: Pod) -> EngineCycle | Refusal:
        """A cycle as things stand; pre_filters are asked again where pods on nodes matter to them."""
        cycle = self._cycle.supposing(pod)
        stands = all(
            plugin.name in cycle.filter_states or plugin.name in cycle.skipped_filters
            for plugin in cycle.profile.pre_filters
        )
        narrowed = ask_pre_filters(cycle)
        if narrowed.refusal is not None:
            return narrowed.refusal[1]
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
        asked = [amounts.get(resource, 0) for amounts in requests]
        if max(asked) > LARGEST_TOLD:
            return None
        held[resource] = np.array(asked, np.int64)
    return held


def _reads(filterer: Filterer, pre_filters: tuple[Plugin, ...]) -> Reads:
    """What the filter's answers depend on; anything, if its state does too."""
    plugin = filterer.plugin
    if plugin.pre_filter_reads_pods and plugin in pre_filters:
        return Reads.ANYTHING
    return plugin.reads
