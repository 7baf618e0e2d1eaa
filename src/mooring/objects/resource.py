"""ResourceClaim, ResourceSlice and DeviceClass of resource.k8s.io/v1: requests for devices, devices and their classes.

Fields that only a driver reads are not here; opaque configuration is handed on as it came.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import msgspec

from mooring.objects.core import NodeSelector
from mooring.objects.meta import Kind, KubeObject
from mooring.objects.quantity import QuantityText
from mooring.objects.read_only import EMPTY, seal, seal_deeply
from mooring.objects.wire import Wire

GROUP = "resource.k8s.io"

EXACT_COUNT = "ExactCount"
ALL = "All"

EXTENDED_RESOURCE_CLAIM = "resource.kubernetes.io/extended-resource-claim"
"""The annotation of a claim that stands for a pod's extended resources."""

IMPLICIT_EXTENDED_RESOURCE = "deviceclass.resource.kubernetes.io/"
"""Before the name of a device class: the extended resource that every class provides."""

MOST_RESULTS = 32
"""How many devices one claim can hold."""

MOST_USERS = 256
"""For how many pods one claim can be reserved."""

MOST_ALTERNATIVES = 8
"""How many subrequests a request with `firstAvailable` can have."""

# What a claim requests.


class CelSelector(Wire):
    expression: str = ""


class DeviceSelector(Wire):
    cel: CelSelector | None = None


class DeviceToleration(Wire):
    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None


class CapacityRequirements(Wire):
    requests: Mapping[str, QuantityText] = EMPTY

    def __post_init__(self) -> None:
        seal(self, "requests")


class ExactDeviceRequest(Wire):
    device_class_name: str = ""
    selectors: tuple[DeviceSelector, ...] = ()
    allocation_mode: str = ""
    count: int = 0
    admin_access: bool | None = None
    tolerations: tuple[DeviceToleration, ...] = ()
    capacity: CapacityRequirements | None = None


class DeviceSubRequest(Wire):
    name: str = ""
    device_class_name: str = ""
    selectors: tuple[DeviceSelector, ...] = ()
    allocation_mode: str = ""
    count: int = 0
    tolerations: tuple[DeviceToleration, ...] = ()
    capacity: CapacityRequirements | None = None


class DeviceRequest(Wire):
    """Devices of one class, or the first of several alternatives that can be had."""

    name: str = ""
    exactly: ExactDeviceRequest | None = None
    first_available: tuple[DeviceSubRequest, ...] = ()


class DeviceConstraint(Wire):
    requests: tuple[str, ...] = ()
    match_attribute: str | None = None
    distinct_attribute: str | None = None


class DeviceClaimConfiguration(Wire):
    requests: tuple[str, ...] = ()
    opaque: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        seal_deeply(self, "opaque")


class DeviceClaim(Wire):
    requests: tuple[DeviceRequest, ...] = ()
    constraints: tuple[DeviceConstraint, ...] = ()
    config: tuple[DeviceClaimConfiguration, ...] = ()


class ResourceClaimSpec(Wire):
    devices: DeviceClaim = msgspec.field(default_factory=DeviceClaim)


# What was allocated to a claim.


class AllocatedDevice(Wire):
    """One device of an allocation, and the request that it is for."""

    request: str = ""
    driver: str = ""
    pool: str = ""
    device: str = ""
    admin_access: bool | None = None
    tolerations: tuple[DeviceToleration, ...] = ()
    binding_conditions: tuple[str, ...] = ()
    binding_failure_conditions: tuple[str, ...] = ()
    share_id: str | None = msgspec.field(default=None, name="shareID")
    consumed_capacity: Mapping[str, QuantityText] = EMPTY

    def __post_init__(self) -> None:
        seal(self, "consumed_capacity")


class AllocationConfiguration(Wire):
    source: str = ""
    requests: tuple[str, ...] = ()
    opaque: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        seal_deeply(self, "opaque")


class DeviceAllocation(Wire):
    results: tuple[AllocatedDevice, ...] = ()
    config: tuple[AllocationConfiguration, ...] = ()


class Allocation(Wire):
    devices: DeviceAllocation = msgspec.field(default_factory=DeviceAllocation)
    node_selector: NodeSelector | None = None
    allocation_timestamp: str | None = None


