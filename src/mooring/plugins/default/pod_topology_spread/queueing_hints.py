"""What may help a pod that its hard spread constraints refused: other pods that they count, and nodes' labels."""

from __future__ import annotations

from mooring.framework import Action, Hint, Node, PlacedPod, Pod
from mooring.objects.selectors import Labels
from mooring.plugins.default.pod_topology_spread.constraints import ConstraintReader, SpreadConstraints

_PODS = Action.ADD | Action.UPDATE_POD_LABEL | Action.UPDATE_POD_TOLERATION | Action.DELETE
_NODES = Action.ADD | Action.DELETE | Action.UPDATE_NODE_LABEL | Action.UPDATE_NODE_TAINT

SeenPod = Pod | PlacedPod


class Hints:
    """Queueing hints of PodTopologySpread. Constraints that cannot be read raise: the pod is requeued."""

    def __init__(self, constraints: ConstraintReader) -> None:
        self._constraints = constraints

    def listed(self) -> list[Hint]:
        per_template = self._constraints.hard_per_template
        return [
            Hint(Pod, _PODS, self.pod_changed, per_template=per_template),
            Hint(Node, _NODES, self.node_changed, per_template=per_template),
        ]

    def pod_changed(self, pod: Pod, before: SeenPod | None, after: SeenPod | None) -> bool:
        if not all(_is_involved(other, pod) for other in (before, after) if other is not None):
            return False
        constraints = self._constraints.hard(pod)
        if before is None or after is None:
            labels = before.labels if before is not None else after.labels if after is not None else {}
            return any(constraint.selects(labels) for constraint in constraints)
        if _tolerates_otherwise(pod, before, after) and any(constraint.minds_taints for constraint in constraints):
            return True
        return any(constraint.selects(before.labels) != constraint.selects(after.labels) for constraint in constraints)

    def node_changed(self, pod: Pod, before: Node | None, after: Node | None) -> bool:
        constraints = self._constraints.hard(pod)
        had_all = before is not None and _has_every_key(before.labels, constraints)
        has_all = after is not None and _has_every_key(after.labels, constraints)
        if before is None or after is None:
            return had_all or has_all
        if had_all != has_all:
            return True
        return has_all and (
            any(before.labels.get(each.key) != after.labels.get(each.key) for each in constraints)
            or before.spec.taints != after.spec.taints
        )


def _is_involved(other: SeenPod, pod: Pod) -> bool:
    """Whether the other pod is this one, or one that may count for it: on a node or promised one."""
    if other.uid == pod.uid:
        return True
    if isinstance(other, Pod) and not other.spec.node_name and not other.status.nominated_node_name:
        return False
    return other.namespace == pod.namespace


def _tolerates_otherwise(pod: Pod, before: SeenPod, after: SeenPod) -> bool:
    return (
        after.uid == pod.uid
        and isinstance(before, Pod)
        and isinstance(after, Pod)
        and before.spec.tolerations != after.spec.tolerations
    )


def _has_every_key(labels: Labels, constraints: SpreadConstraints) -> bool:
    return all(constraint.key in labels for constraint in constraints)
