"""Which claims of a pod belong to its PodGroup (the gate DRAWorkloadResourceClaims), for the resource claim controller.

Such a claim is created for the group, owned by it, and reserved for it. It stays allocated while pods come and go,
until the PodGroup is deleted.
"""

from __future__ import annotations

from mooring.base.errors import ApiError
from mooring.client import ApiClient
from mooring.client.informer import Informer
from mooring.objects.core import PodResourceClaim
from mooring.objects.pod_groups import GROUP
from mooring.simulated.records import ClaimRecord, Document, PodClaimRecord, PodGroupRecord, PodRecord, controller_of

POD_GROUPS = "podgroups"


class PodGroupClaims:
    """The PodGroups that claims can belong to; with the gate off there are none."""

    def __init__(self, client: ApiClient, groups: Informer[PodGroupRecord] | None, pods: Informer[PodRecord]) -> None:
        self._client = client
        self.groups = groups
        self._members = pods.indexed(lambda pod: [key] if (key := _group_key(pod)) else [])

    def members(self, group: PodGroupRecord) -> list[PodRecord]:
        return list(self._members.at(group.key))

    def of(self, pod: PodRecord) -> PodGroupRecord | None:
        key = _group_key(pod)
        return self.groups.get(key) if self.groups is not None and key else None

    def is_awaited(self, pod: PodRecord) -> bool:
        """Whether the PodGroup of the pod is not there yet, so that it is unknown which claims belong to it."""
        return self.groups is not None and bool(_group_key(pod)) and self.of(pod) is None

    def owner_of(self, pod: PodRecord, each: PodClaimRecord) -> PodGroupRecord | None:
        """The group, if its spec has the same entry."""
        group = self.of(pod)
        entry = PodResourceClaim(
            name=each.name,
            resource_claim_name=each.resource_claim_name,
            resource_claim_template_name=each.resource_claim_template_name,
        )
        return group if group is not None and entry in group.spec.resource_claims else None

    def owns(self, claim: ClaimRecord, pod: PodRecord) -> bool:
        """Whether the claim was created for the pod's group."""
        owner = controller_of(claim)
        return self.groups is not None and owner is not None and owner[:2] == ("PodGroup", _group_name(pod))

    def is_reserved(self, claim: ClaimRecord, pod: PodRecord) -> bool:
        """Whether the claim is reserved for the pod's group."""
        return self.groups is not None and any(
            is_pod_group(user) and user["name"] == _group_name(pod) for user in claim.status.reserved_for
        )

    async def is_gone(self, namespace: str, user: Document) -> bool:
        """Whether the group that a claim is reserved for is gone. An unknown one is read from the server."""
        if self.groups is None:
            return False
        if self.groups.has_deleted(user["uid"]):
            return True
        group = self.groups.get(f"{namespace}/{user['name']}")
        if group is None:
            try:
                group = await self._client.get_as(PodGroupRecord, user["name"], namespace)
            except ApiError as error:
                if error.code != 404:
                    raise
                return True
        return bool(group.uid != user["uid"])


def is_pod_group(user: Document) -> bool:
    return (user.get("apiGroup"), user.get("resource")) == (GROUP, POD_GROUPS)


def names_of(group: PodGroupRecord) -> set[str]:
    """The claims of the group that exist, as far as its status names them."""
    created = {each.resource_claim_name for each in group.status.resource_claim_statuses}
    named = {each.resource_claim_name for each in group.spec.resource_claims}
    return {name for name in created | named if name}


def _group_name(pod: PodRecord) -> str | None:
    return pod.spec.scheduling_group.get("podGroupName")


def _group_key(pod: PodRecord) -> str | None:
    name = _group_name(pod)
    return f"{pod.namespace}/{name}" if name else None
