"""What resource slices offer: devices, each with its identity and what selectors said about it."""

from __future__ import annotations

from typing import NamedTuple

from mooring.cel.device import DeviceInput
from mooring.objects.resource import CounterSet, Device, ResourceSlice, ResourceSliceSpec


class PoolId(NamedTuple):
    driver: str
    pool: str

    def __str__(self) -> str:
        return f"{self.driver}/{self.pool}"


class DeviceId(NamedTuple):
    driver: str
    pool: str
    device: str

    def __str__(self) -> str:
        return f"{self.driver}/{self.pool}/{self.device}"


class OfferedDevice:
    """A device of a slice."""

    __slots__ = ("device", "has_policies", "id", "seen", "selected", "spec")

    def __init__(self, spec: ResourceSliceSpec, device: Device) -> None:
        self.spec = spec
        self.device = device
        self.id = DeviceId(spec.driver, spec.pool.name, device.name)
        self.has_policies = any(each.request_policy is not None for each in device.capacity.values())
        """Whether there are rules about how much of its capacity can be had."""
        self.seen: DeviceInput | None = None
        """As selectors see it; made when the first one asks."""
        self.selected: dict[str, bool] = {}
        """Selector → whether it selects this device: neither changes. The last ones; see `selectors`."""

    @property
    def chooses_its_nodes(self) -> bool:
        """Whether the device itself, not its slice, says on which nodes it can be used."""
        return bool(self.spec.per_device_node_selection)


class OfferedSlice:
    """A slice and its devices."""

    __slots__ = ("devices", "name", "pool_id", "spec")

    def __init__(self, found: ResourceSlice) -> None:
        self.name = found.name
        self.spec = found.spec
        self.pool_id = PoolId(found.spec.driver, found.spec.pool.name)
        self.devices = tuple(OfferedDevice(found.spec, device) for device in found.spec.devices)

    @property
    def generation(self) -> int:
        return self.spec.pool.generation

    @property
    def counter_sets(self) -> list[CounterSet]:
        return self.spec.shared_counters
