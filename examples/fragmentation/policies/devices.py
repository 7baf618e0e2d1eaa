"""GpuSharing: place pods on parts of GPU devices. The base of the policies, which add a score.

A node offers devices (`example.com/gpu` in its allocatable, its model in a label), each of 1,000 milli. A pod wants
some milli on each of a number of devices, by annotations; one that wants less than a whole device wants one. Which
devices it gets is written to a label of the pod when it is bound: so a restarted scheduler knows, and a pod that
ends frees them. CPU and memory are ordinary requests, left to NodeResourcesFit.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from functools import lru_cache
from typing import Any

import msgspec
import numpy as np

from mooring.framework import (
    UNRESOLVABLE,
    UNSCHEDULABLE,
    Action,
    Cycle,
    Hint,
    IntArray,
    Node,
    NodeRows,
    NodeView,
    PlacedPod,
    Plugin,
    Pod,
    Reads,
    Refusal,
    Rejection,
    Rejections,
    Skip,
)

GPU = "example.com/gpu"
MODEL = "example.com/gpu-model"
COUNT, MILLI, MODELS = "example.com/gpu-count", "example.com/gpu-milli", "example.com/gpu-models"
"""Annotations of a pod: devices, milli on each (1000 if absent), allowed models separated by a bar (any if absent)."""
DEVICES = "example.com/gpu-devices"
"""Label of a bound pod: milli on each device, then the devices: `460-3`, `1000-0-1`."""
WHOLE = 1_000

NO_DEVICES = "node(s) had too few GPU devices with enough left"
WRONG_MODEL = "node(s) had another GPU model"


class Demand(msgspec.Struct, frozen=True):
    """What a pod wants: so many devices, so many milli on each, of one of these models (None: any)."""

    count: int = 0
    milli: int = 0
    models: frozenset[str] | None = None

    @property
    def total(self) -> int:
        return self.count * self.milli

    @property
    def is_sharing(self) -> bool:
        return 0 < self.milli < WHOLE

    def allows(self, model: str | None) -> bool:
        return self.models is None or model in self.models


class Allotment(msgspec.Struct, frozen=True):
    """The devices that a pod holds, and how many milli of each."""

    milli: int
    devices: tuple[int, ...]

    def __str__(self) -> str:
        return "-".join(map(str, (self.milli, *self.devices)))


def demand_of(pod: Pod) -> Demand:
    """By its annotations; ValueError where they cannot be read."""
    annotations = pod.annotations
    return _demand(annotations.get(COUNT, "0"), annotations.get(MILLI, str(WHOLE)), annotations.get(MODELS, ""))


@lru_cache(4096)
def _demand(count: str, milli: str, models: str) -> Demand:
    if not count.isdecimal() or not milli.isdecimal():
        raise ValueError(f"{COUNT} and {MILLI} must be whole numbers, got {count!r} and {milli!r}")
    if int(count) == 0 or int(milli) == 0:
        return Demand()
    if int(milli) > WHOLE or (int(milli) < WHOLE and int(count) > 1):
        raise ValueError(f"a pod gets one part of a device or whole ones, not {milli} milli of {count}")
    return Demand(int(count), int(milli), frozenset(models.split("|")) if models else None)


@lru_cache(4096)
def allotment(label: str) -> Allotment:
    """What the label of a bound pod states."""
    milli, *devices = map(int, label.split("-"))
    return Allotment(milli, tuple(devices))


class GpuSharing(Plugin):
    """Filter by what is left on devices, and choose them: of those with room for a part, the fullest."""

    reads = Reads.PODS
    pre_filter_reads_pods = False

    def __init__(self) -> None:
        self._reserved: dict[str, Allotment] = {}
        """Of pods that are not bound yet, by uid."""

    def sign(self, pod: Pod) -> Hashable:
        return demand_of(pod), pod.request("cpu")

    def events(self) -> Iterable[Hint]:
        grown = Action.ADD | Action.UPDATE_NODE_ALLOCATABLE | Action.UPDATE_NODE_LABEL
        return [Hint(Pod, Action.DELETE, self._frees_devices), Hint(Node, grown)]

    def _frees_devices(self, pod: Pod, before: PlacedPod | Pod | None, after: PlacedPod | Pod | None) -> bool:
        return isinstance(before, PlacedPod) and DEVICES in before.labels

    def pre_filter(self, pod: Pod, cycle: Cycle) -> Demand | Skip | Refusal:
        try:
            demand = demand_of(pod)
        except ValueError as error:
            return Refusal(str(error), code=UNRESOLVABLE)
        if demand.count:
            return demand
        cycle.set_filter_state(self, demand)
        return Skip()

    def filter(self, pod: Pod, node: NodeView, cycle: Cycle) -> Rejection | None:
        demand: Demand = cycle.filter_state(self)
        is_allowed = demand.allows(node.labels.get(MODEL))
        reasons = [] if is_allowed else [WRONG_MODEL]
        if sum(left >= demand.milli for left in self._left(node)) < demand.count:
            reasons.append(NO_DEVICES)
        return Rejection(*reasons, code=UNSCHEDULABLE if is_allowed else UNRESOLVABLE) if reasons else None

    def filter_nodes(self, pod: Pod, nodes: NodeRows, cycle: Cycle) -> Iterator[Rejections]:
        """`filter`, for many nodes at once."""
        demand: Demand = cycle.filter_state(self)
        if demand.models is not None:
            yield Rejections(~nodes.where_label_in(MODEL, demand.models), WRONG_MODEL, unresolvable=True)
        have_room = np.count_nonzero(self._left_of(nodes, cycle) >= demand.milli, axis=1)
        yield Rejections(have_room < demand.count, NO_DEVICES)

    def reserve(self, pod: Pod, node: NodeView, cycle: Cycle) -> Refusal | None:
        demand: Demand = cycle.filter_state(self)
        if not demand.count:
            return None
        left = self._left(node)
        fitting = [device for device, milli in enumerate(left) if milli >= demand.milli]
        if len(fitting) < demand.count:
            return Refusal(NO_DEVICES)
        # Whole devices are taken in their order.
        devices = (self._device(pod, node, left, fitting),) if demand.is_sharing else fitting[: demand.count]
        self._reserved[pod.uid] = chosen = Allotment(demand.milli, tuple(devices))
        cycle.add_to_binding(self, labels={DEVICES: str(chosen)})
        return None

    def unreserve(self, pod: Pod, node: NodeView, cycle: Cycle) -> None:
        self._reserved.pop(pod.uid, None)

    def _device(self, pod: Pod, node: NodeView, left: list[int], fitting: list[int]) -> int:
        """The device for a pod that wants part of one, of those that have room: the one with least left."""
        return min(fitting, key=left.__getitem__)

    # What is left on devices

    def _left(self, node: NodeView) -> list[int]:
        """Milli left on each device of the node."""
        left = [WHOLE] * node.allocatable(GPU)
        for pod in node.pods:
            if (held := self._held(pod)) is not None:
                for device in held.devices:
                    left[device] -= held.milli
        return left

    def _left_of(self, nodes: NodeRows, cycle: Cycle) -> IntArray:
        """`_left`, a row for each node; devices that it does not have have 0 left."""
        width = int(cycle.nodes.allocatable(GPU).max(initial=1))

        def row(node: NodeView) -> list[int]:
            left = self._left(node)
            return left + [0] * (width - len(left))

        def rows(nodes: NodeRows) -> IntArray:
            return np.array([row(node) for node in nodes], np.int64).reshape(len(nodes), width)

        return nodes.cached((self, "left", width), rows, row)

    def _held(self, pod: PlacedPod) -> Allotment | None:
        """What the pod holds; None: no device."""
        label = pod.labels.get(DEVICES)
        if label is None:
            return self._reserved.get(pod.uid)
        self._reserved.pop(pod.uid, None)  # bound
        return allotment(label)


def cut(scores: Any) -> IntArray:
    """Scores as whole numbers, cut towards zero."""
    return np.asarray(scores, np.float64).astype(np.int64)
