"""GpuPacking: first devices in use, then free devices of nodes in use, then free nodes.

Of devices in use, those with least left; of the others, nodes from which fewest free devices are taken.
"""

from __future__ import annotations

import numpy as np

from mooring.framework import Cycle, IntArray, NodeRows, NodeView, Pod

from .devices import GPU, WHOLE, Demand, GpuSharing

FREE_NODE, FREE_DEVICES, IN_USE = 33, 50, 100
"""The scores of each kind of node begin here. Those of the next kind are not exceeded, but for free nodes."""


class GpuPacking(GpuSharing):
    """Prefer devices that are in use."""

    def score(self, pod: Pod, node: NodeView, cycle: Cycle) -> int:
        demand: Demand = cycle.filter_state(self)
        if not demand.count:
            return 0
        left = self._left(node)
        free = left.count(WHOLE)
        if free == len(left):
            return max(FREE_NODE - free, free)
        chosen = sorted(milli for milli in left if milli >= demand.milli)[: demand.count]
        if taken := chosen.count(WHOLE):
            return max(FREE_DEVICES - taken, FREE_NODE)
        return max(IN_USE - sum(milli * 100 // WHOLE for milli in chosen) // 10, FREE_DEVICES)

    def score_nodes(self, pod: Pod, nodes: NodeRows, cycle: Cycle) -> IntArray:
        """`score`, for many nodes at once."""
        demand: Demand = cycle.filter_state(self)
        if not demand.count:
            return np.zeros(len(nodes), np.int64)
        left = self._left_of(nodes, cycle)
        free = np.count_nonzero(left == WHOLE, axis=1)
        # Devices without room sort behind all others, and where they are chosen the node is not feasible.
        chosen = np.sort(np.where(left >= demand.milli, left, 2 * WHOLE), axis=1)[:, : demand.count]
        taken = np.count_nonzero(chosen == WHOLE, axis=1)
        in_use = np.maximum(IN_USE - (chosen * 100 // WHOLE).sum(1) // 10, FREE_DEVICES)
        on_used_node = np.where(taken > 0, np.maximum(FREE_DEVICES - taken, FREE_NODE), in_use)
        scores: IntArray = np.where(free == nodes.allocatable(GPU), np.maximum(FREE_NODE - free, free), on_used_node)
        return scores
