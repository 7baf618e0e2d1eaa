"""What a sync of a ReplicaSet does: how many pods to create, which to delete, and its status. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from mooring.base.clock import parse_timestamp
from mooring.simulated.controllers.workload_records import ReplicaSet
from mooring.simulated.records import Document, PodRecord

DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
BURST = 500
"""Pods that one sync creates or deletes at most, as upstream's burst."""


@dataclass(frozen=True)
class ReplicaPlan:
    """Either pods to create or pods to delete, never both."""

    create: int = 0
    delete: tuple[PodRecord, ...] = ()


def plan_replicas(wanted: int, active: Sequence[PodRecord]) -> ReplicaPlan:
    """Bring the active pods to the desired number, at most a burst at a time."""
    surplus = len(active) - wanted
    if surplus > 0:
        return ReplicaPlan(delete=tuple(deletion_order(active)[: min(surplus, BURST)]))
    return ReplicaPlan(create=min(-surplus, BURST))


def deletion_order(pods: Sequence[PodRecord]) -> list[PodRecord]:
    """The order of deletion: not running first, then by deletion cost, pods of the node, and age; names break ties."""
    ready_on = Counter(pod.spec.node_name for pod in pods if pod.ready_since is not None)

    def rank(pod: PodRecord) -> tuple[object, ...]:
        ready = pod.ready_since
        return (
            bool(pod.spec.node_name),
            {"": 0, "Pending": 0, "Unknown": 1}.get(pod.status.phase, 2),
            ready is not None,
            _deletion_cost(pod),
            -ready_on[pod.spec.node_name] if ready is not None else 0,
            -parse_timestamp(ready) if ready else 0.0,
            -_restarts(pod),
            -parse_timestamp(pod.metadata.creation_timestamp) if pod.metadata.creation_timestamp else 0.0,
            pod.name,
        )

    return sorted(pods, key=rank)


def replica_set_status(owner: ReplicaSet, active: Sequence[PodRecord], now: float) -> Document:
    """The desired status of the ReplicaSet."""
    template_labels = (owner.spec.template.get("metadata") or {}).get("labels") or {}
    return {
        "replicas": len(active),
        "fullyLabeledReplicas": sum(template_labels.items() <= pod.labels.items() for pod in active),
        "readyReplicas": sum(pod.ready_since is not None for pod in active),
        "availableReplicas": sum(is_available(pod, owner.spec.min_ready_seconds, now) for pod in active),
        "observedGeneration": owner.metadata.generation,
    }


def is_available(pod: PodRecord, min_ready_seconds: int, now: float) -> bool:
    """Ready for long enough."""
    ready = pod.ready_since
    return ready is not None and (min_ready_seconds == 0 or now >= parse_timestamp(ready) + min_ready_seconds)


def seconds_until_available(pods: Sequence[PodRecord], min_ready_seconds: int, now: float) -> float | None:
    """When the next ready pod becomes available; None when there is none."""
    waits = [
        parse_timestamp(pod.ready_since) + min_ready_seconds - now
        for pod in pods
        if pod.ready_since is not None and not is_available(pod, min_ready_seconds, now)
    ]
    return min(waits, default=None)


def _deletion_cost(pod: PodRecord) -> int:
    try:
        return int(pod.metadata.annotations.get(DELETION_COST, "0"))
    except ValueError:
        return 0


def _restarts(pod: PodRecord) -> int:
    return max((int(status.get("restartCount", 0)) for status in pod.status.container_statuses), default=0)
