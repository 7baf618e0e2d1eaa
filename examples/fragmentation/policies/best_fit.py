"""BestFit: the node on which least CPU and GPU is left once the pod is there, each as a share of the largest node."""

from __future__ import annotations

from mooring.framework import Cycle, IntArray, NodeRows, NodeView, Pod

from .devices import Demand, GpuSharing, cut

LARGEST_CPU, LARGEST_GPU = 128_000, 8_000
"""What the largest node of the paper's cluster has, in milli."""


class BestFit(GpuSharing):
    """Prefer nodes that the pod fills up."""

    def score(self, pod: Pod, node: NodeView, cycle: Cycle) -> int:
        demand: Demand = cycle.filter_state(self)
        cpu = node.free("cpu") - pod.request("cpu")
        gpu = sum(self._left(node)) - demand.total
        return int(100 * (1 - (0.5 * cpu / LARGEST_CPU + 0.5 * gpu / LARGEST_GPU)))

    def score_nodes(self, pod: Pod, nodes: NodeRows, cycle: Cycle) -> IntArray:
        """`score`, for many nodes at once."""
        demand: Demand = cycle.filter_state(self)
        cpu = nodes.free("cpu") - pod.request("cpu")
        gpu = self._left_of(nodes, cycle).sum(1) - demand.total
        return cut(100 * (1 - (0.5 * cpu / LARGEST_CPU + 0.5 * gpu / LARGEST_GPU)))
