"""The ResourceClaims of a pod: which they are, and what one scheduling cycle knows and holds of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from mooring.base.errors import Fault
from mooring.framework import ClaimsInFlight, Objects, Pod
from mooring.objects.core import ContainerExtendedResourceRequest, PodResourceClaim
from mooring.objects.resource import MOST_USERS, Allocation, ConsumerReference, ResourceClaim
from mooring.plugins.default.dynamic_resources.allocation_results import NodeAllocation
from mooring.plugins.default.dynamic_resources.allocator import Allocator
from mooring.plugins.default.dynamic_resources.device_requests import ClaimToAllocate
from mooring.plugins.default.dynamic_resources.features import Features
from mooring.plugins.default.dynamic_resources.group_claims import is_owned_by_group, is_reserved_for_group
from mooring.plugins.default.dynamic_resources.search_cache import NodeSearches


class ClaimMissing(Exception):
    """A claim of the pod does not exist or has another owner; the text is the reason why the pod waits."""


def claims_of(pod: Pod, claims: Objects[ResourceClaim], features: Features) -> list[ResourceClaim]:
    """The claims that the pod's spec refers to, in its order. Raises `ClaimMissing` for the first that is not there."""
    return [claim for _, claim in referenced_claims(pod, claims, features)]


def referenced_claims(
    pod: Pod, claims: Objects[ResourceClaim], features: Features
) -> Iterator[tuple[PodResourceClaim, ResourceClaim]]:
    """`claims_of`, with the entry of the spec that refers to each."""
    for reference in pod.spec.resource_claims:
        name = reference.resource_claim_name
        if name is None:
            name = _generated_name(pod, reference)
            if name is None:  # the ResourceClaim controller decided that none is needed
                continue
        claim = claims.get(name, pod.namespace)
        if claim is None:
            raise ClaimMissing(f'could not find ResourceClaim "{pod.namespace}/{name}"')
        if claim.metadata.deletion_timestamp is not None:
            raise ClaimMissing(f'resourceclaim "{name}" is being deleted')
        if reference.resource_claim_name is None:
            _check_owner(claim, pod, features)
        yield reference, claim


def _check_owner(claim: ResourceClaim, pod: Pod, features: Features) -> None:
    """A claim from a template must have been created for this pod, or for its group."""
    if is_controlled_by(claim, pod):
        return
    why = "Pod is not owner"
    if features.workload_claims and pod.pod_group_name is not None:
        if is_owned_by_group(claim, pod):
            return
        why = f"neither Pod nor PodGroup {pod.pod_group_name} is the owner"
    raise ClaimMissing(f"ResourceClaim {claim.key} was not created for Pod {pod.key} ({why})")


def _generated_name(pod: Pod, reference: PodResourceClaim) -> str | None:
    if reference.resource_claim_template_name is None:
        raise ClaimMissing(
            f'pod "{pod.key}", spec.resourceClaim "{reference.name}": none of the supported fields are set'
        )
    for status in pod.status.resource_claim_statuses:
        if status.name == reference.name:
            return status.resource_claim_name
    raise ClaimMissing(f'pod "{pod.key}": ResourceClaim not created yet')


def is_controlled_by(claim: ResourceClaim, pod: Pod) -> bool:
    return any(owner.controller and owner.uid == pod.uid for owner in claim.metadata.owner_references)


def can_be_reserved(claim: ResourceClaim) -> bool:
    """Whether one more pod can use it."""
    return len(claim.status.reserved_for) < MOST_USERS


def is_reserved_for(claim: ResourceClaim, pod: Pod) -> bool:
    return any(user.uid == pod.uid for user in claim.status.reserved_for)


def is_in_use_by(claim: ResourceClaim, pod: Pod, features: Features) -> bool:
    """Whether it is reserved for the pod, or for its group."""
    return is_reserved_for(claim, pod) or (features.workload_claims and is_reserved_for_group(claim, pod))


class ClaimSearches(msgspec.Struct, frozen=True):
    """Searches for the claims without allocation, with the one for extended resources that nodes lack."""

    searches: NodeSearches
    extended_claim: ResourceClaim | None = None
    mappings: Sequence[ContainerExtendedResourceRequest] = ()
    """Which container gets which."""


