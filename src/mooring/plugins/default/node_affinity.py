"""NodeAffinity: `nodeSelector` and node affinity.

A node is refused when the pod's `nodeSelector` or required node affinity does not match it, or when the affinity that
the operator adds to every pod of the profile (`addedAffinity`) does not. Preferred terms that match add their weight.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import reduce
from typing import Annotated

import numpy as np

from mooring.framework import (
    UNRESOLVABLE,
    Action,
    Args,
    BoolArray,
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
from mooring.objects import core
from mooring.objects.placement_rules import admits, required_node_selector, selector_matches, term_matches
from mooring.objects.selectors import Labels, requirement_matches

NOT_SELECTED = "node(s) didn't match Pod's node affinity/selector"
NOT_ENFORCED = "node(s) didn't match scheduler-enforced node affinity"
CONFLICT = "pod affinity terms conflict"

_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")


class NodeAffinityArgs(Args):
    """Arguments of NodeAffinity."""

    added_affinity: Annotated[
        core.NodeAffinity | None,
        Meta(description="Node affinity that every pod of the profile has besides its own."),
    ] = None

    def mistakes(self) -> Iterable[tuple[str, str]]:
        if self.added_affinity is None:
            return
        required = self.added_affinity.required
        if required is not None:
            path = "addedAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"
            if not required.node_selector_terms:
                yield path, "must have at least one node selector term"
            for at, term in enumerate(required.node_selector_terms):
                yield from _term_mistakes(f"{path}[{at}]", term)
        for at, preferred in enumerate(self.added_affinity.preferred):
            path = f"addedAffinity.preferredDuringSchedulingIgnoredDuringExecution[{at}]"
            if not 1 <= preferred.weight <= 100:
                yield f"{path}.weight", f"must be in the range 1-100, got {preferred.weight}"
            yield from _term_mistakes(f"{path}.preference", preferred.preference)


class NodeAffinity(Plugin):
    """Keep pods on the nodes that their selectors and affinity name, and prefer those they prefer."""

    reads = Reads.NODE
    normalizer = ToMax()
    score_needs_pre_score = False

    def __init__(self, args: NodeAffinityArgs) -> None:
        added = args.added_affinity or core.NodeAffinity()
        self._enforced = added.required
        self._added_preferences = added.preferred

    def events(self) -> Iterable[Hint]:
        return [Hint(Node, Action.ADD | Action.UPDATE_NODE_LABEL, self._began_to_match)]

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
            is_enforced = _where_selector(self._enforced, nodes)
            yield Rejections(~is_enforced, NOT_ENFORCED, unresolvable=True)
        is_admitted = np.ones(len(nodes), bool)
        for key, value in pod.spec.node_selector.items():
            is_admitted &= nodes.where_label(key, _test(key, "In", [value]))
        if (required := required_node_selector(pod)) is not None:
            is_admitted &= _where_selector(required, nodes)
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
            weights += preferred.weight * _where_term(preferred.preference, nodes)
        return weights

    def _preferences(self, pod: Pod) -> Sequence[core.PreferredSchedulingTerm]:
        affinity = pod.spec.affinity
        own = affinity.node_affinity.preferred if affinity and affinity.node_affinity else []
        return [*self._added_preferences, *own] if self._added_preferences else own

    def _enforcement_admits(self, name: str, labels: Labels) -> bool:
        return self._enforced is None or selector_matches(self._enforced, name, labels)

    def _began_to_match(self, pod: Pod, before: Node | None, after: Node) -> bool:
        if not self._enforcement_admits(after.name, after.labels) or not admits(pod, after.name, after.labels):
            return False
        return before is None or not admits(pod, before.name, before.labels)


def _only_names(required: core.NodeSelector) -> frozenset[str] | None:
    """The node names that the terms name, if every term names some: only those nodes need be looked at."""
    names: frozenset[str] = frozenset()
    for term in required.node_selector_terms:
        named = [
            frozenset(field.values)
            for field in term.match_fields
            if field.key == "metadata.name" and field.operator == "In"
        ]
        if not named:
            return None
        names |= frozenset.intersection(*named)
    return names if required.node_selector_terms else None


def _where_selector(selector: core.NodeSelector, nodes: NodeRows) -> BoolArray:
    """`selector_matches`, for many nodes at once."""
    masks = [_where_term(term, nodes) for term in selector.node_selector_terms]
    return reduce(np.logical_or, masks, np.zeros(len(nodes), bool))


def _where_term(term: core.NodeSelectorTerm, nodes: NodeRows) -> BoolArray:
    """`term_matches`, for many nodes at once."""
    if not term.match_expressions and not term.match_fields:
        return np.zeros(len(nodes), bool)
    mask = np.ones(len(nodes), bool)
    for part in term.match_expressions:
        mask &= nodes.where_label(part.key, _test(part.key, part.operator, part.values))
    if term.match_fields:
        by_name = core.NodeSelectorTerm(match_fields=term.match_fields)
        mask &= np.fromiter((term_matches(by_name, name, {}) for name in nodes.names), bool, len(nodes))
    return mask


def _test(key: str, operator: str, values: Sequence[str]) -> Callable[[str | None], bool]:
    """One requirement, as a question about the label's value."""
    return lambda found: requirement_matches(key, operator, values, {} if found is None else {key: found})


def _term_mistakes(path: str, term: core.NodeSelectorTerm) -> Iterator[tuple[str, str]]:
    for at, part in enumerate(term.match_expressions):
        where = f"{path}.matchExpressions[{at}]"
        if part.operator not in _OPERATORS:
            yield f"{where}.operator", f'must be one of {", ".join(_OPERATORS)}, got "{part.operator}"'
        elif part.operator in ("In", "NotIn") and not part.values:
            yield f"{where}.values", f"must be given when the operator is {part.operator}"
        elif part.operator in ("Exists", "DoesNotExist") and part.values:
            yield f"{where}.values", f"must be empty when the operator is {part.operator}"
        elif part.operator in ("Gt", "Lt") and (
            len(part.values) != 1 or not re.fullmatch(r"[+-]?[0-9]+", part.values[0])
        ):
            yield f"{where}.values", f"must be one whole number when the operator is {part.operator}"
    for at, part in enumerate(term.match_fields):
        where = f"{path}.matchFields[{at}]"
        if part.key != "metadata.name":
            yield f"{where}.key", f'only "metadata.name" can be matched, got "{part.key}"'
        if part.operator not in ("In", "NotIn") or len(part.values) != 1:
            yield f"{where}.values", "must be one name, with the operator In or NotIn"
