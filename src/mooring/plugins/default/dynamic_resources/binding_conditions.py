"""Binding conditions: what a driver must report about allocated devices before a pod may be bound to them.

`BindingConditionsWait` waits for them in pre_bind.
"""

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

SUCCESS, FAILURE, TIMEOUT, ERROR = "success", "failure", "timeout", "error"
POLL_SECONDS = 5.0
PENDING = "BindingConditionsPending"
TIMED_OUT = "device binding timeout"


class Readiness(Enum):
    READY = "every device has reported what its binding waits for"
    WAITING = "some have not yet"
    FAILED = "one will never be ready"


def readiness(claim: ResourceClaim) -> Readiness:
    """Whether the claim's devices meet their binding conditions, by what drivers report."""
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
    """Reason and message of the first binding failure condition that is true."""
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


class _BindingFailed(Fault):
    """A driver reports a binding failure condition."""


class _BindingTimedOut(Fault):
    """Binding conditions were not met in time."""


class BindingConditionsWait:
    """Polls the claims until their binding conditions are met.

    After a failure or the timeout, the next attempt allocates other devices.
    """

    def __init__(
        self,
        claims: Objects[ResourceClaim],
        events: PodEvents,
        clock: Clock,
        timeout_seconds: float,
        metrics: Metrics,
    ) -> None:
        self._claims = claims
        self._events = events
        self._clock = clock
        self._timeout_seconds = timeout_seconds
        labels = ("profile", "driver", "status")
        self._allocations = metrics.counter(
            "scheduler_dra_bindingconditions_allocations_total", "Allocations with binding conditions.", *labels
        )
        self._wait_seconds = metrics.histogram(
            "scheduler_dra_bindingconditions_wait_duration_seconds", "Waiting for binding conditions.", *labels
        )

    async def wait(self, pod: Pod, state: PodClaims, node: str) -> None:
        if not any(has_conditions(claim) for claim in state.claims):
            return
        note = f"waiting for binding conditions for device on node {node}"
        self._events.record(pod, reason=PENDING, action="Scheduling", note=note)
        began, status = self._clock.monotonic(), ERROR
        try:
            await self._until_ready(state, began + self._timeout_seconds)
            status = SUCCESS
        except _BindingFailed:
            status = FAILURE
            raise
        except _BindingTimedOut:
            status = TIMEOUT
            raise
        finally:
            self._observe(pod, state.claims, status, self._clock.monotonic() - began)

    def _observe(self, pod: Pod, claims: Iterable[ResourceClaim], status: str, seconds: float) -> None:
        """As kube-scheduler: the duration for every device, the result for each that has binding conditions."""
        for claim in claims:
            for result in claim.status.allocation.devices.results if claim.status.allocation is not None else ():
                labels = {"profile": pod.spec.scheduler_name, "driver": result.driver, "status": status}
                self._wait_seconds.observe(seconds, **labels)
                if result.binding_conditions:
                    self._allocations.inc(**labels)

    async def _until_ready(self, state: PodClaims, end: float) -> None:
        while not self._are_ready(state):
            left = end - self._clock.monotonic()
            await self._clock.sleep(min(POLL_SECONDS, left))
            if left <= POLL_SECONDS:
                raise _BindingTimedOut(f"{TIMED_OUT}: context deadline exceeded")

    def _are_ready(self, state: PodClaims) -> bool:
        for at, known in enumerate(state.claims):
            if known.name == IN_MEMORY:
                continue
            claim = self._claims.get(known.name, known.namespace)
            if claim is None:
                raise Fault(f'could not find ResourceClaim "{known.key}"')
            state.claims[at] = claim
            if known is state.extended_claim:
                state.extended_claim = claim
            if not self._is_ready(claim):
                return False
        return True

    def _is_ready(self, claim: ResourceClaim) -> bool:
        if claim.status.allocation is None:
            return False
        ready = readiness(claim)
        if ready is Readiness.FAILED:
            raise _BindingFailed(f"device binding failed: claim={claim.name}, {failed_condition(claim)}")
        if ready is Readiness.WAITING and is_overdue(claim, self._clock.now(), self._timeout_seconds):
            raise _BindingTimedOut(f"{TIMED_OUT}: claim={claim.name}")
        return ready is Readiness.READY
