"""CEL selectors of devices, evaluated for one device."""

from __future__ import annotations

from mooring.cel.budget import Check
from mooring.cel.device import AttributeValue, AttributeVersion, DeviceInput, compile_selector
from mooring.cel.errors import CelError
from mooring.objects.resource import DeviceAttribute
from mooring.plugins.default.dynamic_resources.device_requests import AllocationFault
from mooring.plugins.default.dynamic_resources.resource_slices import SliceDevice

_MOST_CACHED = 256
"""Selectors cached per device. With fewer in use, each is evaluated once."""
_LONGEST_REASON = 2048


def evaluate(expression: str, origin: str, offered: SliceDevice, check: Check | None) -> bool:
    """Whether the expression selects the device, cached with the device; see `device_requests.selects`."""
    selector = compile_selector(expression)
    if selector.error is not None:
        raise AllocationFault(f"{origin}: CEL compile error: {selector.error[:_LONGEST_REASON]}")
    try:
        selected = selector.matches(_cel_input(offered), check)
    except CelError as problem:
        raise AllocationFault(f"{origin}: CEL runtime error: {str(problem)[:_LONGEST_REASON]}") from problem
    if len(offered.selection_cache) >= _MOST_CACHED:
        offered.selection_cache.clear()
    offered.selection_cache[selector.expression] = selected
    return selected


def _cel_input(offered: SliceDevice) -> DeviceInput:
    if offered.cel_input is None:
        device = offered.device
        attributes = {name: _value(each) for name, each in device.attributes.items()}
        capacity = {name: str(each.value) for name, each in device.capacity.items()}
        offered.cel_input = DeviceInput(offered.id.driver, attributes, capacity, device.allow_multiple_allocations)
    return offered.cel_input


def _value(attribute: DeviceAttribute) -> AttributeValue:
    """None, which fails every selector, for a list or an attribute of a type that we do not know."""
    if attribute.version_value is not None:
        return AttributeVersion(attribute.version_value)
    if attribute.string_value is not None:
        return attribute.string_value
    if attribute.bool_value is not None:
        return attribute.bool_value
    return attribute.int_value
