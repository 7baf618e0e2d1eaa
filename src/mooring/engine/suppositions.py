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
from mooring.framework import NodeView, PlacedPod, Plugin, Pod, Reads, Refusal, Supposed
from mooring.state import Rows, RowView


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
        steps: list[Step] = []
        for filterer in self._filterers:
            looks_at = _reads(filterer, cycle.profile.pre_filters)
            if filterer.at_once is None or looks_at not in (Reads.NODE, Reads.PODS) or not len(freed):
                break
            try:
                step = ask_at_once(filterer, cycle, cast(Rows, freed))
            except Exception:  # it cannot be told, or the dry run will tell what is wrong
                break
            if step is not None:
                steps.append(step)
                freed = freed.where(~step.mask)
        return {name: refusal for name, (_, refusal) in Rejected.by_steps(asked, steps).items()}

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


def _reads(filterer: Filterer, pre_filters: tuple[Plugin, ...]) -> Reads:
    """What the filter's answers depend on; anything, if its state does too."""
    plugin = filterer.plugin
    if plugin.pre_filter_reads_pods and plugin in pre_filters:
        return Reads.ANYTHING
    return plugin.reads
