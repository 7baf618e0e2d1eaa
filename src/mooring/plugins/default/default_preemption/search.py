"""The search for candidates: which nodes are tried, in which order, until when; and the victims on each.

All pods of lower priority are evicted in a what-if. If the pod fits then, each is reprieved in order and stays where
the pod still fits; those that cannot stay are the victims. Pods whose eviction would violate a disruption budget are
reprieved before the others, so that victims are few and the most important stay.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain

import numpy as np

from mooring.base.errors import PluginFault
from mooring.framework import (
    UNRESOLVABLE,
    BoolArray,
    IntArray,
    LowerPriorityPods,
    NodeRows,
    NodeView,
    PlacedPod,
    Pod,
    Refusal,
    WhatIf,
)
from mooring.framework.verdicts import NodeRefusals
from mooring.plugins.default.default_preemption.budgets import Budgets
from mooring.plugins.default.default_preemption.candidates import Candidates

NO_VICTIMS = Refusal("No preemption victims found for incoming pod", code=UNRESOLVABLE)

FEWEST_AT_ONCE = 64
"""A batch of fewer nodes costs as much."""
_SCATTER = 2_654_435_761
"""Consecutive seeds begin far apart: the golden ratio of 2³²."""


class Search:
    """One search for one pod."""

    def __init__(self, pod: Pod, what_if: WhatIf, budgets: Budgets, every_node: NodeRows) -> None:
        self._pod = pod
        self._what_if = what_if
        self._budgets = budgets
        self.candidates = Candidates(every_node)
        self._every_node = every_node
        self._refused: list[Iterable[tuple[IntArray, Refusal]]] = []
        self.faults: dict[str, PluginFault] = {}
        """By message: filters that raised in a dry run."""

    def refused(self) -> NodeRefusals:
        """Why the other nodes that were tried are no candidates."""
        refused = NodeRefusals(self._every_node.names, self._every_node.rows)
        for rows, refusal in chain.from_iterable(self._refused):
            refused.give(rows, refusal)
        return refused

    def run(self, nodes: NodeRows, wanted: int) -> None:
        """Begin anywhere, and end when enough candidates are found, one without a budget violation if possible."""
        count = len(nodes)
        if not count:
            return
        begin = self._what_if.seed * _SCATTER % count
        # As many at once as it took for the last pod of the template: this changes the cost alone.
        notes = self._pod.template.notes
        size: int = notes.get(Search) or max(wanted + wanted // 2, FEWEST_AT_ONCE)
        tried = 0
        while tried < count:
            end = min(tried + size, count)
            places = np.arange(begin + tried, begin + end)
            places[places >= count] -= count  # a third of the time of a remainder
            enough = self._try(nodes.take(places), wanted)
            if enough is not None:
                end = tried + enough
                break
            tried = end
            size = self._next_size(wanted, tried)
        notes.keep(Search, max(end + end // 16, FEWEST_AT_ONCE))

    def _next_size(self, wanted: int, tried: int) -> int:
        """About as many as it takes, by the share of candidates among those that were tried."""
        found = len(self.candidates)
        missing = wanted - found if found < wanted else wanted
        return max(FEWEST_AT_ONCE, 2 * missing * tried // found if found else 4 * tried)

    def _try(self, nodes: NodeRows, wanted: int) -> int | None:
        """Compute the victims on these nodes. Returns among how many of them enough candidates are found."""
        lower = self._what_if.lower_priority_pods(self._pod, nodes)
        self._refused.append([(nodes.rows[~lower.has_any], NO_VICTIMS)])
        if not len(lower):
            return None
        violating = None
        if self._budgets.are_any():
            with self._what_if.caused_by_others(self._budgets.others_share(self._pod.namespace)):
                violating = self._budgets.violating(lower)
        order = None if violating is None else np.argsort(2 * lower.node + ~violating, kind="stable")
        found = self._what_if.victims(self._pod, lower, order)
        self._refused.append(found.refusals)
        is_victim = found.is_victim
        is_candidate = found.is_known & ~found.is_refused
        for place in np.flatnonzero(~found.is_known).tolist():
            violations = _violations(lower, is_victim, violating)
            if self.candidates.enough_at(is_candidate[:place], violations[:place], wanted) is not None:
                break
            is_candidate[place] = self._dry_run(lower, place, order, is_victim)
        self._set_aside_without_victims(lower, is_candidate, is_victim)
        violations = _violations(lower, is_victim, violating)
        end = self.candidates.enough_at(is_candidate, violations, wanted)
        if end is not None:
            is_candidate[end:] = False
        self.candidates.add(lower, is_candidate, is_victim, violating, violations)
        return None if end is None else int(np.flatnonzero(lower.has_any)[end - 1]) + 1

    def _dry_run(self, lower: LowerPriorityPods, place: int, order: IntArray | None, is_victim: BoolArray) -> bool:
        """Reprieve pods in order; those beside which the incoming pod does not fit are victims.

        Returns whether the pod fits without all pods of lower priority.
        """
        node, first, count = lower.nodes.at(place), int(lower.first[place]), int(lower.counts[place])
        [of_node] = lower.of_nodes(np.array([place]))
        pods = of_node[len(of_node) - count :]
        places = range(first, first + count) if order is None else order[first : first + count].tolist()
        try:
            refusal = self._evicted(node, pods, [each - first for each in places], is_victim[first : first + count])
        except PluginFault as fault:  # a filter that was not reached before: this node is out
            self.faults.setdefault(str(fault), fault)
            return False
        if refusal is not None:
            self._refused.append([(lower.nodes.rows[place : place + 1], refusal)])
        return refusal is None

    def _evicted(
        self, node: NodeView, pods: Sequence[PlacedPod], order: list[int], is_victim: BoolArray
    ) -> Refusal | None:
        what_if, pod = self._what_if, self._pod
        with what_if.without(node, pods) as evicted:
            refusal = what_if.refusal(pod, node)
            if refusal is not None:
                return refusal
            for place in order:
                evicted.reprieve(pods[place])
                if not what_if.fits(pod, node):
                    evicted.evict(pods[place])
                    is_victim[place] = True
        return None

    def _set_aside_without_victims(
        self, lower: LowerPriorityPods, is_candidate: BoolArray, is_victim: BoolArray
    ) -> None:
        """A node that rejected the pod and would take it with all its pods: its filters are not of one mind."""
        has_none = is_candidate & ~np.logical_or.reduceat(is_victim, lower.first)
        if has_none.any():
            for name in lower.nodes.take(np.flatnonzero(has_none)).names:
                message = f'expected at least one victim pod on node "{name}"'
                self.faults.setdefault(message, PluginFault("", message))
            is_candidate &= ~has_none


def _violations(lower: LowerPriorityPods, is_victim: BoolArray, violating: BoolArray | None) -> IntArray:
    """How many victims of each node a budget protects."""
    if violating is None:
        return np.zeros(len(lower.nodes), np.int64)
    violations: IntArray = np.add.reduceat(is_victim & violating, lower.first, dtype=np.int64)
    return violations
