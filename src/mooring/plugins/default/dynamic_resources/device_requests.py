"""Device requests of claims: alternatives, class, CEL selectors and tolerations, ready for the allocator."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from mooring.base.errors import Fault
from mooring.framework import Objects
from mooring.objects.quantity import QuantityText
from mooring.objects.resource import (
    ALL,
    EXACT_COUNT,
    Device,
    DeviceClass,
    DeviceRequest,
    DeviceSelector,
    DeviceSubRequest,
    DeviceTaint,
    DeviceToleration,
    ExactDeviceRequest,
    ResourceClaim,
)
from mooring.plugins.default.dynamic_resources.features import Features
from mooring.plugins.default.dynamic_resources.resource_slices import SliceDevice

if TYPE_CHECKING:
    from mooring.cel.budget import Check

SCHEDULING_EFFECTS = ("NoSchedule", "NoExecute")
"""Taints of other effects are ignored."""


class AllocationFault(Fault):
    """Something is wrong with a claim, a class or a pool: the attempt fails and the pod is retried with backoff."""


class PoolsInvalid(Exception):
    """Pools of this node are invalid: the node is rejected with this text, other nodes are still searched."""


class ResolvedRequest(msgspec.Struct, frozen=True, eq=False):
    """One request, or one alternative of a request."""

    request: str
    alternative: str | None
    """The name of the subrequest, if this is one."""
    device_class: DeviceClass
    selectors: Sequence[tuple[str, str]]
    """(expression, its origin as errors name it), those of the class first."""
    takes_all: bool
    count: int
    has_admin_access: bool
    tolerations: Sequence[DeviceToleration]
    capacity: Mapping[str, QuantityText]

    @property
    def name(self) -> str:
        """As errors name it: of a subrequest only its own name."""
        return self.alternative if self.alternative is not None else self.request

    @property
    def reference(self) -> str:
        """As allocations name it."""
        return f"{self.request}/{self.alternative}" if self.alternative is not None else self.request


class RequestAlternatives(msgspec.Struct, frozen=True, eq=False):
    """A request: one of its alternatives, in the order of preference, is to be found. Most have only one."""

    alternatives: Sequence[ResolvedRequest]
    is_prioritized: bool


class ClaimToAllocate:
    """A claim to allocate. A mistake in it is raised when the first node is searched, as upstream does."""

    def __init__(self, claim: ResourceClaim, classes: Objects[DeviceClass], features: Features) -> None:
        self.claim = claim
        self._classes = classes
        self._features = features
        self._requests: Sequence[RequestAlternatives] | None = None

    @property
    def signature(self) -> Hashable:
        """Equal for claims that request the same of the same device classes."""
        return self._classes.version, msgspec.msgpack.encode(self.claim.spec)

    @property
    def requests(self) -> Sequence[RequestAlternatives]:
        """Raises `AllocationFault` for the first mistake."""
        if self._requests is None:
            self._requests = [self._wanted(request) for request in self.claim.spec.devices.requests]
        return self._requests

    def _wanted(self, request: DeviceRequest) -> RequestAlternatives:
        self._check_gates(request)
        if request.first_available:
            return RequestAlternatives(
                [self._alternative(request.name, each.name, each) for each in request.first_available], True
            )
        exactly = request.exactly or ExactDeviceRequest()
        return RequestAlternatives([self._alternative(request.name, None, exactly)], False)

    def _check_gates(self, request: DeviceRequest) -> None:
        key = self.claim.key
        if request.first_available and not self._features.prioritized_list:
            raise AllocationFault(
                f"claim {key}, request {request.name}: has subrequests, but the DRAPrioritizedList feature is disabled"
            )
        if not self._features.consumable_capacity and self._features.newer_allocator:
            disabled = "has capacity requests, but the DRAConsumableCapacity feature is disabled"
            if request.exactly is not None and request.exactly.capacity is not None:
                raise AllocationFault(f"claim {key}, request {request.name}: {disabled}")
            for each in request.first_available:
                if each.capacity is not None:
                    raise AllocationFault(f"claim {key}, subrequest {each.name}: {disabled}")

    def _alternative(
        self, request: str, alternative: str | None, spec: ExactDeviceRequest | DeviceSubRequest
    ) -> ResolvedRequest:
        name = alternative if alternative is not None else request
        where = f"claim {self.claim.key}, request {name}"
        for at, selector in enumerate(spec.selectors):
            if selector.cel is None:
                raise AllocationFault(f"{where}, selector #{at}: CEL expression empty (unsupported selector type?)")
        admin_access = spec.admin_access if isinstance(spec, ExactDeviceRequest) else None
        if admin_access is not None and not self._features.admin_access:
            raise AllocationFault(f"{where}: admin access is requested, but the feature is disabled")
        if not spec.device_class_name:
            raise AllocationFault(f"{where}: missing device class name (unsupported request type?)")
        device_class = self._classes.get(spec.device_class_name)
        if device_class is None:
            class_name = spec.device_class_name
            raise AllocationFault(
                f"{where}: could not retrieve device class {class_name}:"
                f' deviceclass.resource.k8s.io "{class_name}" not found'
            )
        if spec.allocation_mode not in (EXACT_COUNT, ALL):
            raise AllocationFault(f"{where}: unsupported count mode {spec.allocation_mode}")
        return ResolvedRequest(
            request,
            alternative,
            device_class,
            [
                *expressions_of(device_class),
                *_expressions(spec.selectors, f"claim {self.claim.key}"),
            ],
            spec.allocation_mode == ALL,
            spec.count,
            bool(admin_access),
            spec.tolerations,
            spec.capacity.requests if spec.capacity is not None else {},
        )


def expressions_of(device_class: DeviceClass) -> list[tuple[str, str]]:
    """The selectors of a class, each with its origin for errors."""
    return list(_expressions(device_class.spec.selectors, f"class {device_class.name}"))


def _expressions(selectors: Sequence[DeviceSelector], origin: str) -> Iterator[tuple[str, str]]:
    for at, selector in enumerate(selectors):
        yield selector.cel.expression if selector.cel is not None else "", f"{origin}: selector #{at}"


def selects(expression: str, origin: str, offered: SliceDevice, check: Check | None = None) -> bool:
    """Raises `AllocationFault`, which names the selector, where the expression does not compile or has no value.

    `check` raises when the search must end; it is called before and during an evaluation.
    """
    known = offered.selection_cache.get(expression)
    if known is None:
        # Here: to import CEL takes a tenth of a scheduler's start, and most clusters have no device to select.
        from mooring.plugins.default.dynamic_resources.device_selectors import evaluate

        known = evaluate(expression, origin, offered, check)
    return known


def has_untolerated_taint(device: Device, tolerations: Sequence[DeviceToleration]) -> bool:
    return any(
        taint.effect in SCHEDULING_EFFECTS and not any(tolerates(toleration, taint) for toleration in tolerations)
        for taint in device.taints
    )


def tolerates(toleration: DeviceToleration, taint: DeviceTaint) -> bool:
    """No effect means any, no key any; without operator the values must be equal."""
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator in ("", "Equal"):
        return toleration.value == taint.value
    return toleration.operator == "Exists"
