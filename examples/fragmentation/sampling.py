"""What a run is measured by: GPU in use and fragmentation, after every arrival; and its curves over arrived demand.

The published value at a load is the mean of all samples whose arrived demand, in whole percent of the cluster's GPUs,
is that load.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from mooring.objects import Pod
from mooring.simulator.importers.openb import OpenbNode

from .policies.devices import DEVICES, WHOLE, allotment, demand_of
from .policies.fragmentation import Fragmentation

LOADS = range(131)
"""In percent."""
METRICS = ("alloc", "frag", "frag_ratio")
"""GPU in use, and fragmented, of all; fragmented of what is idle. In percent."""


class Ledger:
    """What is left on nodes, and how fragmented it is: from the pods that are bound and end."""

    def __init__(self, nodes: Sequence[OpenbNode], fragmentation: Fragmentation) -> None:
        self._fragmentation = fragmentation
        self._places = {node.name: place for place, node in enumerate(nodes)}
        self._models = [node.model for node in nodes]
        self._cpu = [node.cpu_milli for node in nodes]
        self._left = [[WHOLE] * node.num_gpu for node in nodes]
        self.capacity = WHOLE * sum(node.num_gpu for node in nodes)
        self.used = 0
        self._fragmented = np.array([self._of(place) for place in range(len(nodes))])

    def bound(self, pod: Pod) -> None:
        self._move(pod, 1)

    def ended(self, pod: Pod) -> None:
        self._move(pod, -1)

    @property
    def fragmented(self) -> float:
        return float(self._fragmented.sum())

    def _move(self, pod: Pod, sign: int) -> None:
        place = self._places[pod.spec.node_name]
        self._cpu[place] -= sign * pod.requests.amounts["cpu"]
        if label := pod.labels.get(DEVICES):
            held = allotment(label)
            for device in held.devices:
                self._left[place][device] -= sign * held.milli
                if not 0 <= self._left[place][device] <= WHOLE:
                    raise AssertionError(f"device {device} of {pod.spec.node_name} is given to too many pods")
                self.used += sign * held.milli
        self._fragmented[place] = self._of(place)

    def _of(self, place: int) -> float:
        return self._fragmentation.of(self._cpu[place], self._left[place], self._models[place])


class Sampler:
    """Takes a sample after every arrival; `decided` and `bound` are given to the simulation."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._arrived = 0
        self._samples: list[tuple[int, int, float]] = []

    def decided(self, pod: Pod, *_: Any) -> None:
        """A pod has arrived; what became of those before it can be measured."""
        self._sample()
        self._arrived += demand_of(pod).total

    def bound(self, pod: Pod, _: float) -> None:
        self._ledger.bound(pod)

    def finish(self) -> Samples:
        self._sample()
        return Samples(self._ledger.capacity, *(np.array(column) for column in zip(*self._samples[1:], strict=True)))

    def _sample(self) -> None:
        self._samples.append((self._arrived, self._ledger.used, self._ledger.fragmented))


class Samples(msgspec.Struct, frozen=True):
    """After each arrival, in milli."""

    capacity: int
    arrived: NDArray[Any]
    used: NDArray[Any]
    fragmented: NDArray[Any]

    def curves(self) -> dict[str, list[float]]:
        """Each metric at all loads."""
        percent = self.capacity / 100
        idle = np.maximum(self.capacity - self.used, 1)
        loads = np.rint(self.arrived / percent)
        return {
            "alloc": _means(loads, np.round(self.used / percent, 2)),
            "frag": _means(loads, self.fragmented / percent),
            "frag_ratio": _means(loads, np.round(100 * self.fragmented / idle, 2)),
        }


def _means(loads: NDArray[Any], values: NDArray[Any]) -> list[float]:
    """The mean at each load; where there is no sample, of those around it. NaN: there are none either."""
    means = []
    for load in LOADS:
        here = values[loads == load]
        if not len(here):
            here = values[np.abs(loads - load) <= 1]
        means.append(float(np.round(np.mean(here), 2)) if len(here) else float("nan"))
    return means
