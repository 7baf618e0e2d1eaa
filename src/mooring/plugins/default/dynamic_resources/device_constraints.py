"""Constraints of a claim: attributes that its devices must share (matchAttribute) or differ in (distinctAttribute).

The allocator adds and removes devices while it searches. A constraint that rejects a set of devices rejects every
larger one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from mooring.objects.resource import DeviceAttribute, DeviceConstraint, ResourceClaim
from mooring.plugins.default.dynamic_resources.device_requests import AllocationFault
from mooring.plugins.default.dynamic_resources.features import Features
from mooring.plugins.default.dynamic_resources.resource_slices import SliceDevice

Value = tuple[str, object]


class AttributeConstraint(ABC):
    """A rule about an attribute, over the devices of some requests (none named: all)."""

    def __init__(self, attribute: str, requests: Sequence[str]) -> None:
        self._attribute = attribute
        self._requests = frozenset(requests)

    def add(self, request: str, alternative: str | None, offered: SliceDevice) -> bool:
        """Whether the device may join; if so, it has."""
        if not self._concerns(request, alternative):
            return True
        attribute = attribute_of(offered, self._attribute)
        return attribute is not None and self._admit(request, value_of(attribute))

    def remove(self, request: str, alternative: str | None) -> None:
        """A device that joined for this request leaves."""
        if self._concerns(request, alternative):
            self._release(request)

    def _concerns(self, request: str, alternative: str | None) -> bool:
        return (
            not self._requests
            or request in self._requests
            or (alternative is not None and f"{request}/{alternative}" in self._requests)
        )

    @abstractmethod
    def _admit(self, request: str, value: Value | None) -> bool: ...

    @abstractmethod
    def _release(self, request: str) -> None: ...


class SameAttribute(AttributeConstraint):
    """All devices have the attribute, with one value."""

    def __init__(self, attribute: str, requests: Sequence[str]) -> None:
        super().__init__(attribute, requests)
        self._value: Value | None = None
        self._devices = 0

    def _admit(self, request: str, value: Value | None) -> bool:
        if self._devices == 0:
            self._value = value
        elif value is None or value != self._value:
            return False
        self._devices += 1
        return True

    def _release(self, request: str) -> None:
        self._devices -= 1


class DistinctAttribute(AttributeConstraint):
    """All devices have the attribute, with different values.

    As in kube-scheduler, only the last device of each request is remembered, so that a request for several devices
    may get the same value twice; and once one is given back, the request's others are forgotten.
    """

    def __init__(self, attribute: str, requests: Sequence[str]) -> None:
        super().__init__(attribute, requests)
        self._values: dict[str, Value | None] = {}
        self._devices = 0

    def _admit(self, request: str, value: Value | None) -> bool:
        if self._devices and self._values and (value is None or value in self._values.values()):
            return False
        self._values[request] = value
        self._devices += 1
        return True

    def _release(self, request: str) -> None:
        self._values.pop(request, None)
        self._devices -= 1


def constraints_of(claim: ResourceClaim, features: Features) -> list[AttributeConstraint]:
    """Fresh constraints, with no device yet."""
    return [_constraint(claim, at, each, features) for at, each in enumerate(claim.spec.devices.constraints)]


def _constraint(claim: ResourceClaim, at: int, constraint: DeviceConstraint, features: Features) -> AttributeConstraint:
    if constraint.match_attribute is not None:
        return SameAttribute(constraint.match_attribute, constraint.requests)
    if constraint.distinct_attribute is not None and features.newer_allocator:
        return DistinctAttribute(constraint.distinct_attribute, constraint.requests)
    raise AllocationFault(f"claim {claim.key}, constraint #{at}: empty constraint (unsupported constraint type?)")


def attribute_of(offered: SliceDevice, name: str) -> DeviceAttribute | None:
    """The attribute of that full name; the driver's own attributes may leave their domain out."""
    attributes = offered.device.attributes
    if name in attributes:
        return attributes[name]
    domain, slash, short = name.partition("/")
    return attributes.get(short) if slash and domain == offered.id.driver else None


def value_of(attribute: DeviceAttribute) -> Value | None:
    """What can be compared: values of different types differ. None for a type that we do not know."""
    if attribute.string_value is not None:
        return "string", attribute.string_value
    if attribute.int_value is not None:
        return "int", attribute.int_value
    if attribute.bool_value is not None:
        return "bool", attribute.bool_value
    if attribute.version_value is not None:
        return "version", attribute.version_value
    return None
