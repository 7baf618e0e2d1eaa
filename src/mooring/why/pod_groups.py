"""The group of a pod, by the API objects alone: which it is, and what it lacks. True of any scheduler's pods."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from mooring.objects.core import Pod
from mooring.objects.pod_groups import POD_GROUP_SCHEDULED, PodGroup

_ENDED = ("Succeeded", "Failed")


def group_of(pod: Pod, group: PodGroup | None, pods: Iterable[Pod] | None) -> dict[str, Any] | None:
    """Of a pod that names a group; `group`: None if it does not exist. `pods`: None if they were not listed."""
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
    condition = group.condition(POD_GROUP_SCHEDULED)
    if condition is not None and condition.status == "False":
        found["condition"] = {"reason": condition.reason, "message": condition.message}
    return found
