"""policy/v1: PodDisruptionBudgets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import msgspec

from mooring.objects.meta import Kind, KubeObject
from mooring.objects.read_only import EMPTY, seal
from mooring.objects.selectors import LabelSelector
from mooring.objects.wire import Wire


class PodDisruptionBudgetSpec(Wire):
    selector: LabelSelector | None = None


class PodDisruptionBudgetStatus(Wire):
    disruptions_allowed: int = 0
    disrupted_pods: Mapping[str, str | None] = EMPTY
    """Pods whose eviction was admitted and has not been counted yet: name → when."""

    def __post_init__(self) -> None:
        seal(self, "disrupted_pods")


class PodDisruptionBudget(KubeObject, group="policy", version="v1", plural="poddisruptionbudgets"):
    """How many of the pods that it selects may be evicted now."""

    KIND: ClassVar[Kind]

    spec: PodDisruptionBudgetSpec = msgspec.field(default_factory=PodDisruptionBudgetSpec)
    status: PodDisruptionBudgetStatus = msgspec.field(default_factory=PodDisruptionBudgetStatus)
