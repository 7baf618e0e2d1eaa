"""Binding conditions: what a driver must report about allocated devices before a pod may be bound to them."""

from __future__ import annotations

import json
from datetime import datetime
from enum import Enum

from mooring.objects.resource import AllocatedDevice, DeviceStatus, ResourceClaim


class Readiness(Enum):
    READY = "every device has reported what its binding waits for"
    WAITING = "some have not yet"
    FAILED = "one will never be ready"


def readiness(claim: ResourceClaim) -> Readiness:
    """What drivers say about the claim's devices, looked at in order."""
    for result in _conditional(claim):
        status = _status_of(claim, result)
        if status is None:
            return Readiness.WAITING
        if any(_is_true(status, condition) for condition in result.binding_failure_conditions):
            return Readiness.FAILED
        if not all(_is_true(status, condition) for condition in result.binding_conditions):
            return Readiness.WAITING
    return Readiness.READY


def failed_condition(claim: ResourceClaim) -> str:
    """Why a claim's devices will not be ready, in the words of the first that says so."""
    for result in _conditional(claim):
        status = _status_of(claim, result)
        for condition in status.conditions if status is not None else ():
            if condition.type in result.binding_failure_conditions and condition.status == "True":
                return f"reason={condition.reason}, message={json.dumps(condition.message, ensure_ascii=False)}"
    return ""


def has_conditions(claim: ResourceClaim) -> bool:
    return bool(_conditional(claim))


def is_overdue(claim: ResourceClaim, now: float, timeout_seconds: float) -> bool:
    """Whether devices with binding conditions were allocated longer ago than they may take."""
    allocation = claim.status.allocation
    if allocation is None or allocation.allocation_timestamp is None or not _conditional(claim):
        return False
    return datetime.fromisoformat(allocation.allocation_timestamp).timestamp() + timeout_seconds < now


def _conditional(claim: ResourceClaim) -> list[AllocatedDevice]:
    allocation = claim.status.allocation
    return [result for result in allocation.devices.results if result.binding_conditions] if allocation else []


def _status_of(claim: ResourceClaim, result: AllocatedDevice) -> DeviceStatus | None:
    wanted = result.driver, result.pool, result.device
    return next((each for each in claim.status.devices if (each.driver, each.pool, each.device) == wanted), None)


def _is_true(status: DeviceStatus, condition: str) -> bool:
    return any(each.type == condition and each.status == "True" for each in status.conditions)
