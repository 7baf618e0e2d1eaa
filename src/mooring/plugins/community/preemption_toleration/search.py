"""The search for candidates where some pods are exempt: node by node, each without its other pods of lower priority."""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set

import numpy as np

from mooring.base.errors import PluginFault
from mooring.framework import (
    UNRESOLVABLE,
    Candidate,
    NodeRows,
    NodeView,
    PlacedPod,
    Pod,
    Refusal,
    WhatIf,
)
from mooring.framework.preemption import by_importance
from mooring.framework.verdicts import NodeRefusals
from mooring.plugins.default.default_preemption.budgets import Budgets

IsExempt = Callable[[PlacedPod], bool]


def no_victims(node: str, pod: str) -> Refusal:
    """The refusal of a node without potential victims, in scheduler-plugins' words."""
    return Refusal(f"No victims found on node {node} for preemptor pod {pod}", code=UNRESOLVABLE)


class TolerantSearch:
    """One search for one pod."""

    def __init__(
        self,
        pod: Pod,
        what_if: WhatIf,
        budgets: Budgets,
        every_node: NodeRows,
        is_exempt: IsExempt,
        refusal_without_victims: Callable[[str, str], Refusal],
    ) -> None:
        self._pod, self._what_if, self._is_exempt = pod, what_if, is_exempt
        self._refusal_without_victims = refusal_without_victims
        self._budgets = budgets
        self._refused = NodeRefusals(every_node.names, every_node.rows)
        self.candidates: list[Candidate] = []
        self.faults: dict[str, PluginFault] = {}
        """By message: what made nodes be left out."""

    def refused(self) -> NodeRefusals:
        """Why the other nodes that were tried are no candidates."""
        return self._refused

    def run(self, nodes: NodeRows, wanted: int) -> None:
        """Begin anywhere, and end when enough candidates are found, one without a budget violation if possible."""
        count = len(nodes)
        begin = self._what_if.seed % count if count else 0
        is_any_harmless = False
        for place in range(count):
            candidate = self._try(nodes.at((begin + place) % count))
            if candidate is not None:
                self.candidates.append(candidate)
                is_any_harmless |= not candidate.budget_violations
            if is_any_harmless and len(self.candidates) >= wanted:
                return

    def _try(self, node: NodeView) -> Candidate | None:
        try:
            potential, leaving = self._potential(node), self._leaving(node)
            if not potential and not leaving:
                self._refuse(node, self._refusal_without_victims(node.name, self._pod.name))
                return None
            return self._dry_run(node, by_importance(potential), leaving)
        except (LookupError, PluginFault) as error:
            fault = error if isinstance(error, PluginFault) else PluginFault("", str(error))
            self.faults.setdefault(str(error), fault)
            return None

    def _potential(self, node: NodeView) -> Sequence[PlacedPod]:
        """The pods that may be evicted."""
        return [placed for placed in node.pods if placed.priority < self._pod.priority and not self._is_exempt(placed)]

    def _leaving(self, _node: NodeView) -> Sequence[PlacedPod]:
        """The pods that leave the node anyway: none of them is a victim."""
        return ()

    def _refusal_without(self, node: NodeView) -> Refusal | None:
        """Why the pod does not fit without all of them."""
        return self._what_if.refusal(self._pod, node)

    def _is_victim(self, node: NodeView, _placed: PlacedPod) -> bool:
        """Whether one that is back on the node must go after all."""
        return not self._what_if.fits(self._pod, node)

    def _violations(self, victims: Sequence[PlacedPod], violating: Set[str]) -> int:
        return sum(victim.uid in violating for victim in victims)

    def _dry_run(
        self, node: NodeView, potential: Sequence[PlacedPod], leaving: Sequence[PlacedPod]
    ) -> Candidate | None:
        victims: list[PlacedPod] = []
        with self._what_if.without(node, (*potential, *leaving)) as evicted:
            refusal = self._refusal_without(node)
            if refusal is not None:
                self._refuse(node, refusal)
                return None
            violating = self._violating(potential)
            protected = [placed for placed in potential if placed.uid in violating]
            others = [placed for placed in potential if placed.uid not in violating]
            for placed in (*protected, *others):
                evicted.reprieve(placed)
                if self._is_victim(node, placed):
                    evicted.evict(placed)
                    victims.append(placed)
        if not victims and not leaving:
            raise LookupError(f'expected at least one victim pod on node "{node.name}"')
        if protected and others:
            victims = by_importance(victims)
        return Candidate(node.name, tuple(victims), self._violations(victims, violating))

    def _violating(self, pods: Sequence[PlacedPod]) -> set[str]:
        """The uids of pods whose eviction, after those before them, would violate a disruption budget."""
        with self._what_if.caused_by_others(self._budgets.others_share(self._pod.namespace)):
            return self._budgets.violating_pods(pods)

    def _refuse(self, node: NodeView, refusal: Refusal) -> None:
        self._refused.give(np.array([node.row]), refusal)
