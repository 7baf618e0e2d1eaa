"""Proposed changes, verified: the pod is decided again with each of them made. What does not help is dropped."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from mooring.engine import Decision, EngineCycle
from mooring.engine.every_filter import PluginFilterResult
from mooring.framework import Pod
from mooring.objects.core import Affinity, NodeAffinity, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from mooring.objects.placement_rules import required_node_selector
from mooring.why.changes import ProposedChange, combined, with_spec
from mooring.why.proposals import RejectedNode, measure_of, proposals_of
from mooring.why.recomputation import Recomputation

MOST_STEPS = 8
"""Of one change that satisfies several plugins, one after the other."""
HOSTNAME = "kubernetes.io/hostname"


class Verified(msgspec.Struct, frozen=True):
    """A change, and where the pod goes with it."""

    change: ProposedChange
    node: str

    def document(self) -> dict[str, Any]:
        document: dict[str, Any] = {"change": self.change.sentence, "node": self.node}
        if self.change.manifest is not None:
            document["manifest"] = self.change.manifest
        if self.change.command:
            document["command"] = self.change.command
        return document


class Verifier:
    """Finds changes that bring one pod to nodes, and decides again with each."""

    def __init__(self, recomputation: Recomputation, pod: Pod) -> None:
        self._recomputation = recomputation
        self._pod = pod

    def gaps(self, node: str) -> list[str]:
        """What is missing on the node, by every plugin that rejects it."""
        cycle, results = self._recomputation.results(self._pod, node)
        return [
            measure_of(case.plugin)(case).sentence for case in self._cases(self._pod, node, cycle, results.values())
        ]

    def feasible(self, node: str) -> list[Verified]:
        """Changes after which the node is feasible and the pod is placed, wherever."""
        return [
            Verified(change, decision.node)
            for change in self._changes(node)
            if (decision := self._decided(change)).node is not None
        ]

    def to(self, node: str) -> list[Verified]:
        """Changes after which the pod goes to this node. One that wins no score must be required."""
        found = []
        changes = self._changes(node)
        if not self._recomputation.rejecting(self._pod, node):
            changes = iter([ProposedChange("")])
        for change in changes:
            if self._decided(change).node == node:
                found.append(Verified(change, node))
                continue
            with self._recomputation.applied(change):
                pinned = self._required(change.after(self._pod), node)
            both = combined([change, pinned]) if change.sentence else pinned
            if self._decided(both).node == node:
                found.append(Verified(both, node))
        return found

    def _decided(self, change: ProposedChange) -> Decision:
        with self._recomputation.applied(change):
            return self._recomputation.decide(change.after(self._pod))

    def _changes(self, node: str) -> Iterator[ProposedChange]:
        """Each makes the node feasible: alternatives where one plugin rejects it, else one for all of them."""
        cycle, results = self._recomputation.results(self._pod, node)
        cases = list(self._cases(self._pod, node, cycle, results.values()))
        if len(cases) == 1 and not any(result.fault for result in results.values()):
            for change in proposals_of(cases[0].plugin)(cases[0]):
                if self._is_feasible(change, node):
                    yield change
            return
        if cases and (whole := self._repair(node)) is not None:
            yield whole

    def _is_feasible(self, change: ProposedChange, node: str) -> bool:
        with self._recomputation.applied(change):
            return not self._recomputation.rejecting(change.after(self._pod), node)

    def _repair(self, node: str) -> ProposedChange | None:
        """One plugin after the other is satisfied, by the first of its proposals that works."""
        steps: list[ProposedChange] = []
        for _ in range(MOST_STEPS):
            change = combined(steps) if steps else ProposedChange("")
            pod = change.after(self._pod)
            with self._recomputation.applied(change):
                cycle, results = self._recomputation.results(pod, node)
                if any(result.fault for result in results.values()):
                    return None
                case = next(self._cases(pod, node, cycle, results.values()), None)
                if case is None:
                    return change
                step = next((each for each in proposals_of(case.plugin)(case) if not case.is_rejected_by(each)), None)
            if step is None:
                return None
            steps.append(step)
        return None

    def _cases(self, pod: Pod, node: str, cycle: EngineCycle, results: Any) -> Iterator[RejectedNode]:
        view = self._recomputation.view(node)
        assert view is not None, "the node exists"
        result: PluginFilterResult
        for result in results:
            if node in result.rejected:
                yield RejectedNode(self._recomputation, cycle, result.plugin, pod, view, result.rejected[node])

    def _required(self, pod: Pod, node: str) -> ProposedChange:
        """The pod must go to this node."""
        view = self._recomputation.view(node)
        assert view is not None, "the node exists"
        if HOSTNAME in view.labels:
            selector = {**pod.spec.node_selector, HOSTNAME: view.labels[HOSTNAME]}
            return ProposedChange(
                f"require {node}: otherwise another one is chosen",
                pod=with_spec(pod, node_selector=selector),
                manifest={"spec": {"nodeSelector": selector}},
            )
        named = NodeSelectorRequirement(key="metadata.name", operator="In", values=[node])
        required = required_node_selector(pod)
        terms = required.node_selector_terms if required is not None else [NodeSelectorTerm()]
        selector_terms = [msgspec.structs.replace(term, match_fields=[*term.match_fields, named]) for term in terms]
        affinity = pod.spec.affinity or Affinity()
        node_affinity = msgspec.structs.replace(
            affinity.node_affinity or NodeAffinity(), required=NodeSelector(node_selector_terms=selector_terms)
        )
        affinity = msgspec.structs.replace(affinity, node_affinity=node_affinity)
        return ProposedChange(
            f"require {node}: otherwise another one is chosen",
            pod=with_spec(pod, affinity=affinity),
            manifest={"spec": {"affinity": msgspec.to_builtins(affinity)}},
        )
