"""The nominator: pods that preemption nominated to a node, until they are placed or nominated elsewhere."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from mooring.framework import BoolArray, IntArray
from mooring.objects import Pod
from mooring.objects.placed import PlacedPod, placed
from mooring.state.table import NodeTable
from mooring.state.what_if_rows import Addition


@dataclass(frozen=True, slots=True)
class NominatedAhead:
    """Nominated pods that count as being on their nodes for a pod of the same or a lower priority."""

    rows: IntArray
    """Their nodes."""
    addition: Addition
    """The pods, added to these nodes."""
    has_affinity: BoolArray
    """On which of these nodes one of them has affinity to others."""


class Nominations:
    """Which pending pods are nominated to which node, each node's in the order of nomination."""

    def __init__(self) -> None:
        self._by_node: dict[str, dict[str, PlacedPod]] = {}
        self._node_of: dict[str, str] = {}
        self._ahead: dict[int, NominatedAhead] = {}
        """By priority, for pods that are not nominated themselves. Pods that follow one another see the same."""
        self._row_version = 0

    def set(self, pod: Pod, node: str) -> None:
        """The pod is nominated to this node, and to no other any more."""
        self.remove(pod.uid)
        self._ahead.clear()
        self._by_node.setdefault(node, {})[pod.uid] = placed(pod, node)
        self._node_of[pod.uid] = node

    def remove(self, uid: str) -> str | None:
        """Returns the node that the pod was nominated to."""
        node = self._node_of.pop(uid, None)
        if node is not None:
            self._ahead.clear()
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

    def ahead_of(self, pod: Pod, table: NodeTable) -> NominatedAhead:
        """The nominated pods that count for this one, on nodes of the table."""
        if pod.uid in self._node_of:
            return self._read(pod, table)
        if self._row_version != table.row_version:
            self._row_version = table.row_version
            self._ahead.clear()
        ahead = self._ahead.get(pod.priority)
        if ahead is None:
            ahead = self._ahead[pod.priority] = self._read(pod, table)
        return ahead

    def _read(self, pod: Pod, table: NodeTable) -> NominatedAhead:
        priority, own = pod.priority, pod.uid
        rows: list[int] = []
        pods: list[PlacedPod] = []
        places: list[int] = []
        has_affinity: list[bool] = []
        for name, there in self._by_node.items():
            ahead = [each for each in there.values() if each.priority >= priority and each.uid != own]
            if ahead and (view := table.get(name)) is not None:
                pods += ahead
                places += [len(rows)] * len(ahead)
                has_affinity.append(any(each.affinity is not None for each in ahead))
                rows.append(view.row)
        return NominatedAhead(
            np.array(rows, np.int64), Addition(pods, places, len(rows)), np.array(has_affinity, np.bool_)
        )
