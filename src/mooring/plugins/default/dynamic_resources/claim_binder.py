"""What pre_bind writes: the finalizer, the allocation and the pod as a user of each claim.

Somebody else may have changed a claim meanwhile; then it is read again and tried again, a few times. An allocation of
somebody else ends the attempt. When an answer is lost, the devices stay taken until it is known what became of them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from typing import TypeVar

import msgspec

from mooring.base.clock import Clock, timestamp
from mooring.base.errors import ApiError, Fault
from mooring.base.retry import Backoff, Retry, poll
from mooring.framework import ClaimsInFlight, ClaimWriter, Objects, Pod
from mooring.objects.core import ContainerExtendedResourceRequest
from mooring.objects.resource import Allocation, ConsumerReference, ResourceClaim
from mooring.plugins.default.dynamic_resources.binding_conditions import DeviceMetrics
from mooring.plugins.default.dynamic_resources.extended_resources import IN_MEMORY
from mooring.plugins.default.dynamic_resources.features import Features
from mooring.plugins.default.dynamic_resources.pod_claims import PodClaims, allocated

TRIES, PAUSE_SECONDS = 5, 0.01
SHOWN_SECONDS = 120.0
BACKOFF = Backoff(initial_seconds=0.01, limit_seconds=1.0)
DOUBT_SECONDS = 120.0
T = TypeVar("T")


class ClaimBinding:
    """Writes the claims of pods, one after the other."""

    def __init__(
        self,
        writer: ClaimWriter,
        claims: Objects[ResourceClaim],
        in_flight: ClaimsInFlight,
        clock: Clock,
        features: Features,
        metrics: DeviceMetrics,
    ) -> None:
        self._writer = writer
        self._claims = claims
        self._in_flight = in_flight
        self._clock = clock
        self._features = features
        self._metrics = metrics

    async def bind(self, pod: Pod, state: PodClaims, at: int, node: str) -> None:
        """Write the claim in this place. What was written stands in the state, so that unreserve finds it."""
        if state.claims[at] is not state.special:
            state.claims[at] = await self._reserve(pod, state, at)
        elif at not in state.promised:
            return  # the node itself has the pod's extended resources
        else:
            await self._create(pod, state, at)
            state.claims[at] = state.special = await self._reserve(pod, state, at)
            await self._tell_pod(pod, state.claims[at], state.found[node].mappings)
            await self._until_shown(state.claims[at])
        self._written(state, state.claims[at])

    async def _create(self, pod: Pod, state: PodClaims, at: int) -> None:
        """Make the claim for extended resources; its devices are held in its own name from then on."""
        claim = state.claims[at]
        if claim.name != IN_MEMORY:
            return
        try:
            made = await _saying(
                f"create claim for extended resources {claim.namespace}/",
                self._writer.create(claim, generate_name=f"{pod.name}-extended-resources-"),
            )
        except Fault:
            self._metrics.created(is_done=False)
            raise
        self._metrics.created(is_done=True)
        self._in_flight.begin(allocated(made, state.promised[at]))
        state.in_flight.add(made.uid)
        self._written(state, claim)
        state.claims[at] = state.special = made

    def _written(self, state: PodClaims, claim: ResourceClaim) -> None:
        self._in_flight.end(claim.uid)
        state.in_flight.discard(claim.uid)

    async def settle(self, state: PodClaims) -> None:
        """Learn what became of writes whose answers were lost, from whoever answers first: the server or our patience.

        Until then the devices stay promised: if they were let go and the write had succeeded, two claims would hold
        them.
        """
        end, retry = self._clock.monotonic() + DOUBT_SECONDS, Retry(BACKOFF, self._clock)
        while state.in_doubt and self._clock.monotonic() < end:
            at = min(state.in_doubt)
            try:
                await self._learn(state, at)
                state.in_doubt.discard(at)
            except Fault:
                await retry.wait()

    async def _learn(self, state: PodClaims, at: int) -> None:
        claim = state.claims[at]
        try:
            found = await self._writer.read(claim)
        except ApiError as error:
            if error.code != 404:
                raise
            return
        if found.uid == claim.uid:
            state.claims[at] = found
            if claim is state.special:
                state.special = found

    async def _reserve(self, pod: Pod, state: PodClaims, at: int) -> ResourceClaim:
        claim, allocation = state.claims[at], state.promised.get(at)
        state.in_doubt.add(at)
        try:
            written = await self._try(claim, pod, allocation)
        except Fault as fault:
            if not _is_lost(fault):
                state.in_doubt.discard(at)
            raise
        state.in_doubt.discard(at)
        return written

    async def _try(self, claim: ResourceClaim, pod: Pod, allocation: Allocation | None) -> ResourceClaim:
        for tries_left in reversed(range(TRIES)):
            try:
                return await self._write(claim, pod, allocation)
            except Fault as fault:
                if not tries_left or not _is_conflict(fault):
                    raise
            await self._clock.sleep(PAUSE_SECONDS)
            before = claim
            claim = await _saying(f"get updated claim {claim.key} after conflict", self._writer.read(claim))
            if claim.uid != before.uid:
                raise Fault(f"claim {claim.key} got deleted in the meantime")
        raise AssertionError("the last try returns or raises")

    async def _write(self, claim: ResourceClaim, pod: Pod, allocation: Allocation | None) -> ResourceClaim:
        if claim.metadata.deletion_timestamp is not None:
            raise Fault(f"claim {claim.key} got deleted in the meantime")
        if allocation is not None:
            if claim.status.allocation is not None:
                raise Fault(f"claim {claim.key} got allocated elsewhere in the meantime")
            # A claim may not be deleted while it holds devices: protected first, then allocated.
            claim = await _saying(f"add finalizer to claim {claim.key}", self._writer.add_finalizer(claim))
        words = "allocation and reservation" if allocation is not None else "reservation"
        return await _saying(
            f"add {words} to claim {claim.key}",
            self._writer.write_reserved_for(self._used(claim, pod, allocation), with_allocation=allocation is not None),
        )

    def _used(self, claim: ResourceClaim, pod: Pod, allocation: Allocation | None) -> ResourceClaim:
        """The claim as it is to be: allocated, and reserved for the pod too."""
        allocation = allocation or claim.status.allocation
        if self._features.binding_conditions:
            if allocation is None:
                raise Fault(f"claim {claim.key} got deallocated elsewhere in the meantime")
            if allocation.allocation_timestamp is None:
                now = timestamp(self._clock.now())
                allocation = msgspec.structs.replace(allocation, allocation_timestamp=now)
        user = ConsumerReference(resource="pods", name=pod.name, uid=pod.uid)
        status = msgspec.structs.replace(
            claim.status, allocation=allocation, reserved_for=[*claim.status.reserved_for, user]
        )
        return msgspec.structs.replace(claim, status=status)

    async def _tell_pod(
        self, pod: Pod, claim: ResourceClaim, mappings: Sequence[ContainerExtendedResourceRequest]
    ) -> None:
        await _saying(
            f"update pod {pod.key} ExtendedResourceClaimStatus",
            self._writer.write_extended_claim(pod, claim, mappings),
        )

    async def _until_shown(self, claim: ResourceClaim) -> None:
        """A claim that we made is held in flight until the watch shows it with its devices."""
        await poll(lambda: self._is_shown(claim), BACKOFF, self._clock, seconds=SHOWN_SECONDS)

    def _is_shown(self, claim: ResourceClaim) -> bool:
        shown = self._claims.get(claim.name, claim.namespace)
        return shown is not None and shown.uid == claim.uid and shown.status.allocation is not None


async def _saying(words: str, answer: Awaitable[T]) -> T:
    """A failure says what was tried."""
    try:
        return await answer
    except Fault as fault:
        raise Fault(f"{words}: {fault}") from fault


def _is_lost(fault: Fault) -> bool:
    """Whether what was asked may have been done all the same."""
    cause = fault.__cause__
    if isinstance(cause, ApiError):
        return cause.code >= 500
    return isinstance(cause, Fault)


def _is_conflict(fault: Fault) -> bool:
    cause = fault.__cause__
    return isinstance(cause, ApiError) and cause.code == 409 and cause.reason == "Conflict"
