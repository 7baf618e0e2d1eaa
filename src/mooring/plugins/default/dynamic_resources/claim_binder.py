"""What pre_bind writes: the finalizer, the allocation and the pod, or its group, as a user of each claim.

On a conflict the claim is read and written again, a few times. An allocation by another client ends the attempt, unless
it has the same devices: then another pod of the group has written it. When a
write gets no response, the devices stay in flight until a read returns whether it happened.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence
from typing import TypeVar
from weakref import WeakValueDictionary

import msgspec

from mooring.base.clock import Clock, timestamp
from mooring.base.errors import ApiError, Fault
from mooring.base.retry import Backoff, Retry, poll
from mooring.framework import ClaimsInFlight, ClaimWriter, Metrics, Objects, Pod
from mooring.objects.core import ContainerExtendedResourceRequest
from mooring.objects.resource import Allocation, ConsumerReference, ResourceClaim
from mooring.plugins.default.dynamic_resources.extended_resources import IN_MEMORY
from mooring.plugins.default.dynamic_resources.features import Features
from mooring.plugins.default.dynamic_resources.group_claims import pod_consumer
from mooring.plugins.default.dynamic_resources.pod_claims import PodClaims, allocated, is_in_use_by

TRIES, PAUSE_SECONDS = 5, 0.01
MOST_WRITERS = 32
"""Claims that are written at the same time. Without a limit, thousands of pods would all send their first request
before any sends its last, and all be bound at the end. A client has 64 requests in flight: the others are for
bindings."""
WATCH_SECONDS = 120.0
UNKNOWN_WRITE_SECONDS = 120.0
BACKOFF = Backoff(initial_seconds=0.01, limit_seconds=1.0)
T = TypeVar("T")


class ClaimBinder:
    """Writes the claims of pods, one after the other."""

    def __init__(
        self,
        writer: ClaimWriter,
        claims: Objects[ResourceClaim],
        in_flight: ClaimsInFlight,
        clock: Clock,
        features: Features,
        metrics: Metrics,
    ) -> None:
        self._writer = writer
        self._claims = claims
        self._in_flight = in_flight
        self._clock = clock
        self._features = features
        self._turn = asyncio.Semaphore(MOST_WRITERS)
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        """By uid of the claim: pods that share it write one after the other, so that none meets a conflict."""
        self._creates = metrics.counter("scheduler_resourceclaim_creates_total", "ResourceClaims created.", "status")

    async def bind(self, pod: Pod, state: PodClaims, at: int, node: str) -> None:
        """Write the claim of this index. The state then holds the written claim, so that unreserve finds it."""
        if state.claims[at] is not state.extended_claim:
            async with self._lock(state.claims[at]), self._turn:
                state.claims[at] = await self._reserve(pod, state, at)
        elif at not in state.allocations:
            return  # the node itself has the pod's extended resources
        else:
            async with self._turn:
                await self._create(pod, state, at)
                state.claims[at] = state.extended_claim = await self._reserve(pod, state, at)
                await self._write_pod_status(pod, state.claims[at], state.found[node].mappings)
            await self._wait_for_watch(state.claims[at])
        self._written(state, state.claims[at])

    def _lock(self, claim: ResourceClaim) -> asyncio.Lock:
        return self._locks.setdefault(claim.uid, asyncio.Lock())

    async def _create(self, pod: Pod, state: PodClaims, at: int) -> None:
        """Create the claim for extended resources; its devices are in flight under its own uid from then on."""
        claim = state.claims[at]
        if claim.name != IN_MEMORY:
            return
        try:
            made = await _with_context(
                f"create claim for extended resources {claim.namespace}/",
                self._writer.create(claim, generate_name=f"{pod.name}-extended-resources-"),
            )
        except Fault:
            self._creates.inc(status="failure")
            raise
        self._creates.inc(status="success")
        self._in_flight.begin(allocated(made, state.allocations[at]), pod.uid)
        state.in_flight.add(made.uid)
        self._written(state, claim)
        state.claims[at] = state.extended_claim = made

    def _written(self, state: PodClaims, claim: ResourceClaim) -> None:
        self._in_flight.written(claim.uid)
        state.in_flight.discard(claim.uid)

    async def resolve_unknown_writes(self, state: PodClaims) -> None:
        """Read claims whose write got no response, until the API server responds or the timeout ends.

        Until then the devices stay in flight: if they were released and the write had succeeded, two claims would hold
        them.
        """
        end, retry = self._clock.monotonic() + UNKNOWN_WRITE_SECONDS, Retry(BACKOFF, self._clock)
        while state.unknown_writes and self._clock.monotonic() < end:
            at = min(state.unknown_writes)
            try:
                await self._read_back(state, at)
                state.unknown_writes.discard(at)
            except Fault:
                await retry.wait()

    async def _read_back(self, state: PodClaims, at: int) -> None:
        claim = state.claims[at]
        try:
            found = await self._writer.read(claim)
        except ApiError as error:
            if error.code != 404:
                raise
            return
        if found.uid == claim.uid:
            state.claims[at] = found
            if claim is state.extended_claim:
                state.extended_claim = found

    async def _reserve(self, pod: Pod, state: PodClaims, at: int) -> ResourceClaim:
        claim, allocation = self._latest(state.shared.get(at, state.claims[at])), state.allocations.get(at)
        user = state.consumers[at] if at < len(state.consumers) else pod_consumer(pod)
        state.unknown_writes.add(at)
        try:
            written = await self._try(claim, pod, user, allocation)
        except Fault as fault:
            if not _is_outcome_unknown(fault):
                state.unknown_writes.discard(at)
            raise
        state.unknown_writes.discard(at)
        return written

    def _latest(self, claim: ResourceClaim) -> ResourceClaim:
        """What another pod of the group has written meanwhile, if it has."""
        cached = self._claims.get(claim.name, claim.namespace)
        return cached if cached is not None and cached.uid == claim.uid else claim

    async def _try(
        self, claim: ResourceClaim, pod: Pod, user: ConsumerReference, allocation: Allocation | None
    ) -> ResourceClaim:
        for tries_left in reversed(range(TRIES)):
            try:
                return await self._write(claim, pod, user, allocation)
            except Fault as fault:
                if not tries_left or not _is_conflict(fault):
                    raise
            await self._clock.sleep(PAUSE_SECONDS)
            before = claim
            claim = await _with_context(f"get updated claim {claim.key} after conflict", self._writer.read(claim))
            if claim.uid != before.uid:
                raise Fault(f"claim {claim.key} got deleted in the meantime")
        raise AssertionError("the last try returns or raises")

    async def _write(
        self, claim: ResourceClaim, pod: Pod, user: ConsumerReference, allocation: Allocation | None
    ) -> ResourceClaim:
        if claim.metadata.deletion_timestamp is not None:
            raise Fault(f"claim {claim.key} got deleted in the meantime")
        if allocation is not None and claim.status.allocation is not None:
            if not _has_same_devices(claim.status.allocation, allocation):
                raise Fault(f"claim {claim.key} got allocated elsewhere in the meantime")
            allocation = None
        if is_in_use_by(claim, pod, self._features):
            return claim
        if allocation is not None:
            # A claim may not be deleted while it holds devices: protected first, then allocated.
            claim = await _with_context(f"add finalizer to claim {claim.key}", self._writer.add_finalizer(claim))
        what = "allocation and reservation" if allocation is not None else "reservation"
        return await _with_context(
            f"add {what} to claim {claim.key}",
            self._writer.write_reserved_for(
                self._used(claim, user, allocation), with_allocation=allocation is not None
            ),
        )

    def _used(self, claim: ResourceClaim, user: ConsumerReference, allocation: Allocation | None) -> ResourceClaim:
        """The claim to write: allocated, and reserved for this user too."""
        allocation = allocation or claim.status.allocation
        if self._features.binding_conditions:
            if allocation is None:
                raise Fault(f"claim {claim.key} got deallocated elsewhere in the meantime")
            if allocation.allocation_timestamp is None:
                now = timestamp(self._clock.now())
                allocation = msgspec.structs.replace(allocation, allocation_timestamp=now)
        status = msgspec.structs.replace(
            claim.status, allocation=allocation, reserved_for=(*claim.status.reserved_for, user)
        )
        return msgspec.structs.replace(claim, status=status)

    async def _write_pod_status(
        self, pod: Pod, claim: ResourceClaim, mappings: Sequence[ContainerExtendedResourceRequest]
    ) -> None:
        await _with_context(
            f"update pod {pod.key} ExtendedResourceClaimStatus",
            self._writer.write_extended_claim(pod, claim, mappings),
        )

    async def _wait_for_watch(self, claim: ResourceClaim) -> None:
        """A claim that we created stays in flight until the watch delivers it with its devices."""
        await poll(lambda: self._is_in_cache(claim), BACKOFF, self._clock, seconds=WATCH_SECONDS)

    def _is_in_cache(self, claim: ResourceClaim) -> bool:
        cached = self._claims.get(claim.name, claim.namespace)
        return cached is not None and cached.uid == claim.uid and cached.status.allocation is not None


async def _with_context(operation: str, request: Awaitable[T]) -> T:
    """A fault names the operation that failed."""
    try:
        return await request
    except Fault as fault:
        raise Fault(f"{operation}: {fault}") from fault


def _has_same_devices(one: Allocation, other: Allocation) -> bool:
    return _devices(one) == _devices(other)


def _devices(allocation: Allocation) -> list[tuple[str, str, str, str, str | None]]:
    return [
        (result.request, result.driver, result.pool, result.device, result.share_id)
        for result in allocation.devices.results
    ]


def _is_outcome_unknown(fault: Fault) -> bool:
    """Whether the write may have happened although it failed."""
    cause = fault.__cause__
    if isinstance(cause, ApiError):
        return cause.code >= 500
    return isinstance(cause, Fault)


def _is_conflict(fault: Fault) -> bool:
    cause = fault.__cause__
    return isinstance(cause, ApiError) and cause.code == 409 and cause.reason == "Conflict"
