"""Waiting in pre_bind until drivers report that the pod's devices are ready (binding conditions)."""

from __future__ import annotations

from mooring.base.clock import Clock
from mooring.base.errors import Fault
from mooring.framework import Objects, Pod, PodEvents
from mooring.objects.resource import ResourceClaim
from mooring.plugins.default.dynamic_resources.binding import (
    Readiness,
    failed_condition,
    has_conditions,
    is_overdue,
    readiness,
)
from mooring.plugins.default.dynamic_resources.counting import ERROR, FAILURE, SUCCESS, TIMEOUT, DeviceMetrics
from mooring.plugins.default.dynamic_resources.extended import IN_MEMORY
from mooring.plugins.default.dynamic_resources.state import PodClaims

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
