"""NodeUnschedulable: a cordoned node takes no new pods, except those that tolerate being there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from mooring.framework import (
    UNRESOLVABLE,
    Action,
    Cycle,
    Hint,
    Node,
    NodeRows,
    NodeView,
    Plugin,
    Pod,
    Reads,
    Rejection,
    Rejections,
)
from mooring.objects.core import Taint
from mooring.objects.placement_rules import tolerations_of

CORDONED = "node(s) were unschedulable"
CORDON_TAINT = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")


class NodeUnschedulable(Plugin):
    """Refuse cordoned nodes."""

    pod_fields = ("spec.tolerations",)
    reads = Reads.NODE
    per_template = True
    reads_requests = False

    def sign(self, pod: Pod) -> bool:
        return _tolerates_cordon(pod)

    def events(self) -> Iterable[Hint]:
        return [
            Hint(Node, Action.ADD | Action.UPDATE_NODE_TAINT, self._node_opened, per_template=True),
            Hint(Pod, Action.UPDATE_POD_TOLERATION, self._now_tolerates, per_template=True),
        ]

    def filter(self, pod: Pod, node: NodeView, cycle: Cycle) -> Rejection | None:
        if node.is_unschedulable and not _tolerates_cordon(pod):
            return Rejection(CORDONED, code=UNRESOLVABLE)
        return None

    def filter_nodes(self, pod: Pod, nodes: NodeRows, cycle: Cycle) -> Iterator[Rejections]:
        """`filter`, for many nodes at once."""
        if not _tolerates_cordon(pod):
            yield Rejections(nodes.is_unschedulable, CORDONED, unresolvable=True)

    def _node_opened(self, pod: Pod, before: Node | None, after: Node) -> bool:
        was_open = before is not None and not before.spec.unschedulable
        return not after.spec.unschedulable and not was_open

    def _now_tolerates(self, pod: Pod, before: Pod, after: Pod) -> bool:
        return after.uid == pod.uid and _tolerates_cordon(after)


def _tolerates_cordon(pod: Pod) -> bool:
    return bool(pod.spec.tolerations) and tolerations_of(pod).cover(CORDON_TAINT)
