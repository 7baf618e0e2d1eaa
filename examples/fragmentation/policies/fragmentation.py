"""Fragmentation of a node: how much of its idle GPU typical pods could not use, each weighed by how typical it is.

All idle GPU counts where a typical pod does not fit the node, or wants no GPU; otherwise what is left on devices that
have too little for it. The paper's simulator adds up kinds of reasons apart, and then the kinds. This does so in the
same order: scores are cut to whole numbers, so that the last place of a sum decides between 49 and 50.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from mooring.framework import ArgsPart, IntArray, Meta

FloatArray = NDArray[np.float64]

LACKS_BOTH, LACKS_GPU, LACKS_CPU, CPU_ONLY_FITS, CPU_ONLY_LACKS, WRONG_MODEL = range(6)
"""Kinds of reasons, in the order in which they are added up."""
KINDS = 6
MOST_KEPT = 16_384


class TypicalPod(ArgsPart):
    """A class of pods that the cluster runs."""

    cpu_milli: Annotated[int, Meta(ge=0)]
    gpu_milli: Annotated[int, Meta(ge=0, le=1000, description="Milli on each device; 0 for pods without GPU.")] = 0
    gpu_count: Annotated[int, Meta(ge=0)] = 0
    models: Annotated[str, Meta(description="Allowed models, separated by a bar; empty: any.")] = ""
    weight: Annotated[float, Meta(gt=0, le=1, description="Its share of the typical pods; all make 1.")]


class Fragmentation:
    """Measures nodes by typical pods."""

    def __init__(self, typical: Sequence[TypicalPod]) -> None:
        self._classes = [
            (each.weight, each, frozenset(each.models.split("|")) if each.models else None) for each in typical
        ]
        # The same in columns, for many nodes: a row for each class.
        self._weights = np.array([[weight] for weight, _, _ in self._classes])
        self._cpu = np.array([[each.cpu_milli] for each in typical])
        self._count = np.array([[each.gpu_count] for each in typical])
        self._is_cpu_only = np.array([[each.gpu_milli == 0] for each in typical])
        self._levels = sorted({each.gpu_milli for each in typical})
        self._level_columns = np.array(self._levels)[:, None, None]
        self._level = np.array([self._levels.index(each.gpu_milli) for each in typical], np.intp)
        named = {model for _, _, models in self._classes for model in models or ()}
        self._numbers = {model: number for number, model in enumerate(sorted(named), 1)}
        """Of models that some class names; other models have 0."""
        self._is_allowed = np.array(
            [[models is None or model in models for model in (None, *self._numbers)] for _, _, models in self._classes]
        )

        # A state of a node is measured when it is a possibility, when it is chosen and when it has come about.
        self._of = lru_cache(MOST_KEPT)(self._compute)

    def number(self, model: str | None) -> int:
        """The number by which `of_many` knows a model."""
        return self._numbers.get(model or "", 0)

    def of(self, cpu: int, left: Sequence[int], model: str | None) -> float:
        """Of a node with so much CPU and so many milli on each device left."""
        return self._of(cpu, tuple(left), model)

    def _compute(self, cpu: int, left: tuple[int, ...], model: str | None) -> float:
        idle, kinds = sum(left), [0.0] * KINDS
        have_room = {level: sum([milli >= level for milli in left]) for level in self._levels}
        for weight, pod, models in self._classes:
            lacks_cpu = cpu < pod.cpu_milli
            if not pod.gpu_milli:
                kinds[CPU_ONLY_LACKS if lacks_cpu else CPU_ONLY_FITS] += weight * idle
            elif models is not None and model not in models:
                kinds[WRONG_MODEL] += weight * idle
            elif have_room[pod.gpu_milli] < pod.gpu_count:
                kinds[LACKS_BOTH if lacks_cpu else LACKS_GPU] += weight * idle
            elif lacks_cpu:
                kinds[LACKS_CPU] += weight * idle
            else:
                kinds[LACKS_GPU] += weight * sum([milli for milli in left if milli < pod.gpu_milli])
        total = 0.0
        for kind in kinds:  # `sum` of a later Python compensates for rounding
            total += kind
        return total

    def of_many(self, cpu: IntArray, left: IntArray, models: IntArray) -> FloatArray:
        """`of`, for many nodes at once: `left` has a row for each node, `models` are their numbers."""
        nodes = len(cpu)
        left = np.ascontiguousarray(left.T)  # sums of columns take a fraction of the time of sums of short rows
        idle = left.sum(0)
        has_room = left >= self._level_columns
        have_room = has_room.sum(1, dtype=np.int32)
        too_small = idle - (left * has_room).sum(1)
        lacks_cpu = cpu < self._cpu
        lacks_gpu = have_room[self._level] < self._count
        kinds = np.where(lacks_gpu, np.where(lacks_cpu, LACKS_BOTH, LACKS_GPU), np.where(lacks_cpu, LACKS_CPU, -1))
        kinds = np.where(self._is_allowed[:, models], kinds, WRONG_MODEL)
        kinds = np.where(self._is_cpu_only, np.where(lacks_cpu, CPU_ONLY_LACKS, CPU_ONLY_FITS), kinds)
        amounts = self._weights * np.where(kinds < 0, too_small[self._level], idle)
        kinds[kinds < 0] = LACKS_GPU
        # Adds class by class, as `of` does: a row of the arrays is a class.
        cells = (kinds * nodes + np.arange(nodes)).ravel()
        sums = np.bincount(cells, amounts.ravel(), KINDS * nodes).reshape(KINDS, nodes)
        total: FloatArray = sums[0]
        for kind in sums[1:]:
            total = total + kind
        return total
