"""Claims of a PodGroup (the gate DRAWorkloadResourceClaims): all pods of the group use them together.

A claim of a pod belongs to the group if the PodGroup's spec has the same entry: its name, and the claim or the template
that it refers to. Such a claim is reserved for the group, not for pods, and stays reserved while pods come and go.
"""

from __future__ import annotations

from mooring.base.errors import Fault
from mooring.framework import Objects, Pod
from mooring.framework.verdicts import ClaimRelease
from mooring.objects.core import PodResourceClaim
from mooring.objects.pod_groups import GROUP, PodGroup
from mooring.objects.resource import ConsumerReference, ResourceClaim

PODS, POD_GROUPS = "pods", "podgroups"


def consumer_of(pod: Pod, group: PodGroup | None, reference: PodResourceClaim) -> ConsumerReference:
    """What the claim is reserved for: the pod, or its group."""
    if group is not None and reference in group.spec.resource_claims:
        return ConsumerReference(api_group=GROUP, resource=POD_GROUPS, name=group.name, uid=group.uid)
    return pod_consumer(pod)


def pod_consumer(pod: Pod) -> ConsumerReference:
    return ConsumerReference(resource=PODS, name=pod.name, uid=pod.uid)


def is_owned_by_group(claim: ResourceClaim, pod: Pod) -> bool:
    """Whether the claim was created for the pod's group. A pod knows the name of its group, and no uid."""
    for owner in claim.metadata.owner_references:
        if owner.controller:
            is_group = owner.kind == "PodGroup" and owner.api_version.startswith(f"{GROUP}/")
            return is_group and owner.name == pod.pod_group_name
    return False


def is_reserved_for_group(claim: ResourceClaim, pod: Pod) -> bool:
    name = pod.pod_group_name
    return name is not None and any(
        (user.api_group, user.resource, user.name) == (GROUP, POD_GROUPS, name) for user in claim.status.reserved_for
    )


def group_release(pod: Pod, group: PodGroup, claims: Objects[ResourceClaim]) -> ClaimRelease | None:
    """The first allocated claim of the group that is reserved for it: unreserved, it can be deallocated."""
    for reference in group.spec.resource_claims:
        name = _name_of(group, reference)
        if name is None:
            continue
        claim = claims.get(name, group.namespace)
        if claim is None:
            raise Fault(f'could not find ResourceClaim "{group.namespace}/{name}"')
        if reference.resource_claim_name is None and not _is_controlled_by(claim, group):
            continue
        if claim.status.allocation is not None and is_reserved_for_group(claim, pod):
            return ClaimRelease(claim.namespace, claim.name, claim.uid, unreserve=group.uid)
    return None


def _name_of(group: PodGroup, reference: PodResourceClaim) -> str | None:
    """None: the ResourceClaim controller decided that none is needed."""
    if reference.resource_claim_name is not None:
        return reference.resource_claim_name
    for status in group.status.resource_claim_statuses:
        if status.name == reference.name:
            return status.resource_claim_name
    raise Fault(f"PodGroup {group.key}: ResourceClaim not created yet")


def _is_controlled_by(claim: ResourceClaim, group: PodGroup) -> bool:
    return any(owner.controller and owner.uid == group.uid for owner in claim.metadata.owner_references)
