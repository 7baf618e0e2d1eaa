"""What reserve promises and unreserve takes back: devices for a pod's claims, in memory.

Until pre_bind has written them, the devices are held in flight, so that no other pod is given them.
"""

from __future__ import annotations

import msgspec

from mooring.base.errors import Fault
from mooring.framework import ClaimsInFlight
from mooring.objects.resource import Allocation, ResourceClaim
from mooring.plugins.default.dynamic_resources.features import Features
from mooring.plugins.default.dynamic_resources.state import PodClaims


def promise(state: PodClaims, node: str, in_flight: ClaimsInFlight, features: Features) -> None:
    """Hold what was found on the node for the claims that have no allocation."""
    to_allocate = [at for at, claim in enumerate(state.claims) if claim.status.allocation is None]
    found = state.found.get(node)
    if found is None:
        # The node itself may have the extended resources; claims of the pod's spec must have been found devices.
        if any(state.claims[at] is not state.special for at in to_allocate):
            raise Fault("claim allocation not found for node")
        return
    if found.extended_claim is None:
        to_allocate = [at for at in to_allocate if state.claims[at] is not state.special]
    for at, allocation in zip(to_allocate, found.allocations(node, features), strict=True):
        claim = state.claims[at]
        if claim is state.special and found.extended_claim is not None:
            if not found.extended_claim.spec.devices.requests:
                continue  # the node itself has all of them
            claim = state.claims[at] = state.special = found.extended_claim
        state.promised[at] = allocation
        state.in_flight.add(claim.uid)
        in_flight.begin(allocated(claim, allocation))


def take_back(state: PodClaims, in_flight: ClaimsInFlight) -> None:
    """Nothing of the promise is left."""
    for uid in state.in_flight:
        in_flight.end(uid)
    state.in_flight.clear()
    state.promised.clear()


def allocated(claim: ResourceClaim, allocation: Allocation) -> ResourceClaim:
    status = msgspec.structs.replace(claim.status, allocation=allocation)
    return msgspec.structs.replace(claim, status=status)
