"""The status of a PodDisruptionBudget: how many of its pods may be evicted now, and why. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mooring.base.clock import parse_timestamp, timestamp
from mooring.base.errors import Fault
from mooring.simulated.controllers.workload_records import scaled_value
from mooring.simulated.records import BudgetRecord, Document, PodRecord

DISRUPTION_ALLOWED = "DisruptionAllowed"
SUFFICIENT, INSUFFICIENT, SYNC_FAILED = "SufficientPods", "InsufficientPods", "SyncFailed"
DELETION_TIMEOUT_SECONDS = 120.0
"""How long after its eviction was admitted a pod is expected to be deleted."""


class UnknownScale(Fault):
    """The scale of the pods' controllers cannot be determined; only a change of the objects can help."""


def needs_scale(budget: BudgetRecord) -> bool:
    """Whether the budget is relative to the scale of the pods' controllers, and not to the existing pods."""
    return budget.spec.max_unavailable is not None or isinstance(budget.spec.min_available, str)


def expected_and_desired(budget: BudgetRecord, pods: int, scale: int) -> tuple[int, int]:
    """expectedPods and desiredHealthy. Percentages are rounded up."""
    spec = budget.spec
    expected = scale if needs_scale(budget) else pods
    try:
        if spec.max_unavailable is not None:
            return expected, max(0, expected - scaled_value(spec.max_unavailable, expected, up=True))
        if spec.min_available is not None:
            return expected, scaled_value(spec.min_available, expected, up=True)
    except ValueError:
        field = "minAvailable" if spec.max_unavailable is None else "maxUnavailable"
        raise UnknownScale(f"spec.{field} is neither an integer nor a percentage") from None
    return 0, 0


def still_expected(budget: BudgetRecord, pods: Sequence[PodRecord], now: float) -> dict[str, str]:
    """Of `disruptedPods`, those that are neither being deleted yet nor overdue."""
    return {
        pod.name: since
        for pod in pods
        if not pod.is_terminating
        and (since := budget.status.disrupted_pods.get(pod.name)) is not None
        and _deadline(since) > now
    }


def overdue(budget: BudgetRecord, pods: Sequence[PodRecord], now: float) -> list[PodRecord]:
    """Pods whose eviction was admitted and that were not deleted in time: they count again."""
    return [
        pod
        for pod in pods
        if not pod.is_terminating
        and (since := budget.status.disrupted_pods.get(pod.name)) is not None
        and _deadline(since) <= now
    ]


def seconds_until_overdue(disrupted: Mapping[str, str], now: float) -> float | None:
    """When the next of them is overdue; None when there is none."""
    return min((_deadline(since) - now for since in disrupted.values()), default=None)


def budget_status(budget: BudgetRecord, pods: Sequence[PodRecord], scale: int, now: float) -> Document:
    """The desired status of the budget, as a merge patch."""
    expected, desired = expected_and_desired(budget, len(pods), scale)
    disrupted = still_expected(budget, pods, now)
    healthy = sum(not pod.is_terminating and pod.name not in disrupted and pod.ready_since is not None for pod in pods)
    # A budget without pods allows nothing, so that the first ones are protected before they are counted.
    allowed = max(0, healthy - desired) if expected > 0 else 0
    generation = budget.metadata.generation
    dropped = dict.fromkeys(budget.status.disrupted_pods.keys() - disrupted.keys())
    return {
        "currentHealthy": healthy,
        "desiredHealthy": desired,
        "expectedPods": expected,
        "disruptionsAllowed": allowed,
        "disruptedPods": {**disrupted, **dropped} if disrupted else None,
        "observedGeneration": generation,
        "conditions": _conditions(budget, allowed > 0, SUFFICIENT if allowed else INSUFFICIENT, "", generation, now),
    }


def failed_status(budget: BudgetRecord, why: str, now: float) -> Document:
    """The status of a budget whose sync failed: nothing may be evicted."""
    conditions = _conditions(budget, False, SYNC_FAILED, why, budget.status.observed_generation, now)
    return {"disruptionsAllowed": 0, "conditions": conditions}


def _conditions(
    budget: BudgetRecord, holds: bool, reason: str, message: str, generation: int, now: float
) -> list[Document]:
    """The conditions with this DisruptionAllowed; its transition time stays as long as its status does."""
    present = budget.status.conditions
    before = next((each for each in present if each.get("type") == DISRUPTION_ALLOWED), {})
    status = "True" if holds else "False"
    since = before.get("lastTransitionTime") if before.get("status") == status else None
    condition = {
        "type": DISRUPTION_ALLOWED,
        "status": status,
        "reason": reason,
        "message": message,
        "lastTransitionTime": since or timestamp(now),
    }
    if generation:
        condition["observedGeneration"] = generation
    return [each for each in present if each.get("type") != DISRUPTION_ALLOWED] + [condition]


def _deadline(since: str) -> float:
    return parse_timestamp(since) + DELETION_TIMEOUT_SECONDS
