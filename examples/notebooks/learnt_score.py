"""LearntScore: keep nodes free for large pods, by a model of how long a node stays occupied.

`model` is a JSON file with a regression tree, as `tuning.ipynb` trains and writes it. From the free CPU and memory of a
node, as shares of what it offers, and its number of pods the tree predicts in how many seconds a large pod will fit.
The score is 100, less a point for every `secondsPerPoint` that the pod adds to that time.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

from msgspec import Meta

from mooring.framework import Args, Cycle, NodeView, Plugin, Pod, Reads


class LearntScoreArgs(Args):
    model: Annotated[str, Meta(min_length=1, description="Path of the tree, as JSON.")]
    seconds_per_point: Annotated[float, Meta(gt=0, description="Additional seconds that cost a point.")] = 10.0


class LearntScore(Plugin):
    """Prefer nodes that are occupied for long anyway."""

    reads = Reads.PODS

    def __init__(self, args: LearntScoreArgs) -> None:
        self._tree = json.loads(Path(args.model).read_text(encoding="utf-8"))
        self._seconds_per_point = args.seconds_per_point

    def score(self, pod: Pod, node: NodeView, cycle: Cycle) -> int:
        cpu, memory, pods = node.free("cpu"), node.free("memory"), len(node.pods)
        before = self._seconds(node, cpu, memory, pods)
        after = self._seconds(node, cpu - pod.request("cpu"), memory - pod.request("memory"), pods + 1)
        return max(0, min(100, round(100 - (after - before) / self._seconds_per_point)))

    def _seconds(self, node: NodeView, cpu: int, memory: int, pods: int) -> float:
        return predicted(self._tree, (cpu / node.allocatable("cpu"), memory / node.allocatable("memory"), pods))


def predicted(tree: dict[str, list[float]], features: tuple[float, ...]) -> float:
    """What the tree returns: entries of its lists are its nodes, the first is the root, and a leaf has no children."""
    at = 0
    while (left := int(tree["left"][at])) >= 0:
        is_left = features[int(tree["feature"][at])] <= tree["threshold"][at]
        at = left if is_left else int(tree["right"][at])
    return tree["value"][at]
