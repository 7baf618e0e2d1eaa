"""What one attempt knows about a pod's claims: left by pre_filter, filled in by filter, read by the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from mooring.objects.core import ContainerExtendedResourceRequest
from mooring.objects.resource import Allocation, ResourceClaim
from mooring.plugins.default.dynamic_resources.allocator import Allocator, FoundClaim
from mooring.plugins.default.dynamic_resources.features import Features
from mooring.plugins.default.dynamic_resources.requests import WantedClaim
from mooring.plugins.default.dynamic_resources.results import allocation_of


@dataclass(frozen=True, slots=True)
class NodeAllocation:
    """What was found for the pod on one node."""

    found: Sequence[FoundClaim]
    """One for each claim that has no allocation yet, in their order."""
    extended_claim: ResourceClaim | None = None
    """The claim to be made for extended resources, as it must be for this node."""
    mappings: Sequence[ContainerExtendedResourceRequest] = ()

    def allocations(self, node: str, features: Features) -> list[Allocation]:
        """What the claims' statuses will hold. Of many nodes one is chosen, so it is not made before."""
        return [allocation_of(each, node, features) for each in self.found]


@dataclass(slots=True, eq=False)
class PodClaims:
    """The claims of a pod. Without any, the plugin has nothing to do."""

    claims: list[ResourceClaim] = field(default_factory=list)
    """Those of the pod's spec, then the one for extended resources if there is one; as written once that is done."""
    special: ResourceClaim | None = None
    """The claim for extended resources."""
    wanted: Sequence[WantedClaim] = ()
    """Those of the spec that have no allocation."""
    allocator: Allocator | None = None
    """None if every claim is allocated."""
    unavailable: set[int] = field(default_factory=set)
    """Places of allocated claims that some node could not use."""
    found: dict[str, NodeAllocation] = field(default_factory=dict)
    """By node name."""
    promised: dict[int, Allocation] = field(default_factory=dict)
    """What claims will get on the chosen node, by their places: made by reserve, written by pre_bind."""
    in_flight: set[str] = field(default_factory=set)
    """Uids of those that are not written yet."""
    in_doubt: set[int] = field(default_factory=set)
    """Places of those whose writing nobody has answered: they may be written or not."""

    @property
    def has_alternatives(self) -> bool:
        """Whether nodes can differ in what they serve."""
        return any(request.first_available for claim in self.claims for request in claim.spec.devices.requests)

    @property
    def has_user_claims(self) -> bool:
        return len(self.claims) > (self.special is not None)
