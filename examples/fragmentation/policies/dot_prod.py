"""DotProd: the node whose free CPU and GPU, times what the pod wants of each, is least."""

from __future__ import annotations

from mooring.framework import Cycle, IntArray, NodeRows, NodeView, Pod

from .best_fit import LARGEST_CPU, LARGEST_GPU
from .devices import Demand, GpuSharing, cut


class DotProd(GpuSharing):
    """Prefer nodes with little left of what the pod wants much of."""

    def score(self, pod: Pod, node: NodeView, cycle: Cycle) -> int:
        demand: Demand = cycle.filter_state(self)
        cpu = (node.free("cpu") / LARGEST_CPU) * (pod.request("cpu") / LARGEST_CPU)
        gpu = (sum(self._left(node)) / LARGEST_GPU) * (demand.total / LARGEST_GPU)
        return int(100 * (1 - 0.5 * (cpu + gpu)))

    def score_nodes(self, pod: Pod, nodes: NodeRows, cycle: Cycle) -> IntArray:
        """`score`, for many nodes at once."""
        demand: Demand = cycle.filter_state(self)
        cpu = (nodes.free("cpu") / LARGEST_CPU) * (pod.request("cpu") / LARGEST_CPU)
        gpu = (self._left_of(nodes, cycle).sum(1) / LARGEST_GPU) * (demand.total / LARGEST_GPU)
        return cut(100 * (1 - 0.5 * (cpu + gpu)))
