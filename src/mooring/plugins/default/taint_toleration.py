"""TaintToleration: keep pods off nodes whose taints they do not tolerate, and prefer nodes with fewer soft taints.

A NoSchedule or NoExecute taint that no toleration covers refuses the node. Of the PreferNoSchedule taints, those that
nothing tolerates are counted against it.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence

import msgspec

from mooring.framework import (
    UNRESOLVABLE,
    Action,
    Cycle,
    FeatureGates,
    Hint,
    IntArray,
    Log,
    Node,
    NodeRows,
    NodeView,
    Plugin,
    Pod,
    Reads,
    Rejection,
    Rejections,
    ToMax,
)
from mooring.objects.core import Taint
from mooring.objects.placement_rules import Tolerations, tolerations_of

UNTOLERATED = "node(s) had untolerated taint(s)"
SOFT = "PreferNoSchedule"

_encode = msgspec.msgpack.Encoder().encode


class TaintToleration(Plugin):
    """Refuse nodes with untolerated taints; prefer those with fewer soft ones."""

    pod_fields = ("spec.tolerations",)
    reads = Reads.NODE
    per_template = True
    reads_requests = False
    normalizer = ToMax(reverse=True)

    def __init__(self, gates: FeatureGates, log: Log) -> None:
        self._compare_numbers = gates.on("TaintTolerationComparisonOperators")
        self._log = log

    def sign(self, pod: Pod) -> Hashable:
        return _encode(pod.spec.tolerations) if pod.spec.tolerations else ()

    def events(self) -> Iterable[Hint]:
        return [
            Hint(Node, Action.ADD | Action.UPDATE_NODE_TAINT, self._became_tolerable, per_template=True),
            Hint(Pod, Action.UPDATE_POD_TOLERATION, self._is_this_pod, per_template=True),
        ]

    def filter(self, pod: Pod, node: NodeView, cycle: Cycle) -> Rejection | None:
        taint = self._untolerated(pod, node.taints)
        if taint is None:
            return None
        if detail := self._log.v(4):
            detail.info("node had untolerated taint", node=node.name, pod=pod, untoleratedTaint=taint)
        return Rejection(UNTOLERATED, code=UNRESOLVABLE)

    def filter_nodes(self, pod: Pod, nodes: NodeRows, cycle: Cycle) -> Iterator[Rejections]:
        """`filter`, for many nodes at once."""
        mask = nodes.where_taints(lambda taints: self._untolerated(pod, taints) is not None)
        yield Rejections(mask, UNTOLERATED, unresolvable=True)

    def pre_score(self, pod: Pod, feasible: NodeRows, cycle: Cycle) -> Tolerations:
        return tolerations_of(pod)

    def score(self, pod: Pod, node: NodeView, cycle: Cycle) -> int:
        return self._untolerated_soft(node.taints, cycle.score_state(self))

    def score_nodes(self, pod: Pod, nodes: NodeRows, cycle: Cycle) -> IntArray:
        """`score`, for many nodes at once."""
        tolerations = cycle.score_state(self)
        return nodes.count_taints(lambda taints: self._untolerated_soft(taints, tolerations))

    def _untolerated(self, pod: Pod, taints: Sequence[Taint]) -> Taint | None:
        return tolerations_of(pod).first_uncovered(taints, compare_numbers=self._compare_numbers)

    def _untolerated_soft(self, taints: Sequence[Taint], tolerations: Tolerations) -> int:
        return sum(
            taint.effect == SOFT and not tolerations.cover(taint, compare_numbers=self._compare_numbers)
            for taint in taints
        )

    def _became_tolerable(self, pod: Pod, before: Node | None, after: Node) -> bool:
        was = before is not None and self._untolerated(pod, before.spec.taints) is None
        return not was and self._untolerated(pod, after.spec.taints) is None

    def _is_this_pod(self, pod: Pod, before: Pod, after: Pod) -> bool:
        return after.uid == pod.uid
