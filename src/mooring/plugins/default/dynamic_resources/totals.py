"""How many devices of a class a node has, and how many of them are in use: for scores of extended resources."""

from __future__ import annotations

from collections.abc import Iterator

from mooring.framework import ClaimsInFlight, FeatureGates, IntArray, NodeRows, NodeView, Objects
from mooring.objects.resource import DeviceClass, ResourceClaim, ResourceSlice
from mooring.plugins.default.dynamic_resources.extended import BackedResources
from mooring.plugins.default.dynamic_resources.failures import AllocationFault
from mooring.plugins.default.dynamic_resources.features import Features
from mooring.plugins.default.dynamic_resources.in_use import InUse
from mooring.plugins.default.dynamic_resources.offers import OfferedDevice, OfferedSlice
from mooring.plugins.default.dynamic_resources.pools import Inventories, node_matches
from mooring.plugins.default.dynamic_resources.requests import expressions_of
from mooring.plugins.default.dynamic_resources.selectors import selects


class DeviceTotals:
    """Devices counted as an extended resource is: so many there, so many of them taken."""

    def __init__(
        self,
        classes: Objects[DeviceClass],
        claims: Objects[ResourceClaim],
        slices: Objects[ResourceSlice],
        in_flight: ClaimsInFlight,
        gates: FeatureGates,
    ) -> None:
        features = Features.of(gates)
        self._is_on = features.extended_resources
        self._classes = classes
        self._backed = BackedResources(classes)
        self._inventories = Inventories(slices, features)
        self._in_use = InUse(claims, in_flight, features)

    def provide(self, resource: str) -> bool:
        """Whether a node that lacks the resource may have devices instead: DynamicResources looks after that."""
        return self._is_on and "/" in resource and self._backed.class_of(resource) is not None

    def usage(self, node: NodeView, resource: str, used: int, capacity: int) -> tuple[int, int]:
        """How much of the resource is used, of how much. Where the node lacks it, devices may count instead."""
        if capacity == 0 and self.provide(resource):
            devices, allocated = self.at(node, resource)
            if devices:
                return allocated, devices
        return used, capacity

    def usage_of_nodes(
        self, nodes: NodeRows, resource: str, used: IntArray, capacity: IntArray
    ) -> tuple[IntArray, IntArray]:
        """`usage`, for many nodes."""
        if not self.provide(resource):
            return used, capacity
        used, capacity = used.copy(), capacity.copy()
        for place, node in enumerate(nodes):
            used[place], capacity[place] = self.usage(node, resource, int(used[place]), int(capacity[place]))
        return used, capacity

    def at(self, node: NodeView, resource: str) -> tuple[int, int]:
        """How many devices provide the resource on the node, and how many of them are allocated."""
        name = self._backed.class_of(resource)
        device_class = self._classes.get(name) if name is not None else None
        if device_class is None:
            return 0, 0
        selectors = expressions_of(device_class)
        try:
            devices = [
                offered for offered in self._usable(node) if all(selects(*selector, offered) for selector in selectors)
            ]
        except AllocationFault:  # a selector without a value for some device: nothing can be said about the node
            return 0, 0
        return len(devices), sum(self._in_use.is_allocated(offered.id) for offered in devices)

    def _usable(self, node: NodeView) -> Iterator[OfferedDevice]:
        """What slices offer to the node, whatever the state of their pools."""
        for each in self._inventories.now().near(node):
            if each.spec.per_device_node_selection:
                for offered in each.devices:
                    device = offered.device
                    if node_matches(node, device.node_name, device.all_nodes, device.node_selector):
                        yield offered
            elif _is_for(each, node):
                yield from each.devices


def _is_for(each: OfferedSlice, node: NodeView) -> bool:
    spec = each.spec
    if not spec.node_name and not spec.all_nodes and spec.node_selector is None:
        return True
    return node_matches(node, spec.node_name, spec.all_nodes, spec.node_selector)
