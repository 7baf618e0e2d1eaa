"""Keeps what searches found on each node, for pods that request the same: most pods come from a template.

What a search finds depends on the specs of the claims and on the device classes, on the pools that the node can use,
and on the claims that hold devices of these pools. Where none of these changed, the search is not repeated. A search
that raises is not kept.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Sequence

import msgspec

from mooring.framework import NodeView
from mooring.objects.resource import ResourceClaim
from mooring.plugins.default.dynamic_resources.allocated_devices import DeviceHolders
from mooring.plugins.default.dynamic_resources.allocation_results import check_selectors
from mooring.plugins.default.dynamic_resources.allocator import Allocator, FoundClaim
from mooring.plugins.default.dynamic_resources.device_requests import ClaimToAllocate
from mooring.plugins.default.dynamic_resources.resource_slices import UsablePools

MOST_TEMPLATES = 16
"""How many different requests are kept, each for all nodes."""


class _Search(msgspec.Struct, frozen=True):
    """A search that ended: what it read, and what it found."""

    usable: UsablePools
    holders: Sequence[ResourceClaim]
    found: Sequence[FoundClaim] | None


class NodeSearches:
    """Searches for the claims of one pod."""

    def __init__(
        self, claims: Sequence[ClaimToAllocate], allocator: Allocator, holders: DeviceHolders, kept: dict[str, _Search]
    ) -> None:
        self.claims = claims
        self._allocator, self._holders, self._kept = allocator, holders, kept

    def at(self, node: NodeView) -> Sequence[FoundClaim] | None:
        """Devices for every claim, or None. Raises what `Allocator.allocate` raises."""
        usable = self._allocator.slices.usable_by(node)
        holders = self._holders.of(usable.pool_ids)
        known = self._kept.get(node.name)
        if known is None or known.usable is not usable or known.holders != holders:
            found = self._allocator.allocate(node, self.claims)
            for wanted, each in zip(self.claims, found or (), strict=found is not None):
                check_selectors(wanted.claim, each)
            known = self._kept[node.name] = _Search(usable, holders, found)
        return known.found


class SearchCache:
    """Searches by what was requested, then by node."""

    def __init__(self, holders: DeviceHolders) -> None:
        self._holders = holders
        self._kept: OrderedDict[Hashable, dict[str, _Search]] = OrderedDict()

    def searches(self, claims: Sequence[ClaimToAllocate], allocator: Allocator) -> NodeSearches:
        signature = tuple(claim.signature for claim in claims)
        kept = self._kept.setdefault(signature, {})
        self._kept.move_to_end(signature)
        if len(self._kept) > MOST_TEMPLATES:
            self._kept.popitem(last=False)
        return NodeSearches(claims, allocator, self._holders, kept)
