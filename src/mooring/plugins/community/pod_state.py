"""PodState: favour nodes where pods are terminating, and avoid those that pods are nominated to.

The raw score is the number of terminating pods on the node less the number of pods that preemption nominated to it:
the first free resources soon, the second will use them. The incoming pod's own nomination counts too.
"""

from __future__ import annotations

import numpy as np

from mooring.framework import Cycle, IntArray, NodeRows, NodeView, Plugin, Pod, Pods
from mooring.plugins.community.go_arithmetic import MinMax


class PodState(Plugin):
    """Favour nodes with terminating pods and without nominated ones."""

    normalizer = MinMax()

    def __init__(self, pods: Pods) -> None:
        self._pods = pods

    def score(self, pod: Pod, node: NodeView, cycle: Cycle) -> int:
        return _terminating(node) - len(self._pods.nominated().get(node.name, ()))

    def score_nodes(self, pod: Pod, nodes: NodeRows, cycle: Cycle) -> IntArray:
        scores = nodes.cached(PodState, _terminating_on, _terminating).astype(np.int64)
        if nominated := self._pods.nominated():
            for place in np.flatnonzero(nodes.where_named(nominated)).tolist():
                scores[place] -= len(nominated[nodes.names[place]])
        return scores


def _terminating(node: NodeView) -> int:
    return sum(placed.is_terminating for placed in node.pods)


def _terminating_on(nodes: NodeRows) -> IntArray:
    return np.fromiter(map(_terminating, nodes), np.int64, len(nodes))