class PodClaims(msgspec.Struct, eq=False):
    """The claims of a pod. Without any, the plugin has nothing to do."""

    claims: list[ResourceClaim] = msgspec.field(default_factory=list)
    """Those of the pod's spec, then the one for extended resources if there is one; as written once that is done."""
    consumers: Sequence[ConsumerReference] = ()
    """What each claim of the spec is reserved for: the pod, or its group."""
    shared: dict[int, ResourceClaim] = msgspec.field(default_factory=dict)
    """By index: claims without allocation that another pod of the group got devices for in this pod group cycle. In
    `claims` they have that allocation."""
    extended_claim: ResourceClaim | None = None
    """The claim for extended resources."""
    wanted: Sequence[ClaimToAllocate] = ()
    """The claims of the spec that have no allocation."""
    allocator: Allocator | None = None
    """None if every claim is allocated."""
    searches: dict[frozenset[str], ClaimSearches] = msgspec.field(default_factory=dict)
    """By the extended resources that devices must provide."""
    unavailable: set[int] = msgspec.field(default_factory=set)
    """Indexes of allocated claims that some node could not use."""
    found: dict[str, NodeAllocation] = msgspec.field(default_factory=dict)
    """By node name."""
    allocations: dict[int, Allocation] = msgspec.field(default_factory=dict)
    """Allocations on the chosen node, by index of the claim: set by reserve, written by pre_bind."""
    in_flight: set[str] = msgspec.field(default_factory=set)
    """Uids of claims whose allocation is not written yet."""
    unknown_writes: set[int] = msgspec.field(default_factory=set)
    """Indexes of claims whose write got no response: they may be written or not."""

    @property
    def has_alternatives(self) -> bool:
        """Whether nodes can differ in what they serve."""
        return any(request.first_available for claim in self.claims for request in claim.spec.devices.requests)

    @property
    def has_user_claims(self) -> bool:
        return len(self.claims) > (self.extended_claim is not None)


def reserve_devices(
    state: PodClaims, pod: Pod, node: str, in_flight: ClaimsInFlight, features: Features, *, is_trial: bool
) -> None:
    """Hold what was found on the node for the claims that have no allocation."""

    def hold(at: int, claim: ResourceClaim, allocation: Allocation) -> None:
        state.allocations[at] = allocation
        state.in_flight.add(claim.uid)
        in_flight.begin(allocated(claim, allocation), pod.uid, is_trial=is_trial)

    for at, claim in state.shared.items():
        allocation = state.claims[at].status.allocation
        assert allocation is not None, "it is shared"
        hold(at, claim, allocation)
    to_allocate = [at for at, claim in enumerate(state.claims) if claim.status.allocation is None]
    found = state.found.get(node)
    if found is None:
        # The node itself may have the extended resources; claims of the pod's spec must have been found devices.
        if any(state.claims[at] is not state.extended_claim for at in to_allocate):
            raise Fault("claim allocation not found for node")
        return
    if found.extended_claim is None:
        to_allocate = [at for at in to_allocate if state.claims[at] is not state.extended_claim]
    for at, allocation in zip(to_allocate, found.allocations(node, features), strict=True):
        claim = state.claims[at]
        if claim is state.extended_claim and found.extended_claim is not None:
            if not found.extended_claim.spec.devices.requests:
                continue  # the node itself has all of them
            claim = state.claims[at] = state.extended_claim = found.extended_claim
        hold(at, claim, allocation)


def release_devices(state: PodClaims, pod: Pod, in_flight: ClaimsInFlight) -> None:
    """Undo `reserve_devices`: nothing stays in flight but what other pods of the group share."""
    for uid in state.in_flight:
        in_flight.end(uid, pod.uid)
    state.in_flight.clear()
    state.allocations.clear()


def allocated(claim: ResourceClaim, allocation: Allocation) -> ResourceClaim:
    status = msgspec.structs.replace(claim.status, allocation=allocation)
    return msgspec.structs.replace(claim, status=status)
