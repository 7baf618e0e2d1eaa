"""Binding conditions: what a driver must report about allocated devices before a pod may be bound to them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import datetime
from enum import Enum

from mooring.base.clock import Clock
from mooring.base.errors import Fault
from mooring.framework import Metrics, Objects, Pod, PodEvents
from mooring.objects.resource import AllocatedDevice, DeviceStatus, ResourceClaim
from mooring.plugins.default.dynamic_resources.extended_resources import IN_MEMORY
from mooring.plugins.default.dynamic_resources.pod_claims import PodClaims


class Readiness(Enum):
    READY = "every device has reported what its binding waits for"
    WAITING = "some have not yet"
    FAILED = "one will never be ready"


def readiness(claim: ResourceClaim) -> Readiness:
    """What drivers say about the claim's devices, looked at in order."""
    for result in _conditional(claim):
        status = _status_of(claim, result)
        if status is None:
            return Readiness.WAITING
        if any(_is_true(status, condition) for condition in result.binding_failure_conditions):
            return Readiness.FAILED
        if not all(_is_true(status, condition) for condition in result.binding_conditions):
            return Readiness.WAITING
    return Readiness.READY


def failed_condition(claim: ResourceClaim) -> str:
    """Why a claim's devices will not be ready, in the words of the first that says so."""
    for result in _conditional(claim):
        status = _status_of(claim, result)
        for condition in status.conditions if status is not None else ():
            if condition.type in result.binding_failure_conditions and condition.status == "True":
                return f"reason={condition.reason}, message={json.dumps(condition.message, ensure_ascii=False)}"
    return ""


def has_conditions(claim: ResourceClaim) -> bool:
    return bool(_conditional(claim))


def is_overdue(claim: ResourceClaim, now: float, timeout_seconds: float) -> bool:
    """Whether devices with binding conditions were allocated longer ago than they may take."""
    allocation = claim.status.allocation
    if allocation is None or allocation.allocation_timestamp is None or not _conditional(claim):
        return False
    return datetime.fromisoformat(allocation.allocation_timestamp).timestamp() + timeout_seconds < now


def _conditional(claim: ResourceClaim) -> list[AllocatedDevice]:
    allocation = claim.status.allocation
    return [result for result in allocation.devices.results if result.binding_conditions] if allocation else []


def _status_of(claim: ResourceClaim, result: AllocatedDevice) -> DeviceStatus | None:
    wanted = result.driver, result.pool, result.device
    return next((each for each in claim.status.devices if (each.driver, each.pool, each.device) == wanted), None)


def _is_true(status: DeviceStatus, condition: str) -> bool:
    return any(each.type == condition and each.status == "True" for each in status.conditions)


SUCCESS, FAILURE, TIMEOUT, ERROR = "success", "failure", "timeout", "error"


class DeviceMetrics:
    """kube-scheduler's own metrics, by their names."""

    def __init__(self, metrics: Metrics) -> None:
        labels = ("profile", "driver", "status")
        self._created = metrics.counter("scheduler_resourceclaim_creates_total", "ResourceClaims created.", "status")
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


POLL_SECONDS = 5.0
PENDING = "BindingConditionsPending"
TIMED_OUT = "device binding timeout"


class _Failed(Fault):
    """A driver says that it cannot be done."""


class _TimedOut(Fault):
    """No driver says anything."""


class Preparation:
    """Looks at the claims again and again. After a failure or the timeout, the next attempt finds other devices."""

    def __init__(
        self,
        claims: Objects[ResourceClaim],
        events: PodEvents,
        clock: Clock,
        timeout_seconds: float,
        metrics: DeviceMetrics,
    ) -> None:
        self._claims = claims
        self._events = events
        self._clock = clock
        self._timeout_seconds = timeout_seconds
        self._metrics = metrics

    async def wait(self, pod: Pod, state: PodClaims, node: str) -> None:
        if not any(has_conditions(claim) for claim in state.claims):
            return
        note = f"waiting for binding conditions for device on node {node}"
        self._events.record(pod, reason=PENDING, action="Scheduling", note=note)
        began, status = self._clock.monotonic(), ERROR
        try:
            await self._until_ready(state, began + self._timeout_seconds)
            status = SUCCESS
        except _Failed:
            status = FAILURE
            raise
        except _TimedOut:
            status = TIMEOUT
            raise
        finally:
            self._metrics.waited(pod, state.claims, status, self._clock.monotonic() - began)

    async def _until_ready(self, state: PodClaims, end: float) -> None:
        while not self._are_ready(state):
            left = end - self._clock.monotonic()
            await self._clock.sleep(min(POLL_SECONDS, left))
            if left <= POLL_SECONDS:
                raise _TimedOut(f"{TIMED_OUT}: context deadline exceeded")

    def _are_ready(self, state: PodClaims) -> bool:
        for at, known in enumerate(state.claims):
            if known.name == IN_MEMORY:
                continue
            claim = self._claims.get(known.name, known.namespace)
            if claim is None:
                raise Fault(f'could not find ResourceClaim "{known.key}"')
            state.claims[at] = claim
            if known is state.special:
                state.special = claim
            if not self._is_ready(claim):
                return False
        return True

    def _is_ready(self, claim: ResourceClaim) -> bool:
        if claim.status.allocation is None:
            return False
        ready = readiness(claim)
        if ready is Readiness.FAILED:
            raise _Failed(f"device binding failed: claim={claim.name}, {failed_condition(claim)}")
        if ready is Readiness.WAITING and is_overdue(claim, self._clock.now(), self._timeout_seconds):
            raise _TimedOut(f"{TIMED_OUT}: claim={claim.name}")
        return ready is Readiness.READY
