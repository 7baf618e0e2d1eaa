"""NodeDeclaredFeatures: a pod that needs a recent feature of the kubelet runs only where the kubelet declares it.

Nodes list what they can do in `status.declaredFeatures`. What a pod needs shows in its spec; in v1.36 two of the
features can be needed for scheduling.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from mooring.framework import (
    UNRESOLVABLE,
    Action,
    Cycle,
    FeatureGates,
    Hint,
    Node,
    NodeRows,
    NodeView,
    PlacedPod,
    Plugin,
    Pod,
    Reads,
    Rejection,
    Rejections,
    Skip,
)

NOT_DECLARED = "node(s) didn't match Pod's required features"

RESTART_ALL = "RestartAllContainersOnContainerExits"
USER_NAMESPACES_ON_HOST_NETWORK = "UserNamespacesHostNetworkSupport"


class NodeDeclaredFeatures(Plugin):
    """Refuse nodes that do not declare a feature that the pod needs."""

    missing_state_message = 'error reading "{}" from cycle-state: not found'
    reads = Reads.NODE
    per_template = True
    reads_requests = False
    pre_filter_reads_pods = False

    def __init__(self, gates: FeatureGates) -> None:
        self._is_on = gates.on("NodeDeclaredFeatures")

    def sign(self, pod: Pod) -> frozenset[str]:
        return needed_features(pod)

    def events(self) -> Iterable[Hint]:
        if not self._is_on:
            return []
        return [
            Hint(Node, Action.ADD | Action.UPDATE_NODE_DECLARED_FEATURE, self._features_changed, per_template=True),
            Hint(Pod, Action.UPDATE, self._needs_changed, per_template=True),
        ]

    def pre_filter(self, pod: Pod, cycle: Cycle) -> frozenset[str] | Skip:
        """The features that the pod needs."""
        return (self._is_on and needed_features(pod)) or Skip()

    def filter(self, pod: Pod, node: NodeView, cycle: Cycle) -> Rejection | None:
        if not self._is_on or cycle.filter_state(self).issubset(node.declared_features):
            return None
        return Rejection(NOT_DECLARED, code=UNRESOLVABLE)

    def filter_nodes(self, pod: Pod, nodes: NodeRows, cycle: Cycle) -> Iterator[Rejections]:
        """`filter`, for many nodes at once."""
        if self._is_on:
            needed = cycle.filter_state(self)
            lacking = nodes.where_features(lambda declared: not needed.issubset(declared))
            yield Rejections(lacking, NOT_DECLARED, unresolvable=True)

    def _features_changed(self, pod: Pod, before: Node | None, after: Node) -> bool:
        return before is None or before.status.declared_features != after.status.declared_features

    def _needs_changed(self, pod: Pod, before: Pod | PlacedPod, after: Pod | PlacedPod) -> bool:
        if not isinstance(before, Pod) or not isinstance(after, Pod) or after.uid != pod.uid:
            return False
        return needed_features(before) != needed_features(after)


def needed_features(pod: Pod) -> frozenset[str]:
    """The features without which a kubelet could not run the pod as specified."""
    spec = pod.spec
    needed = set()
    for container in (*spec.containers, *spec.init_containers):
        for rule in container.restart_policy_rules:
            if rule.action == "RestartAllContainers":
                needed.add(RESTART_ALL)
    if spec.host_network and spec.host_users is False:
        needed.add(USER_NAMESPACES_ON_HOST_NETWORK)
    return frozenset(needed)
