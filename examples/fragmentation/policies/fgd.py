"""FGD, Fragmentation Gradient Descent: the node and device on which the pod adds least fragmentation.

Weng et al., "Beware of Fragmentation: Scheduling GPU-Sharing Workloads with Fragmentation Gradient Descent", USENIX
ATC'23. Which pods are typical is an argument.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Annotated

import numpy as np

from mooring.framework import Args, Cycle, IntArray, Meta, NodeRows, NodeView, Pod

from .devices import MODEL, WHOLE, Demand, GpuSharing, cut, demand_of
from .fragmentation import FloatArray, Fragmentation, TypicalPod


class FGDArgs(Args):
    """Arguments of FGD."""

    typical_pods: Annotated[list[TypicalPod], Meta(description="The classes of pods that the cluster runs.")] = []

    def mistakes(self) -> Iterable[tuple[str, str]]:
        if not self.typical_pods:
            yield "typicalPods", "must name at least one class of pods"


class FGD(GpuSharing):
    """Prefer nodes that the pod fragments least."""

    def __init__(self, args: FGDArgs) -> None:
        super().__init__()
        self._fragmentation = Fragmentation(args.typical_pods)

    def score(self, pod: Pod, node: NodeView, cycle: Cycle) -> int:
        demand: Demand = cycle.filter_state(self)
        cpu, left, model = node.free("cpu"), self._left(node), node.labels.get(MODEL)
        now = self._fragmentation.of(cpu, left, model)
        afterwards = [
            self._fragmentation.of(cpu - pod.request("cpu"), then, model) for then in _placements(demand, left)
        ]
        return max((_score(now - then) for then in afterwards), default=0)

    def score_nodes(self, pod: Pod, nodes: NodeRows, cycle: Cycle) -> IntArray:
        """`score`, for many nodes at once; 0 where the pod has no room."""
        demand: Demand = cycle.filter_state(self)
        cpu = nodes.free("cpu") - pod.request("cpu")
        # Which device has how much left makes no difference.
        left = np.sort(self._left_of(nodes, cycle), axis=1)
        has_room = (left >= max(1, demand.milli)) & (cpu >= 0)[:, None]
        if demand.is_sharing:
            has_room[:, 1:] &= left[:, 1:] != left[:, :-1]  # of devices alike, one
            places, devices = has_room.nonzero()
            then = left[places]
            then[np.arange(len(places)), devices] -= demand.milli
        else:
            [places] = ((np.count_nonzero(has_room, axis=1) >= demand.count) & (cpu >= 0)).nonzero()
            then = left[places]
            then[:, then.shape[1] - demand.count :] -= WHOLE if demand.count else 0
        scores = np.zeros(len(nodes), np.int64)
        if len(places):
            models = nodes.label_numbers(MODEL, self._fragmentation.number)
            afterwards = self._fragmentation.of_many(cpu[places], then, models[places])
            difference = self._now(nodes, cycle)[places] - afterwards
            np.maximum.at(scores, places, cut(100 / (1 + np.exp(-difference / WHOLE))))
        return scores

    def _device(self, pod: Pod, node: NodeView, left: list[int], fitting: list[int]) -> int:
        """The first of those on which the score is best. The pod's CPU is taken already."""
        cpu, model = node.free("cpu"), node.labels.get(MODEL)
        now = self._fragmentation.of(cpu + pod.request("cpu"), left, model)
        afterwards = [self._fragmentation.of(cpu, then, model) for then in _placements(demand_of(pod), left)]
        return max(zip(fitting, afterwards, strict=True), key=lambda each: _score(now - each[1]))[0]

    def _now(self, nodes: NodeRows, cycle: Cycle) -> FloatArray:
        """The fragmentation of each node."""

        def one(node: NodeView) -> float:
            return self._fragmentation.of(node.free("cpu"), self._left(node), node.labels.get(MODEL))

        def many(nodes: NodeRows) -> FloatArray:
            models = nodes.label_numbers(MODEL, self._fragmentation.number)
            return self._fragmentation.of_many(nodes.free("cpu"), self._left_of(nodes, cycle), models)

        return nodes.cached((self, "fragmentation"), many, one)


def _placements(demand: Demand, left: list[int]) -> Iterator[list[int]]:
    """What would be left on the devices, for each way to place the pod."""
    if demand.is_sharing:
        for device, milli in enumerate(left):
            if milli >= demand.milli:
                yield [*left[:device], milli - demand.milli, *left[device + 1 :]]
        return
    free = [device for device, milli in enumerate(left) if milli == WHOLE][: demand.count]
    if len(free) == demand.count:
        yield [0 if device in free else milli for device, milli in enumerate(left)]


def _score(less: float) -> int:
    """100 times the logistic function of how much less fragmented the node would be, in devices."""
    return int(100 / (1 + math.exp(-less / WHOLE)))
