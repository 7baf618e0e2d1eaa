"""The rule: required terms refuse nodes, preferred ones make them better or worse.

"Near" and "away" are about topology domains: the nodes that share a value of the term's topology key. A node is
refused, in this order, when

- it lacks a topology key of the pod's required affinity, or no pod that matches all those terms is in its domain of
  each key; unless there is no such pod anywhere and the pod matches its own terms: one has to be the first;
- a pod that the pod's required anti-affinity selects is in its domain;
- a pod whose own required anti-affinity selects the incoming pod is in its domain.

The score of a node is the sum, over the pods in its domain, of the weights of preferred terms: of the pod's own terms
that select them, and of theirs that select the pod. Their required affinity counts too, by `hardPodAffinityWeight`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated

import msgspec
import numpy as np

from mooring.base.errors import Fault
from mooring.framework import (
    UNRESOLVABLE,
    Action,
    Args,
    BoolArray,
    Cycle,
    DomainCounts,
    Hint,
    IntArray,
    Meta,
    Node,
    NodeRows,
    NodeView,
    Objects,
    Plugin,
    Pod,
    Reads,
    Refusal,
    Rejection,
    Rejections,
    Skip,
    TermKind,
)
from mooring.framework.normalizers import HIGHEST_SCORE
from mooring.objects.core import Namespace
from mooring.plugins.default.inter_pod_affinity.affinity_terms import IncomingPodTermReader
from mooring.plugins.default.inter_pod_affinity.queueing_hints import node_may_help, pod_may_help

NOT_NEAR = "node(s) didn't match pod affinity rules"
NOT_AWAY = "node(s) didn't match pod anti-affinity rules"
NOT_WANTED = "node(s) didn't satisfy existing pods anti-affinity rules"


class InterPodAffinityArgs(Args):
    """Arguments of InterPodAffinity."""

    hard_pod_affinity_weight: Annotated[
        int,
        Meta(ge=0, le=100, description="What required affinity of a pod in the domain adds to the score; 0: nothing."),
    ] = 1
    ignore_preferred_terms_of_existing_pods: Annotated[
        bool, Meta(description="Whether a pod without preferred terms of its own is not scored at all.")
    ] = False


class FilterState(msgspec.Struct, frozen=True):
    """What filters read: which pods are in which domain."""

    near: Sequence[DomainCounts]
    """Per topology key of required affinity: the pods that match all its terms."""
    is_first: bool
    """Whether there is no such pod anywhere, and the incoming pod matches these terms itself."""
    anti_affinity: Sequence[DomainCounts]
    """The pods that its anti-affinity selects."""
    existing_anti_affinity: Sequence[DomainCounts]
    """The pods whose anti-affinity selects it."""


class BetweenExtremes(msgspec.Struct, frozen=True):
    """The lowest becomes 0 and the highest 100; if they are equal, all become 0."""

    def measure(self, lowest: int, highest: int) -> tuple[int, int]:
        return lowest, highest

    def scale(self, scores: IntArray, measure: tuple[int, int]) -> IntArray:
        lowest, highest = measure
        if lowest == highest:
            return np.zeros_like(scores)
        # In Go's order of floating-point operations, and cut off, not rounded.
        scaled: IntArray = (HIGHEST_SCORE * ((scores - lowest) / (highest - lowest))).astype(np.int64)
        return scaled


class InterPodAffinity(Plugin):
    """Enforce and prefer pod affinity and anti-affinity: of the pod, and of pods that run already."""

    pod_fields = ("spec.affinity.podAffinity", "spec.affinity.podAntiAffinity")
    missing_state_message = 'error reading "{}" from cycleState: not found'
    reads = Reads.DOMAIN
    normalizer = BetweenExtremes()

    def __init__(self, args: InterPodAffinityArgs, namespaces: Objects[Namespace]) -> None:
        self._hard_weight = args.hard_pod_affinity_weight
        self._ignores_others = args.ignore_preferred_terms_of_existing_pods
        self._terms = IncomingPodTermReader(namespaces)

    def events(self) -> Iterable[Hint]:
        return [
            Hint(Pod, Action.ADD | Action.UPDATE_POD_LABEL | Action.DELETE, pod_may_help, per_template=True),
            Hint(Node, Action.ADD | Action.UPDATE_NODE_LABEL, node_may_help, per_template=True),
        ]

    def pre_filter(self, pod: Pod, cycle: Cycle) -> FilterState | Skip | Refusal:
        terms = self._terms.of(pod)
        if terms.mistake is not None:
            return Refusal(f"parsing pod: {terms.mistake}", code=UNRESOLVABLE)
        carriers = cycle.existing_affinity_terms(TermKind.REQUIRED_ANTI_AFFINITY, self._terms.namespace_labels(pod))
        existing_anti_affinity = [counts for _, counts in carriers if counts.total] if carriers else ()
        if not existing_anti_affinity and not terms.near_keys and not terms.away:
            return Skip()
        near = [cycle.tally(terms.near, key) for key in terms.near_keys]
        is_nowhere = bool(near)
        for counts in near:
            is_nowhere = is_nowhere and not counts.total
        return FilterState(
            near,
            is_first=is_nowhere and self._matches_itself(pod),
            anti_affinity=[cycle.tally(where, key) for where, key in terms.away],
            existing_anti_affinity=existing_anti_affinity,
        )

    def _matches_itself(self, pod: Pod) -> bool:
        """Whether the incoming pod matches its own terms of required affinity."""
        return self._terms.of(pod).near.matches(pod.namespace, pod.labels)

    def filter(self, pod: Pod, node: NodeView, cycle: Cycle) -> Rejection | None:
        state: FilterState = cycle.filter_state(self)
        for counts in state.near:
            here = counts.at(node)
            if here is None or (not here and not state.is_first):
                return Rejection(NOT_NEAR, code=UNRESOLVABLE)
        if any(counts.at(node) for counts in state.anti_affinity):
            return Rejection(NOT_AWAY)
        if any(counts.at(node) for counts in state.existing_anti_affinity):
            return Rejection(NOT_WANTED)
        return None

    def filter_nodes(self, pod: Pod, nodes: NodeRows, cycle: Cycle) -> Iterator[Rejections]:
        """`filter`, for many nodes at once."""
        state: FilterState = cycle.filter_state(self)
        far = [counts.lacking(nodes) if state.is_first else _absent(counts, nodes) for counts in state.near]
        return _rejections(state, nodes, far, [counts for counts in state.anti_affinity if counts.total])

    def filter_nodes_in_what_if(self, pod: Pod, nodes: NodeRows, cycle: Cycle) -> Iterator[Rejections]:
        state: FilterState = cycle.filter_state(self)
        far = [_absent(counts, nodes) for counts in state.near]
        if state.near and self._matches_itself(pod):
            is_first = np.logical_and.reduce([np.equal(counts.total_at(nodes), 0) for counts in state.near])
            far = [counts.lacking(nodes) | (absent & ~is_first) for counts, absent in zip(state.near, far, strict=True)]
        return _rejections(state, nodes, far, state.anti_affinity)

    def pre_score(self, pod: Pod, feasible: NodeRows, cycle: Cycle) -> Sequence[tuple[DomainCounts, int]] | Skip:
        terms = self._terms.of(pod)
        if terms.mistake is not None:
            raise Fault(f"failed to parse pod: {terms.mistake}")
        if self._ignores_others and not terms.preferred:
            return Skip()
        weights: dict[DomainCounts, int] = {}
        for where, key, weight in terms.preferred:
            selected = cycle.tally(where, key)
            weights[selected] = weights.get(selected, 0) + weight
        labels = self._terms.namespace_labels(pod)
        if self._hard_weight:
            for _, counts in cycle.existing_affinity_terms(TermKind.REQUIRED_AFFINITY, labels):
                weights[counts] = self._hard_weight
        for term, counts in cycle.existing_affinity_terms(TermKind.PREFERRED_AFFINITY, labels):
            weights[counts] = term.weight
        for term, counts in cycle.existing_affinity_terms(TermKind.PREFERRED_ANTI_AFFINITY, labels):
            weights[counts] = -term.weight
        if not weights:
            return Skip()
        # No term selects a pod: no score. But weights that cancel out are a score, of 0.
        return [(counts, weight) for counts, weight in weights.items() if counts.total] or Skip()

    def score(self, pod: Pod, node: NodeView, cycle: Cycle) -> int:
        return sum(weight * (counts.at(node) or 0) for counts, weight in cycle.score_state(self))

    def score_nodes(self, pod: Pod, nodes: NodeRows, cycle: Cycle) -> IntArray:
        """`score`, for many nodes at once."""
        scores: IntArray | None = None
        for counts, weight in cycle.score_state(self):
            here = _weighed(counts, weight, nodes)
            scores = here if scores is None else np.add(scores, here, out=scores)
        assert scores is not None, "without anything to count, pre_score skips"
        return scores


def _weighed(counts: DomainCounts, weight: int, nodes: NodeRows) -> IntArray:
    return counts.compute(nodes, lambda here: here * weight)


def _rejections(
    state: FilterState, nodes: NodeRows, far: list[BoolArray], anti_affinity: Sequence[DomainCounts]
) -> Iterator[Rejections]:
    """`far`: where required affinity is not met, by each topology key."""
    refused: BoolArray | None = None
    for reason, masks in (
        (NOT_NEAR, far),
        (NOT_AWAY, [_present(counts, nodes) for counts in anti_affinity]),
        (NOT_WANTED, [_present(counts, nodes) for counts in state.existing_anti_affinity]),
    ):
        if masks:
            mask = masks[0] if len(masks) == 1 else np.logical_or.reduce(masks)
            mask, refused = (mask, mask) if refused is None else (mask & ~refused, mask | refused)
            yield Rejections(mask, reason, unresolvable=reason is NOT_NEAR)


def _absent(counts: DomainCounts, nodes: NodeRows) -> BoolArray:
    return counts.compute(nodes, lambda here: here == 0)


def _present(counts: DomainCounts, nodes: NodeRows) -> BoolArray:
    return counts.compute(nodes, lambda here: here > 0)
