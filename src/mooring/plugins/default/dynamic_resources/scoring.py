"""The score of a node: how high in their lists of preference its `firstAvailable` requests were served."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mooring.objects.resource import MOST_ALTERNATIVES, ResourceClaim
from mooring.plugins.default.dynamic_resources.allocator import FoundClaim


def preference_score(claims: Sequence[ResourceClaim], found: Sequence[FoundClaim]) -> int:
    """8 for each request that got its first alternative, 7 for a second, and so on.

    `found` is what was found for the claims that have no allocation yet, in their order.
    """
    missing = iter(found)
    return sum(_score(claim, _served(claim, missing)) for claim in claims)


def _served(claim: ResourceClaim, missing: Iterator[FoundClaim]) -> set[str]:
    """The requests and subrequests that got devices."""
    if claim.status.allocation is not None:
        return {result.request for result in claim.status.allocation.devices.results}
    return {device.wanted.reference for device in next(missing).devices}


def _score(claim: ResourceClaim, served: set[str]) -> int:
    return sum(
        MOST_ALTERNATIVES - place
        for request in claim.spec.devices.requests
        if request.exactly is None
        for place, alternative in enumerate(request.first_available)
        if f"{request.name}/{alternative.name}" in served
    )
