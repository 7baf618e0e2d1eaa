"""Consumable capacity: devices that several claims share, each with a part of their capacity.

How much a request consumes follows from the amount it requests and from the device's request policy: a default, values
to round up to, or a range with steps.
"""

from __future__ import annotations

from collections.abc import Mapping

from mooring.objects.quantity import QuantityText, billionths, whole
from mooring.objects.resource import CapacityPolicy, CapacityRange, DeviceCapacity

Requested = Mapping[str, QuantityText]
Consumed = dict[str, QuantityText]
NOTHING: Mapping[str, int] = {}


def has_capacity(
    requested: Requested,
    capacities: Mapping[str, DeviceCapacity],
    consumed: Mapping[str, int],
    being_taken: Mapping[str, int],
) -> bool:
    """Whether the device's capacity holds one more such request, and its policies allow it."""
    if not requested.keys() <= capacities.keys():
        return False
    for name, capacity in capacities.items():
        amount = consumed_amount(requested.get(name), capacity)
        if _violates(amount, capacity.request_policy):
            return False
        total = billionths(amount) + consumed.get(name, 0) + being_taken.get(name, 0)
        if total > billionths(capacity.value):
            return False
    return True


def consumed_capacity(requested: Requested, capacities: Mapping[str, DeviceCapacity]) -> Consumed:
    """How much of each capacity the request consumes."""
    return {name: consumed_amount(requested.get(name), capacity) for name, capacity in capacities.items()}


def consumed_amount(requested: QuantityText | None, capacity: DeviceCapacity) -> QuantityText:
    """How much a request for so much consumes; one that names no amount takes the default, or all."""
    policy = capacity.request_policy
    if requested is None:
        return policy.default if policy is not None and policy.default is not None else capacity.value
    if policy is None:
        return requested
    if policy.valid_range is not None and policy.valid_range.min is not None:
        return _rounded_up_in(requested, policy.valid_range, policy.valid_range.min)
    return next((valid for valid in policy.valid_values if billionths(requested) <= billionths(valid)), requested)


def _rounded_up_in(requested: QuantityText, valid: CapacityRange, least: QuantityText) -> QuantityText:
    if billionths(requested) < billionths(least):
        return least
    step = whole(valid.step) if valid.step is not None else 0
    if not step:
        return requested
    steps = -((whole(least) - whole(requested)) // step)
    return str(whole(least) + step * steps)


def _violates(amount: QuantityText, policy: CapacityPolicy | None) -> bool:
    if policy is None or (policy.default is not None and billionths(amount) == billionths(policy.default)):
        return False
    if policy.valid_range is not None:
        valid = policy.valid_range
        if valid.max is not None and billionths(amount) > billionths(valid.max):
            return True
        step = whole(valid.step) if valid.step is not None else 0
        return bool(step) and (whole(amount) - whole(valid.min or 0)) % step != 0
    return bool(policy.valid_values) and all(billionths(amount) != billionths(valid) for valid in policy.valid_values)
