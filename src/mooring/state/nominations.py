"""The nominator: pods that preemption nominated to a node, until they are placed or nominated elsewhere."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from mooring.objects import Pod
from mooring.objects.placed import PlacedPod, placed


class Nominations:
    """Which pending pods are nominated to which node, each node's in the order of nomination."""

    def __init__(self) -> None:
        self._by_node: dict[str, dict[str, PlacedPod]] = {}
        self._node_of: dict[str, str] = {}

    def set(self, pod: Pod, node: str) -> None:
        """The pod is nominated to this node, and to no other any more."""
        self.remove(pod.uid)
        self._by_node.setdefault(node, {})[pod.uid] = placed(pod, node)
        self._node_of[pod.uid] = node

    def remove(self, uid: str) -> str | None:
        """Returns the node that the pod was nominated to."""
        node = self._node_of.pop(uid, None)
        if node is not None:
            there = self._by_node[node]
            del there[uid]
            if not there:
                del self._by_node[node]
        return node

    def node_of(self, uid: str) -> str | None:
        return self._node_of.get(uid)

    @property
    def nodes(self) -> Collection[str]:
        """The names of the nodes that pods are nominated to."""
        return self._by_node.keys()

    def at(self, node: str) -> Sequence[PlacedPod]:
        there = self._by_node.get(node)
        return tuple(there.values()) if there else ()
