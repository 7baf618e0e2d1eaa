"""GpuClustering: pods that want as many GPUs go together; among such nodes, the one with least GPU left.

Pods are of one class if they share a device, or if they want the same number of whole ones.
"""

from __future__ import annotations

import numpy as np

from mooring.framework import Cycle, IntArray, NodeRows, NodeView, Pod

from .best_fit import LARGEST_GPU
from .devices import WHOLE, Demand, GpuSharing

ALONE, AMONG_OTHERS, EMPTY, OTHERS = 75, 50, 25, 0
"""What a node gets whose GPU pods are all of the pod's class; some of them; if there are none; if all are others."""


class GpuClustering(GpuSharing):
    """Prefer nodes with pods of the same class."""

    def score(self, pod: Pod, node: NodeView, cycle: Cycle) -> int:
        demand: Demand = cycle.filter_state(self)
        if not demand.count:
            return 0
        bit, present = _class(demand.milli, demand.count), self._classes(node)
        company = EMPTY if not present else ALONE if present == bit else AMONG_OTHERS if present & bit else OTHERS
        return 25 * (LARGEST_GPU - sum(self._left(node))) // LARGEST_GPU + company

    def score_nodes(self, pod: Pod, nodes: NodeRows, cycle: Cycle) -> IntArray:
        """`score`, for many nodes at once."""
        demand: Demand = cycle.filter_state(self)
        if not demand.count:
            return np.zeros(len(nodes), np.int64)
        bit, present = _class(demand.milli, demand.count), nodes.cached((self, "classes"), self._all, self._classes)
        cases = [present == 0, present == bit, present & bit != 0]
        company = np.select(cases, [EMPTY, ALONE, AMONG_OTHERS], OTHERS)
        scores: IntArray = 25 * (LARGEST_GPU - self._left_of(nodes, cycle).sum(1)) // LARGEST_GPU + company
        return scores

    def _classes(self, node: NodeView) -> int:
        """The classes of the pods on the node, a bit for each."""
        classes = 0
        for pod in node.pods:
            if (held := self._held(pod)) is not None:
                classes |= _class(held.milli, len(held.devices))
        return classes

    def _all(self, nodes: NodeRows) -> IntArray:
        return np.array([self._classes(node) for node in nodes], np.int64)


def _class(milli: int, devices: int) -> int:
    return 1 << devices if milli == WHOLE else 1
