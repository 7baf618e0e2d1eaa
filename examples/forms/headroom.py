"""One rule in three forms: keep a twentieth of a node's CPU free, and prefer nodes with much left.

`PlainHeadroom` declares nothing, so its rule runs for every pod on every node. `SignedHeadroom` declares what it reads
of a node and of a pod, so results are kept until one of these changes. `VectorHeadroom` adds the rule for many nodes.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator

import numpy as np

from mooring.framework import Cycle, IntArray, NodeRows, NodeView, Plugin, Pod, Reads, Rejection, Rejections

TOO_LITTLE = "node(s) would have too little headroom"
KEPT_PERCENT = 5


class PlainHeadroom(Plugin):
    """Keep CPU free; declares nothing."""

    def filter(self, pod: Pod, node: NodeView, cycle: Cycle) -> Rejection | None:
        left = node.free("cpu") - pod.request("cpu")
        if left * 100 < node.allocatable("cpu") * KEPT_PERCENT:
            return Rejection(TOO_LITTLE)
        return None

    def score(self, pod: Pod, node: NodeView, cycle: Cycle) -> int:
        allocatable = node.allocatable("cpu")
        return 100 * max(0, node.free("cpu")) // allocatable if allocatable else 0


class SignedHeadroom(PlainHeadroom):
    """Keep CPU free; declares what it reads: what pods on a node request, and the CPU request of the incoming pod."""

    reads = Reads.REQUESTED

    def sign(self, pod: Pod) -> Hashable:
        return pod.request("cpu")


class VectorHeadroom(SignedHeadroom):
    """Keep CPU free; also for many nodes at once."""

    def filter_nodes(self, pod: Pod, nodes: NodeRows, cycle: Cycle) -> Iterator[Rejections]:
        left = nodes.free("cpu") - pod.request("cpu")
        yield Rejections(left * 100 < nodes.allocatable("cpu") * KEPT_PERCENT, TOO_LITTLE)

    def score_nodes(self, pod: Pod, nodes: NodeRows, cycle: Cycle) -> IntArray:
        allocatable = nodes.allocatable("cpu")
        scores: IntArray = 100 * np.maximum(0, nodes.free("cpu")) // np.maximum(1, allocatable)
        return scores
