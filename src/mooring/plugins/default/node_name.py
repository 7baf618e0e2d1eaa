"""NodeName: a pod that names its node runs there or nowhere."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

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

OTHER_NODE = "node(s) didn't match the requested node name"


class NodeName(Plugin):
    """Refuse every node but the one that `spec.nodeName` names."""

    reads = Reads.NODE
    per_template = True
    reads_requests = False

    def sign(self, pod: Pod) -> str:
        return pod.spec.node_name

    def events(self) -> Iterable[Hint]:
        return [Hint(Node, Action.ADD)]

    def filter(self, pod: Pod, node: NodeView, cycle: Cycle) -> Rejection | None:
        if pod.spec.node_name in ("", node.name):
            return None
        return Rejection(OTHER_NODE, code=UNRESOLVABLE)

    def filter_nodes(self, pod: Pod, nodes: NodeRows, cycle: Cycle) -> Iterator[Rejections]:
        """`filter`, for many nodes at once."""
        if wanted := pod.spec.node_name:
            is_other = np.fromiter((name != wanted for name in nodes.names), bool, len(nodes))
            yield Rejections(is_other, OTHER_NODE, unresolvable=True)