class ConsumerReference(Wire):
    """The user of a claim: in practice a pod."""

    api_group: str = ""
    resource: str = ""
    name: str = ""
    uid: str = ""


class DeviceCondition(Wire):
    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: str | None = None


class DeviceStatus(Wire):
    """What a driver reports about an allocated device."""

    driver: str = ""
    pool: str = ""
    device: str = ""
    share_id: str | None = msgspec.field(default=None, name="shareID")
    conditions: tuple[DeviceCondition, ...] = ()


class ResourceClaimStatus(Wire):
    allocation: Allocation | None = None
    reserved_for: tuple[ConsumerReference, ...] = ()
    devices: tuple[DeviceStatus, ...] = ()


class ResourceClaim(KubeObject, group=GROUP, version="v1", plural="resourceclaims"):
    """Devices that a pod needs; once allocated, which ones."""

    KIND: ClassVar[Kind]

    spec: ResourceClaimSpec = msgspec.field(default_factory=ResourceClaimSpec)
    status: ResourceClaimStatus = msgspec.field(default_factory=ResourceClaimStatus)


# What drivers offer.


class DeviceAttribute(Wire):
    """One of these is given."""

    int_value: int | None = msgspec.field(default=None, name="int")
    bool_value: bool | None = msgspec.field(default=None, name="bool")
    string_value: str | None = msgspec.field(default=None, name="string")
    version_value: str | None = msgspec.field(default=None, name="version")


class CapacityRange(Wire):
    min: QuantityText | None = None
    max: QuantityText | None = None
    step: QuantityText | None = None


class CapacityPolicy(Wire):
    """Which shares of a capacity may be requested."""

    default: QuantityText | None = None
    valid_values: tuple[QuantityText, ...] = ()
    valid_range: CapacityRange | None = None


class DeviceCapacity(Wire):
    value: QuantityText = 0
    request_policy: CapacityPolicy | None = None


class Counter(Wire):
    value: QuantityText = 0


class CounterSet(Wire):
    """Amounts that the devices of a pool share."""

    name: str = ""
    counters: Mapping[str, Counter] = EMPTY

    def __post_init__(self) -> None:
        seal(self, "counters")


class CounterConsumption(Wire):
    counter_set: str = ""
    counters: Mapping[str, Counter] = EMPTY

    def __post_init__(self) -> None:
        seal(self, "counters")


class DeviceTaint(Wire):
    key: str = ""
    value: str = ""
    effect: str = ""


class Device(Wire):
    name: str = ""
    attributes: Mapping[str, DeviceAttribute] = EMPTY
    capacity: Mapping[str, DeviceCapacity] = EMPTY
    consumes_counters: tuple[CounterConsumption, ...] = ()
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool | None = None
    taints: tuple[DeviceTaint, ...] = ()
    binds_to_node: bool | None = None
    binding_conditions: tuple[str, ...] | None = None
    binding_failure_conditions: tuple[str, ...] | None = None
    allow_multiple_allocations: bool | None = None

    def __post_init__(self) -> None:
        seal(self, "attributes", "capacity")


class ResourcePool(Wire):
    name: str = ""
    generation: int = 0
    resource_slice_count: int = 0


class ResourceSliceSpec(Wire):
    driver: str = ""
    pool: ResourcePool = msgspec.field(default_factory=ResourcePool)
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool | None = None
    per_device_node_selection: bool | None = None
    devices: tuple[Device, ...] = ()
    shared_counters: tuple[CounterSet, ...] = ()


class ResourceSlice(KubeObject, group=GROUP, version="v1", plural="resourceslices", scope="Cluster"):
    """Some of the devices of a pool, or the counters that they share."""

    KIND: ClassVar[Kind]

    spec: ResourceSliceSpec = msgspec.field(default_factory=ResourceSliceSpec)


# What kinds of devices there are.


class DeviceClassConfiguration(Wire):
    opaque: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        seal_deeply(self, "opaque")


class DeviceClassSpec(Wire):
    selectors: tuple[DeviceSelector, ...] = ()
    config: tuple[DeviceClassConfiguration, ...] = ()
    extended_resource_name: str | None = None


class DeviceClass(KubeObject, group=GROUP, version="v1", plural="deviceclasses", scope="Cluster"):
    """A kind of device that claims request by name."""

    KIND: ClassVar[Kind]

    spec: DeviceClassSpec = msgspec.field(default_factory=DeviceClassSpec)
