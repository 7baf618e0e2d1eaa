"""What the pods of a namespace use of its ElasticQuota: those that are bound and have not ended."""

from __future__ import annotations

from collections.abc import Iterable

from mooring.objects import Pod
from mooring.objects.quantity import BINARY
from mooring.plugins.community.capacity_scheduling.quotas import ElasticQuota

ENDED = ("Succeeded", "Failed")


def used(quota: ElasticQuota, pods: Iterable[Pod]) -> dict[str, str]:
    """By resource, as quantities: everything that the quota names or a pod requests."""
    amounts = dict.fromkeys({**(quota.spec.min or {}), **(quota.spec.max or {})}, 0)
    for pod in pods:
        if pod.spec.node_name and pod.status.phase not in ENDED:
            requested = {**pod.requests.amounts, **({"pods": 1} if "pods" in amounts else {})}
            for resource, amount in requested.items():
                amounts[resource] = amounts.get(resource, 0) + amount
    return {resource: _quantity(resource, amount) for resource, amount in amounts.items()}


def _quantity(resource: str, amount: int) -> str:
    """In the notation that Kubernetes would write."""
    if resource == "cpu":
        return str(amount // 1000) if amount % 1000 == 0 else f"{amount}m"
    if resource in ("memory", "ephemeral-storage") or resource.startswith("hugepages-"):
        for suffix, doublings in sorted(BINARY.items(), key=lambda each: -each[1]):
            if amount and amount % 2**doublings == 0:
                return f"{amount // 2**doublings}{suffix}"
    return str(amount)
