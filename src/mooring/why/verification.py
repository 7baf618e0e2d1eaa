"""Proposed changes, verified: the pod is decided again with each of them made. What does not help is dropped."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from mooring.engine import Decision, EngineCycle
from mooring.engine.every_filter import PluginFilterResult
from mooring.framework import Pod
from mooring.objects.core import Affinity, NodeAffinity, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from mooring.objects.placement_rules import required_node_selector
from mooring.why.changes import ProposedChange, combined, with_spec
from mooring.why.owner_kinds import owner_of
from mooring.why.proposals import RejectedNode, measure_of, proposals_of
from mooring.why.recomputation import Recomputation, unbound

MOST_STEPS = 8
"""Of one change that satisfies several plugins, one after the other."""
HOSTNAME = "kubernetes.io/hostname"


def _again(pod: Pod) -> Pod:
    """What its controller creates in its place."""
    metadata = msgspec.structs.replace(pod.metadata, uid=f"{pod.uid}-again", name=f"{pod.name}-again")
    return Pod(metadata=metadata, spec=pod.spec)


class Verified(msgspec.Struct, frozen=True):
    """A change, and where the pod goes with it."""

    change: ProposedChange
    node: str
    created_again: tuple[tuple[str, str | None], ...] = ()
    """Pods that are deleted and that a controller creates again: `Deployment/web`, and the node they then go to."""

    def document(self) -> dict[str, Any]:
        document: dict[str, Any] = {"change": self.change.sentence, "node": self.node}
        if self.created_again:
            document["createdAgain"] = [{"owner": owner, "node": node} for owner, node in self.created_again]
        if self.change.created is not None:
            document["create"] = self.change.created
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
        cases = self._cases(self._pod, node, cycle, results.values())
        return list(dict.fromkeys(measure_of(case.plugin)(case).sentence for case in cases))

    def feasible(self, node: str) -> list[Verified]:
        """Changes after which the node is feasible and the pod is placed, wherever."""
        found = (self.verified(change) for change in self._changes(node))
        return [each for each in found if each is not None]

    def verified(self, change: ProposedChange) -> Verified | None:
        """The pod decided with the change; None: it still has no node."""
        with self._created_again(change) as outcomes:
            decision = self._decided(change)
            if decision.node is None:
                return None
            return Verified(change, decision.node, tuple(outcomes(decision)))

    def to(self, node: str) -> list[Verified]:
        """Changes after which the pod goes to this node. One that wins no score must be required."""
        found = []
        changes = self._changes(node)
        if not self._recomputation.rejecting(self._pod, node):
            changes = iter([ProposedChange("")])
        for change in changes:
            if (verified := self.verified(change)) is not None and verified.node == node:
                found.append(verified)
                continue
            with self._recomputation.applied(change):
                pinned = self._required(change.after(self._pod), node)
            both = combined([change, pinned]) if change.sentence else pinned
            if (verified := self.verified(both)) is not None and verified.node == node:
                found.append(verified)
        return found

    @contextlib.contextmanager
    def _created_again(
        self, change: ProposedChange
    ) -> Iterator[Callable[[Decision], Iterator[tuple[str, str | None]]]]:
        """Controllers create deleted pods again: while inside, those that the queue has before the pod have a node.

        Of equal priority the new one may be tried first. What is yielded has where they go, once the pod has its node.
        """
        recomputation = self._recomputation
        deleted = [recomputation.pods[uid] for uid in change.deleted if uid in recomputation.pods]
        owned = [(owner, unbound(pod)) for pod in deleted if (owner := owner_of(pod)) is not None]
        went: dict[str, str | None] = {}
        with contextlib.ExitStack() as before:
            for _, pod in owned:
                if pod.priority >= self._pod.priority:
                    with recomputation.applied(change):
                        went[pod.uid] = recomputation.decide(pod).node
                    if (node := went[pod.uid]) is not None:
                        before.enter_context(recomputation.placed(_again(pod), node))

            def outcomes(decision: Decision) -> Iterator[tuple[str, str | None]]:
                assert decision.node is not None, "the pod has a node"
                with recomputation.applied(change), recomputation.placed(decision.pod, decision.node):
                    for owner, pod in owned:
                        yield owner, went[pod.uid] if pod.uid in went else recomputation.decide(pod).node

            yield outcomes

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
        # One change may satisfy all of them: several plugins reject the node for a claim that is missing.
        found: dict[str, ProposedChange] = {}
        for case in cases:
            for change in proposals_of(case.plugin)(case):
                if change.sentence not in found and self._is_feasible(change, node):
                    found[change.sentence] = change
        yield from found.values()
        if cases and not found and (whole := self._repair(node)) is not None:
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
        named = NodeSelectorRequirement(key="metadata.name", operator="In", values=(node,))
        required = required_node_selector(pod)
        terms = required.node_selector_terms if required is not None else [NodeSelectorTerm()]
        selector_terms = [msgspec.structs.replace(term, match_fields=(*term.match_fields, named)) for term in terms]
        affinity = pod.spec.affinity or Affinity()
        node_affinity = msgspec.structs.replace(
            affinity.node_affinity or NodeAffinity(), required=NodeSelector(node_selector_terms=tuple(selector_terms))
        )
        affinity = msgspec.structs.replace(affinity, node_affinity=node_affinity)
        return ProposedChange(
            f"require {node}: otherwise another one is chosen",
            pod=with_spec(pod, affinity=affinity),
            manifest={"spec": {"affinity": msgspec.to_builtins(affinity)}},
        )
