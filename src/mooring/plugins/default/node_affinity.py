"""NodeAffinity: `nodeSelector` and node affinity.

A node is refused when the pod's `nodeSelector` or required node affinity does not match it, or when the affinity that
the operator adds to every pod of the profile (`addedAffinity`) does not. Preferred terms that match add their weight.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import Annotated

import msgspec
import numpy as np

from mooring.base.errors import Fault
from mooring.framework import (
    UNRESOLVABLE,
    Action,
    Args,
    Cycle,
    Hint,
    IntArray,
    Meta,
    Node,
    NodeRows,
    NodeView,
    OnlyNodes,
    Plugin,
    Pod,
    Reads,
    Refusal,
    Rejection,
    Rejections,
    Skip,
    ToMax,
)
from mooring.framework.node_selectors import where_selector, where_term
from mooring.objects import core
from mooring.objects.placement_rules import (
    admits,
    is_readable,
    required_node_selector,
    selector_matches,
    term_matches,
    term_mistakes,
)
from mooring.objects.selectors import Labels, one_text

NOT_SELECTED = "node(s) didn't match Pod's node affinity/selector"
NOT_ENFORCED = "node(s) didn't match scheduler-enforced node affinity"
CONFLICT = "pod affinity terms conflict"

_encode = msgspec.msgpack.Encoder().encode


class NodeAffinityArgs(Args):
    """Arguments of NodeAffinity."""

    added_affinity: Annotated[
        core.NodeAffinity | None,
        Meta(description="Node affinity that every pod of the profile has besides its own."),
    ] = None

    def mistakes(self) -> Iterable[tuple[str, str]]:
        if self.added_affinity is None:
            return
        wrong: list[str] = []
        if self.added_affinity.required is not None:
            path = "addedAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"
            for at, term in enumerate(self.added_affinity.required.node_selector_terms):
                wrong += term_mistakes(term, f"{path}[{at}]")
        wrong += _preference_mistakes(
            self.added_affinity.preferred, "addedAffinity.preferredDuringSchedulingIgnoredDuringExecution"
        )
        for text in wrong:
            path, _, message = text.partition(": ")
            yield path, message


class NodeAffinity(Plugin):
    """Keep pods on the nodes that their selectors and affinity name, and prefer those they prefer."""

    pod_fields = ("spec.affinity.nodeAffinity", "spec.nodeSelector")
    reads = Reads.NODE
    per_template = True
    reads_requests = False
    pre_filter_reads_pods = False
    normalizer = ToMax()
    score_needs_pre_score = False

    def __init__(self, args: NodeAffinityArgs) -> None:
        added = args.added_affinity or core.NodeAffinity()
        self._enforced = added.required
        self._added_preferences = added.preferred

    def sign(self, pod: Pod) -> Hashable:
        affinity, selector = pod.spec.affinity, pod.spec.node_selector
        if not selector and (affinity is None or affinity.node_affinity is None):
            return ()
        return _encode((selector, affinity.node_affinity if affinity is not None else None))

    def events(self) -> Iterable[Hint]:
        return [Hint(Node, Action.ADD | Action.UPDATE_NODE_LABEL, self._began_to_match, per_template=True)]

    def pre_filter(self, pod: Pod, cycle: Cycle) -> Skip | Refusal | OnlyNodes | None:
        required = required_node_selector(pod)
        if required is None:
            return Skip() if self._enforced is None and not pod.spec.node_selector else None
        names = _only_names(required)
        if names is None:
            return None
        return OnlyNodes(names) if names else Refusal(CONFLICT, code=UNRESOLVABLE)

    def filter(self, pod: Pod, node: NodeView, cycle: Cycle) -> Rejection | None:
        if not self._enforcement_admits(node.name, node.labels):
            return Rejection(NOT_ENFORCED, code=UNRESOLVABLE)
        if not admits(pod, node.name, node.labels):
            return Rejection(NOT_SELECTED, code=UNRESOLVABLE)
        return None

    def filter_nodes(self, pod: Pod, nodes: NodeRows, cycle: Cycle) -> Iterator[Rejections]:
        """`filter`, for many nodes at once."""
        is_enforced = np.ones(len(nodes), bool)
        if self._enforced is not None:
            is_enforced = where_selector(self._enforced, nodes)
            yield Rejections(~is_enforced, NOT_ENFORCED, unresolvable=True)
        is_admitted = np.ones(len(nodes), bool)
        for key, value in pod.spec.node_selector.items():
            is_admitted &= nodes.where_label_in(key, (value,))
            if not is_admitted.any():
                break
        if (required := required_node_selector(pod)) is not None:
            is_admitted &= where_selector(required, nodes)
        yield Rejections(is_enforced & ~is_admitted, NOT_SELECTED, unresolvable=True)

    def pre_score(self, pod: Pod, feasible: NodeRows, cycle: Cycle) -> Skip | None:
        return None if self._preferences(pod) else Skip()

    def score(self, pod: Pod, node: NodeView, cycle: Cycle) -> int:
        return sum(
            preferred.weight
            for preferred in self._preferences(pod)
            if term_matches(preferred.preference, node.name, node.labels)
        )

    def score_nodes(self, pod: Pod, nodes: NodeRows, cycle: Cycle) -> IntArray:
        """`score`, for many nodes at once."""
        weights = np.zeros(len(nodes), np.int64)
        for preferred in self._preferences(pod):
            weights += preferred.weight * where_term(preferred.preference, nodes)
        return weights

    def _preferences(self, pod: Pod) -> Sequence[core.PreferredSchedulingTerm]:
        affinity = pod.spec.affinity
        own = affinity.node_affinity.preferred if affinity and affinity.node_affinity else []
        if not all(map(_is_readable, own)):
            raise Fault(one_text(list(_preference_mistakes(own, ""))))
        return [*self._added_preferences, *own] if self._added_preferences else own

    def _enforcement_admits(self, name: str, labels: Labels) -> bool:
        return self._enforced is None or selector_matches(self._enforced, name, labels)

    def _began_to_match(self, pod: Pod, before: Node | None, after: Node) -> bool:
        if not self._enforcement_admits(after.name, after.labels) or not admits(pod, after.name, after.labels):
            return False
        return before is None or not admits(pod, before.name, before.labels)


def _only_names(required: core.NodeSelector) -> frozenset[str] | None:
    """The node names that the terms name, if every term names some: only those nodes can match."""
    names: set[str] = set()
    for term in required.node_selector_terms:
        named = [
            frozenset(field.values)
            for field in term.match_fields
            if field.key == "metadata.name" and field.operator == "In"
        ]
        if not named:
            return None
        names |= frozenset.intersection(*named)
    return frozenset(names) if required.node_selector_terms else None


def _is_readable(preferred: core.PreferredSchedulingTerm) -> bool:
    """Weight 0 and an empty term have no effect, so they need not be readable."""
    term = preferred.preference
    return not preferred.weight or is_readable(term) or not (term.match_expressions or term.match_fields)


def _preference_mistakes(preferences: Sequence[core.PreferredSchedulingTerm], path: str) -> Iterator[str]:
    for at, preferred in enumerate(preferences):
        if preferred.weight:
            yield from term_mistakes(preferred.preference, f"{path}[{at}]")
