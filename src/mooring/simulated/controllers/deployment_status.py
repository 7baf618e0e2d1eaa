"""The status of a Deployment: counts, and the conditions that `kubectl rollout status` reads. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from mooring.base.clock import parse_timestamp, timestamp
from mooring.simulated.controllers.deployments import is_complete, split, surge_and_unavailable
from mooring.simulated.controllers.workload_records import Deployment, ReplicaSet
from mooring.simulated.records import ConditionRecord, Document

_AT_REST = ("NewReplicaSetAvailable", "DeploymentPaused", "ProgressDeadlineExceeded")


def deployment_status(owner: Deployment, owned: Sequence[ReplicaSet], now: float) -> Document:
    """The desired status of the Deployment."""
    new, _ = split(owner, owned)
    total = sum(each.status.replicas for each in owned)
    available = sum(each.status.available_replicas for each in owned)
    status: Document = {
        "observedGeneration": owner.metadata.generation,
        "replicas": total,
        "updatedReplicas": new.status.replicas if new else 0,
        "readyReplicas": sum(each.status.ready_replicas for each in owned),
        "availableReplicas": available,
        "unavailableReplicas": max(0, sum(each.spec.replicas for each in owned) - available),
    }
    progressed = _has_progressed(owner, status)
    status["conditions"] = [
        _dated(owner, _availability(owner, available), now),
        _dated(owner, _progress(owner, owned, progressed, now), now, progressed=progressed),
    ]
    return status


def _availability(owner: Deployment, available: int) -> ConditionRecord:
    _, max_unavailable = surge_and_unavailable(owner)
    if available >= owner.spec.replicas - max_unavailable:
        return ConditionRecord(
            type="Available",
            status="True",
            reason="MinimumReplicasAvailable",
            message="Deployment has minimum availability.",
        )
    return ConditionRecord(
        type="Available",
        status="False",
        reason="MinimumReplicasUnavailable",
        message="Deployment does not have minimum availability.",
    )


def _progress(owner: Deployment, owned: Sequence[ReplicaSet], progressed: bool, now: float) -> ConditionRecord:
    new, _ = split(owner, owned)
    subject = f'ReplicaSet "{new.name}"' if new else f'Deployment "{owner.name}"'
    before = progressing(owner)
    if owner.spec.paused:
        return ConditionRecord(
            type="Progressing", status="Unknown", reason="DeploymentPaused", message="Deployment is paused"
        )
    if is_complete(owner, new, owned):
        return ConditionRecord(
            type="Progressing",
            status="True",
            reason="NewReplicaSetAvailable",
            message=f"{subject} has successfully progressed.",
        )
    if not progressed and before is not None and _is_overdue(owner, before, now):
        return ConditionRecord(
            type="Progressing",
            status="False",
            reason="ProgressDeadlineExceeded",
            message=f"{subject} has timed out progressing.",
        )
    if before is None and new is not None:
        message = f'Created new replica set "{new.name}"'
        return ConditionRecord(type="Progressing", status="True", reason="NewReplicaSetCreated", message=message)
    return ConditionRecord(
        type="Progressing", status="True", reason="ReplicaSetUpdated", message=f"{subject} is progressing."
    )


def _has_progressed(owner: Deployment, status: Document) -> bool:
    """Whether the rollout has progressed since the status was last written."""
    before = owner.status
    return bool(
        owner.metadata.generation != before.observed_generation
        or status["updatedReplicas"] > before.updated_replicas
        or status["replicas"] - status["updatedReplicas"] < before.replicas - before.updated_replicas
        or status["readyReplicas"] > before.ready_replicas
        or status["availableReplicas"] > before.available_replicas
    )


def _is_overdue(owner: Deployment, condition: ConditionRecord, now: float) -> bool:
    if condition.reason == "ProgressDeadlineExceeded":
        return True
    left = seconds_until_overdue(owner, condition, now)
    return left is not None and left <= 0


def seconds_until_overdue(owner: Deployment, condition: ConditionRecord | None, now: float) -> float | None:
    """The time left to the progress deadline; None when no rollout is in progress."""
    if condition is None or condition.reason in _AT_REST or not condition.last_update_time:
        return None
    return parse_timestamp(condition.last_update_time) + owner.spec.progress_deadline_seconds - now


def progressing(owner: Deployment) -> ConditionRecord | None:
    return _condition(owner, "Progressing")


def _condition(owner: Deployment, type_: str) -> ConditionRecord | None:
    return next((each for each in owner.status.conditions if each.type == type_), None)


def _dated(owner: Deployment, condition: ConditionRecord, now: float, *, progressed: bool = False) -> Document:
    """The condition with its times: lastUpdateTime also changes with progress, lastTransitionTime with the status."""
    before = _condition(owner, condition.type)
    same_status = before is not None and before.status == condition.status
    same = (
        same_status and before is not None and (before.reason, before.message) == (condition.reason, condition.message)
    )
    stamp = timestamp(now)
    return {
        "type": condition.type,
        "status": condition.status,
        "reason": condition.reason,
        "message": condition.message,
        "lastUpdateTime": (before.last_update_time if same and before and not progressed else None) or stamp,
        "lastTransitionTime": (before.last_transition_time if same_status and before else None) or stamp,
    }
