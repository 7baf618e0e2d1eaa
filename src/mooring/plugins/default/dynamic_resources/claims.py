"""Which ResourceClaims are a pod's, and whether they are there."""

from __future__ import annotations

from collections.abc import Iterator

from mooring.framework import Objects, Pod
from mooring.objects.core import PodResourceClaim
from mooring.objects.resource import MOST_USERS, ResourceClaim


class ClaimMissing(Exception):
    """A claim of the pod is not there, or not the pod's; the text is the reason that the pod waits."""


def claims_of(pod: Pod, claims: Objects[ResourceClaim]) -> list[ResourceClaim]:
    """The claims that the pod's spec refers to, in its order. Raises `ClaimMissing` for the first that is not there."""
    return list(_claims_of(pod, claims))


def _claims_of(pod: Pod, claims: Objects[ResourceClaim]) -> Iterator[ResourceClaim]:
    for reference in pod.spec.resource_claims:
        name = reference.resource_claim_name
        if name is None:
            name = _generated_name(pod, reference)
            if name is None:  # whoever makes claims after templates decided that none is needed
                continue
        claim = claims.get(name, pod.namespace)
        if claim is None:
            raise ClaimMissing(f'could not find ResourceClaim "{pod.namespace}/{name}"')
        if claim.metadata.deletion_timestamp is not None:
            raise ClaimMissing(f'resourceclaim "{name}" is being deleted')
        if reference.resource_claim_name is None and not is_controlled_by(claim, pod):
            raise ClaimMissing(f"ResourceClaim {claim.key} was not created for Pod {pod.key} (Pod is not owner)")
        yield claim


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


def has_room(claim: ResourceClaim) -> bool:
    """Whether one more pod can use it."""
    return len(claim.status.reserved_for) < MOST_USERS


def is_reserved_for(claim: ResourceClaim, pod: Pod) -> bool:
    return any(user.uid == pod.uid for user in claim.status.reserved_for)
