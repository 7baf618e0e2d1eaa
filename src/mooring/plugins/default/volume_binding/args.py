"""Arguments of VolumeBinding."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

from mooring.framework import Args, Meta
from mooring.plugins.default.resource_scores import UtilizationShapePoint, shape_mistakes

DEFAULT_SHAPE = (UtilizationShapePoint(utilization=0, score=10), UtilizationShapePoint(utilization=100, score=0))
"""The emptier the storage, the better."""


class VolumeBindingArgs(Args):
    """Arguments of VolumeBinding."""

    bind_timeout_seconds: Annotated[
        int, Meta(description="How long a pod waits for its volumes to be bound or made before it is tried again.")
    ] = 600
    shape: Annotated[
        list[UtilizationShapePoint],
        Meta(
            description="Score by how much of the storage would be used; needs the feature gate StorageCapacityScoring."
        ),
    ] = []

    def mistakes(self) -> Iterable[tuple[str, str]]:
        if self.bind_timeout_seconds < 0:
            yield "bindTimeoutSeconds", f"must be 0 or more, got {self.bind_timeout_seconds}"
        yield from shape_mistakes(self.shape, "shape")
