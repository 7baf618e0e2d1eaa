"""The group of a pod, by the API objects alone: which it is, and what it lacks. True of any scheduler's pods."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from mooring.objects.core import Pod
from mooring.objects.pod_groups import POD_GROUP_SCHEDULED, PodGroup
from mooring.objects.resource import ResourceClaim

_ENDED = ("Succeeded", "Failed")


def group_of(
    pod: Pod, group: PodGroup | None, pods: Iterable[Pod] | None, claims: Iterable[ResourceClaim] | None = None
) -> dict[str, Any] | None:
    """Of a pod that names a group; `group`: None if it does not exist. `pods`, `claims`: None if not listed."""
    if (name := pod.pod_group_name) is None:
        return None
    found: dict[str, Any] = {"name": name, "exists": group is not None}
    if pods is not None:
        members = [
            each
            for each in pods
            if (each.namespace, each.pod_group_name) == (pod.namespace, name) and each.status.phase not in _ENDED
        ]
        found |= {"members": len(members), "scheduled": sum(bool(each.spec.node_name) for each in members)}
    if group is None:
        return found
    if group.min_count is not None:
        found["minCount"] = group.min_count
    if group.topology_key is not None:
        found["topologyKey"] = group.topology_key
    if claims is not None and (lacking := list(_lacking_claims(group, claims))):
        found["claims"] = lacking
    condition = group.condition(POD_GROUP_SCHEDULED)
    if condition is not None and condition.status == "False":
        found["condition"] = {"reason": condition.reason, "message": condition.message}
    return found


def lacks_group(pod: Pod) -> bool:
    """Whether a decision about the pod alone may differ from that of its scheduler, which tries the group together."""
    return pod.pod_group_name is not None and not pod.spec.node_name


def _lacking_claims(group: PodGroup, claims: Iterable[ResourceClaim]) -> Iterator[dict[str, Any]]:
    """The claims of the group that keep its pods waiting: not created yet, deleted, or without devices."""
    existing = {claim.name: claim for claim in claims if claim.namespace == group.namespace}
    created = {status.name: status.resource_claim_name for status in group.status.resource_claim_statuses}
    for entry in group.spec.resource_claims:
        if entry.resource_claim_name is None and entry.name not in created:
            yield {"name": entry.name, "template": entry.resource_claim_template_name}
            continue
        name = entry.resource_claim_name or created.get(entry.name)
        if name is None:  # the resource claim controller decided that none is needed
            continue
        claim = existing.get(name)
        if claim is None or claim.status.allocation is None:
            yield {"name": entry.name, "claim": name, "exists": claim is not None}
