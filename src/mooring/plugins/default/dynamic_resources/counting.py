"""What kube-scheduler counts of devices: claims that were made, and how long binding conditions took."""

from __future__ import annotations

from collections.abc import Iterable

from mooring.framework import Metrics, Pod
from mooring.objects.resource import ResourceClaim
from mooring.plugins.default.dynamic_resources.binding import has_conditions

SUCCESS, FAILURE, TIMEOUT, ERROR = "success", "failure", "timeout", "error"


class DeviceMetrics:
    """kube-scheduler's own metrics, by their names."""

    def __init__(self, metrics: Metrics) -> None:
        labels = ("profile", "driver", "status")
        self._created = metrics.counter("scheduler_resourceclaim_creates_total", "ResourceClaims made.", "status")
        self._allocations = metrics.counter(
            "scheduler_dra_bindingconditions_allocations_total", "Allocations with binding conditions.", *labels
        )
        self._seconds = metrics.histogram(
            "scheduler_dra_bindingconditions_wait_duration_seconds", "Waiting for binding conditions.", *labels
        )

    def created(self, *, is_done: bool) -> None:
        self._created.inc(status=SUCCESS if is_done else FAILURE)

    def waited(self, pod: Pod, claims: Iterable[ResourceClaim], status: str, seconds: float) -> None:
        """Of every device the time, and of each that has conditions the end, under its driver's name."""
        for claim in claims:
            if claim.status.allocation is None:
                continue
            for result in claim.status.allocation.devices.results:
                labels = {"profile": pod.spec.scheduler_name, "driver": result.driver, "status": status}
                self._seconds.observe(seconds, **labels)
                if has_conditions(claim) and result.binding_conditions:
                    self._allocations.inc(**labels)
