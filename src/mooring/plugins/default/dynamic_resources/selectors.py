"""Whether a CEL selector selects a device: asked once per device and expression, as neither changes."""

from __future__ import annotations

from mooring.cel.budget import Check
from mooring.cel.device import AttributeValue, DeviceInput, Version, compile_selector
from mooring.cel.errors import CelError
from mooring.objects.resource import DeviceAttribute
from mooring.plugins.default.dynamic_resources.failures import AllocationFault
from mooring.plugins.default.dynamic_resources.offers import OfferedDevice

_MOST_REMEMBERED = 256
"""Selectors that a device remembers. With fewer in use, each is evaluated once."""
_LONGEST_REASON = 2048


def selects(expression: str, whose: str, offered: OfferedDevice, check: Check | None = None) -> bool:
    """Raises `AllocationFault`, which says whose selector it is, where the expression is wrong or has no value.

    `check` raises when the search must end; it is called before and during an evaluation.
    """
    known = offered.selected.get(expression)
    if known is None:
        selector = compile_selector(expression)
        if selector.error is not None:
            raise AllocationFault(f"{whose}: CEL compile error: {selector.error[:_LONGEST_REASON]}")
        try:
            known = selector.matches(_as_seen(offered), check)
        except CelError as problem:
            raise AllocationFault(f"{whose}: CEL runtime error: {str(problem)[:_LONGEST_REASON]}") from problem
        if len(offered.selected) >= _MOST_REMEMBERED:
            offered.selected.clear()
        offered.selected[selector.expression] = known
    return known


def _as_seen(offered: OfferedDevice) -> DeviceInput:
    if offered.seen is None:
        device = offered.device
        attributes = {name: _value(each) for name, each in device.attributes.items()}
        capacity = {name: str(each.value) for name, each in device.capacity.items()}
        offered.seen = DeviceInput(offered.id.driver, attributes, capacity, device.allow_multiple_allocations)
    return offered.seen


def _value(attribute: DeviceAttribute) -> AttributeValue:
    """None, which fails every selector, for a list or an attribute of a type that we do not know."""
    if attribute.version_value is not None:
        return Version(attribute.version_value)
    if attribute.string_value is not None:
        return attribute.string_value
    if attribute.bool_value is not None:
        return attribute.bool_value
    return attribute.int_value
