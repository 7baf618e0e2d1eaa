"""ResourceSlices: which pools and devices a node can use, in the order in which the allocator tries them.

Pools come by driver and name, their slices by name, devices as the slice lists them; pools with a device that has
binding conditions come last. Of a pool only the newest generation counts, and nothing of it is used while slices are
missing or contradict each other.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from mooring.framework import NodeView, Objects
from mooring.objects.core import NodeSelector
from mooring.objects.placement_rules import selector_matches
from mooring.objects.resource import CounterSet, Device, ResourceSlice, ResourceSliceSpec
from mooring.plugins.default.dynamic_resources.features import Features

if TYPE_CHECKING:
    from mooring.cel.device import DeviceInput


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


class SliceDevice:
    """A device of a slice."""

    __slots__ = ("cel_input", "device", "has_policies", "id", "selection_cache", "spec")

    def __init__(self, spec: ResourceSliceSpec, device: Device) -> None:
        self.spec = spec
        self.device = device
        self.id = DeviceId(spec.driver, spec.pool.name, device.name)
        self.has_policies = any(each.request_policy is not None for each in device.capacity.values())
        """Whether there are rules about how much of its capacity can be had."""
        self.cel_input: DeviceInput | None = None
        """The device as CEL selectors see it; computed for the first one."""
        self.selection_cache: dict[str, bool] = {}
        """CEL expression → whether it selects this device: neither changes. Bounded; see `device_requests.selects`."""

    @property
    def has_node_selection(self) -> bool:
        """Whether the device itself, not its slice, selects the nodes that can use it (perDeviceNodeSelection)."""
        return bool(self.spec.per_device_node_selection)


class DeviceSlice:
    """A slice and its devices."""

    __slots__ = ("devices", "name", "pool_id", "spec")

    def __init__(self, found: ResourceSlice) -> None:
        self.name = found.name
        self.spec = found.spec
        self.pool_id = PoolId(found.spec.driver, found.spec.pool.name)
        self.devices = tuple(SliceDevice(found.spec, device) for device in found.spec.devices)

    @property
    def generation(self) -> int:
        return self.spec.pool.generation

    @property
    def counter_sets(self) -> Sequence[CounterSet]:
        return self.spec.shared_counters


class Pool(msgspec.Struct):
    """What a node can use of a pool."""

    id: PoolId
    devices: tuple[SliceDevice, ...] = ()
    elsewhere: tuple[SliceDevice, ...] = ()
    """Devices of the pool that other nodes use: they count against the shared counters."""
    counters: Mapping[str, CounterSet] = msgspec.field(default_factory=dict)
    is_incomplete: bool = False
    is_invalid: bool = False

    @property
    def is_usable(self) -> bool:
        return not self.is_incomplete and not self.is_invalid

    @property
    def has_binding_conditions(self) -> bool:
        return any(offered.device.binding_conditions is not None for offered in self.devices)


class UsablePools(msgspec.Struct, frozen=True):
    """What a node can use."""

    pools: Sequence[Pool]
    candidates: Sequence[tuple[Pool, SliceDevice]]
    """Every device that can be tried, in order."""
    pool_ids: Sequence[PoolId]


def node_matches(
    node: NodeView, node_name: str | None, all_nodes: bool | None, node_selector: NodeSelector | None
) -> bool:
    """Whether the node selection of a slice or device includes this node."""
    if node_name:
        return node.name == node_name
    if all_nodes:
        return True
    return node_selector is not None and selector_matches(node_selector, node.name, node.labels)


class ResourceSliceIndex:
    """All slices, found by node and by pool."""

    def __init__(self, slices: Iterable[DeviceSlice], features: Features) -> None:
        self._features = features
        self._on_node: dict[str, list[DeviceSlice]] = defaultdict(list)
        self._for_any: list[DeviceSlice] = []
        self._by_pool: dict[PoolId, list[DeviceSlice]] = defaultdict(list)
        self._known: dict[str, tuple[Mapping[str, str], UsablePools]] = {}
        for each in slices:
            self._by_pool[each.pool_id].append(each)
            if each.spec.node_name and not each.counter_sets:
                self._on_node[each.spec.node_name].append(each)
            else:
                self._for_any.append(each)

    def usable_by(self, node: NodeView) -> UsablePools:
        """What the node can use. Cached: it depends on the node's name and labels alone."""
        known = self._known.get(node.name)
        if known is None or (known[0] is not node.labels and known[0] != node.labels):
            pools = self._pools_at(node)
            candidates = [(pool, offered) for pool in pools if pool.is_usable for offered in pool.devices]
            known = self._known[node.name] = (node.labels, UsablePools(pools, candidates, [pool.id for pool in pools]))
        return known[1]

    def possible_slices(self, node: NodeView) -> Sequence[DeviceSlice]:
        """The slices that the node may be able to use: those that name it, and those that name no node."""
        return [*self._on_node.get(node.name, ()), *self._for_any]

    def _pools_at(self, node: NodeView) -> Sequence[Pool]:
        newest: dict[PoolId, list[DeviceSlice]] = {}
        for each in self.possible_slices(node):
            if not self._concerns(each, node):
                continue
            known = newest.setdefault(each.pool_id, [])
            if not known or each.generation > known[0].generation:
                newest[each.pool_id] = [each]
            elif each.generation == known[0].generation:
                known.append(each)
        pools = [pool for slices in newest.values() if (pool := self._pool(slices)) is not None]
        return sorted(pools, key=lambda pool: (pool.has_binding_conditions, pool.id))

    def _concerns(self, each: DeviceSlice, node: NodeView) -> bool:
        spec = each.spec
        if not self._features.partitionable_devices and (
            spec.per_device_node_selection is not None or spec.shared_counters
        ):
            return False
        if spec.shared_counters:  # without them the pool's devices could not be used
            return True
        if spec.node_name or spec.all_nodes or spec.node_selector is not None:
            return node_matches(node, spec.node_name, spec.all_nodes, spec.node_selector)
        return bool(spec.per_device_node_selection) and any(
            node_matches(node, device.node_name, device.all_nodes, device.node_selector) for device in spec.devices
        )

    def _pool(self, slices: list[DeviceSlice]) -> Pool | None:
        """The pool that these slices, all that concern the node, are part of; None if a newer generation is coming."""
        pool_id, wanted = slices[0].pool_id, slices[0].spec.pool.resource_slice_count
        if len(slices) == wanted:
            return self._checked(slices, ())
        whole_pool = self._by_pool[pool_id]
        if any(each.generation > slices[0].generation for each in whole_pool):
            return None
        whole_pool = [each for each in whole_pool if each.generation == slices[0].generation]
        if len(whole_pool) != wanted:
            return Pool(pool_id, is_incomplete=True)
        here = {each.name for each in slices}
        return self._checked(slices, [each for each in whole_pool if each.name not in here])

    def _checked(self, slices: Sequence[DeviceSlice], elsewhere: Sequence[DeviceSlice]) -> Pool:
        pool_id = slices[0].pool_id
        slices = sorted(slices, key=lambda each: each.name)
        is_counted = self._features.partitionable_devices
        offering = [each for each in slices if not (is_counted and each.counter_sets)]
        devices = tuple(offered for each in offering for offered in each.devices)
        if len({offered.id for offered in devices}) < len(devices):
            return Pool(pool_id, is_invalid=True)
        if not is_counted:
            return Pool(pool_id, devices)
        listed = [counters for each in slices for counters in each.counter_sets]
        counters = {each.name: each for each in listed}
        others = tuple(offered for each in elsewhere for offered in each.devices)
        if len(counters) < len(listed) or not all(_counts(offered, counters) for offered in (*devices, *others)):
            return Pool(pool_id, is_invalid=True)
        return Pool(pool_id, devices, others, counters)


def _counts(offered: SliceDevice, counters: Mapping[str, CounterSet]) -> bool:
    """Whether all that the device consumes is there to be consumed."""
    return all(
        consumption.counter_set in counters
        and consumption.counters.keys() <= counters[consumption.counter_set].counters.keys()
        for consumption in offered.device.consumes_counters
    )


class ResourceSliceCache:
    """The current `ResourceSliceIndex`. Slices that did not change keep what is cached with their devices."""

    def __init__(self, slices: Objects[ResourceSlice], features: Features) -> None:
        self._slices = slices
        self._features = features
        self._read: dict[str, tuple[ResourceSlice, DeviceSlice]] = {}
        self._index: tuple[int, ResourceSliceIndex] | None = None

    def index(self) -> ResourceSliceIndex:
        version = self._slices.version
        if self._index is None or self._index[0] != version:
            read: dict[str, tuple[ResourceSlice, DeviceSlice]] = {}
            for each in sorted(self._slices.all(), key=lambda each: each.name):
                known = self._read.get(each.key)
                read[each.key] = known if known is not None and known[0] is each else (each, DeviceSlice(each))
            self._read = read
            self._index = version, ResourceSliceIndex((offered for _, offered in read.values()), self._features)
        return self._index[1]
