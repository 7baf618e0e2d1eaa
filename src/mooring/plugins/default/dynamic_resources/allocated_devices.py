"""Which devices claims hold already, found by standing indexes over all claims.

A device is held alone, or shared: then its holders consume parts of its capacity. Access for administration holds
nothing. What is promised to a claim and not written yet counts as if it were.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from mooring.framework import ClaimsInFlight, Objects
from mooring.objects.quantity import billionths
from mooring.objects.resource import AllocatedDevice, ResourceClaim
from mooring.plugins.default.dynamic_resources.features import Features
from mooring.plugins.default.dynamic_resources.resource_slices import DeviceId

Amounts = dict[str, int]


class InUse:
    """The devices that are allocated."""

    def __init__(self, claims: Objects[ResourceClaim], in_flight: ClaimsInFlight, features: Features) -> None:
        self._can_share = features.consumable_capacity
        self._held = claims.indexed(self._held_alone)
        self._shared = claims.indexed(self._held_by_share)
        self._promised = in_flight.indexed(self._held_alone)
        self._shares_promised = in_flight.indexed(self._held_by_share)

    def is_held(self, device: DeviceId) -> bool:
        """Whether a claim has it for itself."""
        return bool(self._held.at(device)) or bool(self._promised.at(device))

    def is_allocated(self, device: DeviceId) -> bool:
        """Whether a claim has it, or a share of it."""
        return self.is_held(device) or bool(self._shared.at(device)) or bool(self._shares_promised.at(device))

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
        shown, promised = self._shared.at(device), self._shares_promised.at(device)
        if not promised:
            return shown
        # The watch may show what we wrote before we are told that it is written: that is one share, not two.
        known = {claim.uid for claim in shown}
        return [*shown, *(claim for claim in promised if claim.uid not in known)]

    def _held_alone(self, claim: ResourceClaim) -> Iterable[DeviceId]:
        return {_id(result) for result in _results(claim) if not self._is_share(result)}

    def _held_by_share(self, claim: ResourceClaim) -> Iterable[DeviceId]:
        return {_id(result) for result in _results(claim) if self._is_share(result)}

    def _is_share(self, result: AllocatedDevice) -> bool:
        return self._can_share and result.share_id is not None


def _results(claim: ResourceClaim) -> Iterator[AllocatedDevice]:
    allocation = claim.status.allocation
    return (result for result in (allocation.devices.results if allocation else ()) if not result.admin_access)


def _id(result: AllocatedDevice) -> DeviceId:
    return DeviceId(result.driver, result.pool, result.device)
