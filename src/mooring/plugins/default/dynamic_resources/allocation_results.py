"""What was found, as the allocation that a claim's status will hold."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence

import msgspec

from mooring.objects.core import (
    ContainerExtendedResourceRequest,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
)
from mooring.objects.resource import (
    MOST_ALTERNATIVES,
    AllocatedDevice,
    Allocation,
    AllocationConfiguration,
    Device,
    DeviceAllocation,
    ResourceClaim,
    ResourceSliceSpec,
)
from mooring.plugins.default.dynamic_resources.allocator import FoundClaim, FoundDevice
from mooring.plugins.default.dynamic_resources.device_requests import AllocationFault, ClaimToAllocate, ResolvedRequest
from mooring.plugins.default.dynamic_resources.features import Features

FROM_CLASS, FROM_CLAIM = "FromClass", "FromClaim"


def allocation_of(claim: ResourceClaim, found: FoundClaim, node: str, features: Features) -> Allocation:
    """The allocation of one claim on this node."""
    return Allocation(
        devices=DeviceAllocation(
            results=tuple(_result(claim, at, each, features) for at, each in enumerate(found.devices)),
            config=tuple(_configuration(claim, found.chosen)),
        ),
        node_selector=_node_selector(found, node),
    )


def _result(claim: ResourceClaim, at: int, found: FoundDevice, features: Features) -> AllocatedDevice:
    device, wanted = found.offered.device, found.wanted
    with_conditions = features.binding_conditions
    return AllocatedDevice(
        request=wanted.reference,
        driver=found.offered.id.driver,
        pool=found.offered.id.pool,
        device=found.offered.id.device,
        admin_access=True if wanted.has_admin_access else None,
        tolerations=tuple(wanted.tolerations),
        binding_conditions=tuple(device.binding_conditions or ()) if with_conditions else (),
        binding_failure_conditions=tuple(device.binding_failure_conditions or ()) if with_conditions else (),
        share_id=_share_id(claim, at, found) if found.is_share else None,
        consumed_capacity=dict(found.consumed),
    )


def _share_id(claim: ResourceClaim, at: int, found: FoundDevice) -> str:
    """Unique per share. Made from names rather than by chance, so that a decision can be repeated."""
    return str(uuid.uuid5(uuid.NAMESPACE_OID, f"{claim.uid}/{at}/{found.wanted.reference}/{found.offered.id}"))


def _configuration(claim: ResourceClaim, chosen: Sequence[ResolvedRequest]) -> list[AllocationConfiguration]:
    """Configuration for drivers: that of each class once, then the claim's own."""
    of_class: dict[str, list[ResolvedRequest]] = {}
    for wanted in chosen:
        of_class.setdefault(wanted.device_class.name, []).append(wanted)
    shared = [
        AllocationConfiguration(
            source=FROM_CLASS, requests=tuple(wanted.reference for wanted in some), opaque=each.opaque
        )
        for some in of_class.values()
        for each in some[0].device_class.spec.config
    ]
    own = [
        AllocationConfiguration(source=FROM_CLAIM, requests=each.requests, opaque=each.opaque)
        for each in claim.spec.devices.config
        for _ in range(1 if not each.requests else sum(_applies_to(each.requests, wanted) for wanted in chosen))
    ]
    return [*shared, *own]


def _applies_to(requests: Sequence[str], wanted: ResolvedRequest) -> bool:
    return wanted.request in requests or wanted.reference in requests


def check_selectors(claim: ResourceClaim, found: FoundClaim) -> None:
    """Raise a fault if no node selector can express which nodes can use the allocation."""
    for each in found.devices:
        selector = _nodes_of(each)[1]
        if selector is not None and len(selector.node_selector_terms) > 1:
            raise AllocationFault(
                f"create NodeSelector for claim {claim.name}: unsupported ResourceSlice.NodeSelector with"
                f" {len(selector.node_selector_terms)} terms"
            )


def _nodes_of(found: FoundDevice) -> tuple[str | None, NodeSelector | None]:
    """The name of the only node, or the selector of the nodes, that can use the device."""
    source: Device | ResourceSliceSpec = (
        found.offered.device if found.offered.has_node_selection else found.offered.spec
    )
    return source.node_name, source.node_selector


def _node_selector(found: FoundClaim, node: str) -> NodeSelector | None:
    """Which nodes can use these devices: one, some, or (None) any."""
    fields: list[NodeSelectorRequirement] = []
    expressions: list[NodeSelectorRequirement] = []
    for each in found.devices:
        node_name, selector = _nodes_of(each)
        if node_name is not None or each.offered.device.binds_to_node:
            only = NodeSelectorRequirement(key="metadata.name", operator="In", values=(node,))
            return NodeSelector(node_selector_terms=(NodeSelectorTerm(match_fields=(only,)),))
        for part in selector.node_selector_terms if selector is not None else ():
            _add_new(part.match_fields, fields)
            _add_new(part.match_expressions, expressions)
    if fields or expressions:
        term = NodeSelectorTerm(match_fields=tuple(fields), match_expressions=tuple(expressions))
        return NodeSelector(node_selector_terms=(term,))
    return None


def _add_new(parts: Sequence[NodeSelectorRequirement], to: list[NodeSelectorRequirement]) -> None:
    for part in parts:
        if not any(
            (known.key, known.operator, set(known.values)) == (part.key, part.operator, set(part.values))
            for known in to
        ):
            to.append(part)


class NodeAllocation(msgspec.Struct, frozen=True):
    """What was found for the pod on one node."""

    found: Sequence[FoundClaim]
    """One for each claim that has no allocation yet, in their order."""
    claims: Sequence[ClaimToAllocate]
    """These claims."""
    extended_claim: ResourceClaim | None = None
    """The claim to be made for extended resources, as it must be for this node."""
    mappings: Sequence[ContainerExtendedResourceRequest] = ()

    def allocations(self, node: str, features: Features) -> list[Allocation]:
        """What the claims' statuses will hold. Of many nodes one is chosen, so it is not made before."""
        pairs = zip(self.claims, self.found, strict=True)
        return [allocation_of(wanted.claim, found, node, features) for wanted, found in pairs]


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
