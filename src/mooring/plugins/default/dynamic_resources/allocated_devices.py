"""Which devices are allocated already, by indexes over all ResourceClaims.

A device is allocated exclusively or shared: then each claim consumes part of its capacity. Admin access allocates
nothing. Allocations in flight (reserved, not yet written) count like those in the API server.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from mooring.framework import ClaimsInFlight, Objects
from mooring.objects.quantity import billionths
from mooring.objects.resource import AllocatedDevice, ResourceClaim
from mooring.plugins.default.dynamic_resources.features import Features
from mooring.plugins.default.dynamic_resources.resource_slices import DeviceId, PoolId

Amounts = dict[str, int]


class AllocatedDevices:
    """The devices that are allocated."""

    def __init__(self, claims: Objects[ResourceClaim], in_flight: ClaimsInFlight, features: Features) -> None:
        self._can_share = features.consumable_capacity
        self._exclusive = claims.indexed(self._exclusive_devices)
        self._shared = claims.indexed(self._shared_devices)
        self._exclusive_in_flight = in_flight.indexed(self._exclusive_devices)
        self._shared_in_flight = in_flight.indexed(self._shared_devices)

    def is_exclusively_allocated(self, device: DeviceId) -> bool:
        """Whether a claim has it exclusively."""
        return bool(self._exclusive.at(device)) or bool(self._exclusive_in_flight.at(device))

    def is_allocated(self, device: DeviceId) -> bool:
        """Whether a claim has it, or a share of it."""
        return (
            self.is_exclusively_allocated(device)
            or bool(self._shared.at(device))
            or bool(self._shared_in_flight.at(device))
        )

    def consumed(self, device: DeviceId) -> Mapping[str, int] | None:
        """How much of its capacity is consumed; None if no share of it consumes any."""
        total: Amounts | None = None
        for claim in self._sharers(device):
            for result in _results(claim):
                if _id(result) == device and self._is_share(result) and result.consumed_capacity:
                    total = {} if total is None else total
                    for name, amount in result.consumed_capacity.items():
                        total[name] = total.get(name, 0) + billionths(amount)
        return total

    def _sharers(self, device: DeviceId) -> Iterable[ResourceClaim]:
        written, in_flight = self._shared.at(device), self._shared_in_flight.at(device)
        if not in_flight:
            return written
        # The watch may deliver the written claim before the write returns: that is one share, not two.
        known = {claim.uid for claim in written}
        return [*written, *(claim for claim in in_flight if claim.uid not in known)]

    def _exclusive_devices(self, claim: ResourceClaim) -> Iterable[DeviceId]:
        return {_id(result) for result in _results(claim) if not self._is_share(result)}

    def _shared_devices(self, claim: ResourceClaim) -> Iterable[DeviceId]:
        return {_id(result) for result in _results(claim) if self._is_share(result)}

    def _is_share(self, result: AllocatedDevice) -> bool:
        return self._can_share and result.share_id is not None


class DeviceHolders:
    """The claims that hold devices of a pool, written or in flight."""

    def __init__(self, claims: Objects[ResourceClaim], in_flight: ClaimsInFlight) -> None:
        self._written = claims.indexed(_pools)
        self._in_flight = in_flight.indexed(_pools)

    def of(self, pools: Iterable[PoolId]) -> Sequence[ResourceClaim]:
        """Equal to what it was before, unless one of these claims changed."""
        found: list[ResourceClaim] = []
        for pool in pools:
            found += self._written.at(pool)
            found += self._in_flight.at(pool)
        return found


def _pools(claim: ResourceClaim) -> Iterable[PoolId]:
    return {PoolId(result.driver, result.pool) for result in _results(claim)}


def _results(claim: ResourceClaim) -> Iterator[AllocatedDevice]:
    allocation = claim.status.allocation
    return (result for result in (allocation.devices.results if allocation else ()) if not result.admin_access)


def _id(result: AllocatedDevice) -> DeviceId:
    return DeviceId(result.driver, result.pool, result.device)
