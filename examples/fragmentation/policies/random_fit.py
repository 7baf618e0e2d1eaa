"""Random: any node that passes, and any device with room, with equal chance."""

from __future__ import annotations

import random

from mooring.framework import Args, Cycle, IntArray, NodeRows, NodeView, Pod

from .devices import GpuSharing


class RandomArgs(Args):
    """Arguments of Random."""

    seed: int = 0


class Random(GpuSharing):
    """Place pods at random."""

    def __init__(self, args: RandomArgs) -> None:
        super().__init__()
        self._random = random.Random(args.seed)

    def pre_score(self, pod: Pod, feasible: NodeRows, cycle: Cycle) -> int:
        """The row of the node that is drawn."""
        return int(feasible.rows[self._random.randrange(len(feasible))])

    def score(self, pod: Pod, node: NodeView, cycle: Cycle) -> int:
        return 100 if node.row == cycle.score_state(self) else 0

    def score_nodes(self, pod: Pod, nodes: NodeRows, cycle: Cycle) -> IntArray:
        """`score`, for many nodes at once."""
        scores: IntArray = 100 * (nodes.rows == cycle.score_state(self))
        return scores

    def _device(self, pod: Pod, node: NodeView, left: list[int], fitting: list[int]) -> int:
        return self._random.choice(fitting)
