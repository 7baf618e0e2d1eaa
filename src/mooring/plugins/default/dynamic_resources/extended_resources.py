"""Extended resources that device classes provide: a request for `example.com/gpu: 2` becomes a request for devices.

Every class provides `deviceclass.resource.kubernetes.io/<class>`, and the resource that its spec names. On a node that
has the resource itself (a device plugin provides it) nothing changes; elsewhere the pod's containers get a claim that
exists in memory until the pod is bound.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

import msgspec

from mooring.framework import ClaimsInFlight, FeatureGates, IntArray, NodeRows, NodeView, Objects, Pod
from mooring.objects.core import Container, ContainerExtendedResourceRequest
from mooring.objects.meta import ObjectMeta, OwnerReference
from mooring.objects.quantity import exact
from mooring.objects.resource import (
    EXACT_COUNT,
    EXTENDED_RESOURCE_CLAIM,
    IMPLICIT_EXTENDED_RESOURCE,
    DeviceClaim,
    DeviceClass,
    DeviceRequest,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimSpec,
    ResourceSlice,
)
from mooring.plugins.default.dynamic_resources.allocated_devices import AllocatedDevices, DeviceHolders
from mooring.plugins.default.dynamic_resources.device_requests import AllocationFault, expressions_of, selects
from mooring.plugins.default.dynamic_resources.features import Features
from mooring.plugins.default.dynamic_resources.resource_slices import (
    DeviceSlice,
    PoolId,
    ResourceSliceCache,
    ResourceSliceIndex,
    SliceDevice,
    node_matches,
)

IN_MEMORY = "<extended-resources>"
"""The name of a claim that is not written yet; no name of a real one."""
ResourceMapping = ContainerExtendedResourceRequest


def may_be_device_backed(resource: str) -> bool:
    """Whether device classes can provide the resource: extended ones, and those named after a class."""
    if resource.startswith(IMPLICIT_EXTENDED_RESOURCE):
        return True
    return "/" in resource and "kubernetes.io/" not in resource and not resource.startswith("requests.")


class ExtendedResourceCache:
    """Which device class provides which extended resource."""

    def __init__(self, classes: Objects[DeviceClass]) -> None:
        self._classes = classes
        self._version: int | None = None
        self._provider: dict[str, DeviceClass] = {}

    def class_of(self, resource: str) -> str | None:
        """The name of the class that provides it."""
        if self._version != self._classes.version:
            self._version = self._classes.version
            self._provider = _providers(self._classes.all())
        provider = self._provider.get(resource)
        return provider.name if provider is not None else None


def _providers(classes: Iterable[DeviceClass]) -> dict[str, DeviceClass]:
    """Of several classes that name a resource the newest counts; if equally new, the first by name.

    As kube-scheduler does it after a start, when classes come in the order of their names: one that comes later and
    does not count is not known by its own name either.
    """
    providers: dict[str, DeviceClass] = {}
    for each in sorted(classes, key=lambda each: each.name):
        named = each.spec.extended_resource_name
        if named is not None:
            other = providers.get(named)
            if other is not None and not _replaces(each, other):
                continue
            providers[named] = each
        providers[IMPLICIT_EXTENDED_RESOURCE + each.name] = each
    return providers


def _replaces(one: DeviceClass, other: DeviceClass) -> bool:
    created, then = one.metadata.creation_timestamp or "", other.metadata.creation_timestamp or ""
    return created > then or (created == then and one.name < other.name)


def pods_of_extended_claim(claim: ResourceClaim) -> Iterable[str]:
    """The pods (uids) that this claim was made for because of extended resources: a key for an index."""
    if claim.metadata.annotations.get(EXTENDED_RESOURCE_CLAIM) != "true":
        return ()
    return {owner.uid for owner in claim.metadata.owner_references if owner.controller}


def claim_in_memory(pod: Pod) -> ResourceClaim:
    """The claim for all extended resources of the pod; what it requests depends on the node."""
    owner = OwnerReference(api_version="v1", kind="Pod", name=pod.name, uid=pod.uid, controller=True)
    return ResourceClaim(
        metadata=ObjectMeta(
            name=IN_MEMORY,
            namespace=pod.namespace,
            uid=f"{pod.uid}-extended-resources",
            annotations={EXTENDED_RESOURCE_CLAIM: "true"},
            owner_references=(owner,),
        )
    )


class ExtendedRequests(msgspec.Struct):
    """What a pod's extended resources request where devices provide them, and which container gets which."""

    requests: list[DeviceRequest] = msgspec.field(default_factory=list)
    mappings: list[ResourceMapping] = msgspec.field(default_factory=list)

    def claim(self, extended_claim: ResourceClaim) -> ResourceClaim:
        spec = ResourceClaimSpec(devices=DeviceClaim(requests=tuple(self.requests)))
        return ResourceClaim(metadata=extended_claim.metadata, spec=spec)


def lacking(pod: Pod, node: NodeView, cache: ExtendedResourceCache) -> Collection[str] | None:
    """The pod's extended resources that devices must provide on this node; None if one of them cannot be provided."""
    wanted = []
    for resource, amount in pod.requests.amounts.items():
        if not amount or not may_be_device_backed(resource):
            continue
        if node.allocatable(resource) == 0 and cache.class_of(resource) is not None:
            wanted.append(resource)
        elif not node.offers(resource):
            return None
    return wanted


def extended_requests(pod: Pod, resources: Collection[str], cache: ExtendedResourceCache) -> ExtendedRequests:
    """Requests for these resources, and which container has which.

    Containers that live as long as the pod have a request each. Init containers run before them, one by one: they use
    what later containers will have, and share one request for what they need beyond.
    """
    made = ExtendedRequests()
    for resource in sorted(resources):
        device_class = cache.class_of(resource)
        if device_class is not None:
            _add_resource(pod, resource, device_class, made)
    made.requests.sort(key=lambda request: request.name)
    return made


def _add_resource(pod: Pod, resource: str, device_class: str, made: ExtendedRequests) -> None:
    containers = [*pod.spec.init_containers, *pod.spec.containers]
    passing = [
        place for place, container in enumerate(pod.spec.init_containers) if container.restart_policy != "Always"
    ]
    lasting: list[DeviceRequest | None] = [None] * len(containers)
    for place, container in enumerate(containers):
        if place not in passing:
            lasting[place] = _request(place, container, resource, device_class, (), made.mappings)
    largest: DeviceRequest | None = None
    names: set[str] = set()
    mappings: list[ResourceMapping] = []
    for place in passing:
        request = _request(place, containers[place], resource, device_class, lasting[place:], mappings)
        if request is not None:
            names.add(request.name)
            if largest is None or _count(largest) < _count(request):
                largest = request
    if largest is not None:
        mappings = [
            msgspec.structs.replace(each, request_name=largest.name) if each.request_name in names else each
            for each in mappings
        ]
        made.requests.append(largest)
    made.requests += [request for request in lasting if request is not None]
    made.mappings += mappings


def _request(
    place: int,
    container: Container,
    resource: str,
    device_class: str,
    reusable: Sequence[DeviceRequest | None],
    mappings: list[ResourceMapping],
) -> DeviceRequest | None:
    """What the container requests beyond what it can reuse, if anything; what it uses is added to the mappings."""
    requests = container.resources.requests
    amount = exact(requests.get(resource, 0))
    if not amount or amount.denominator != 1:
        return None
    missing = amount.numerator

    def use(request: str) -> None:
        mappings.append(ResourceMapping(container_name=container.name, resource_name=resource, request_name=request))

    for other in reusable:
        if other is not None:
            use(other.name)
            missing -= _count(other)
            if missing <= 0:
                return None
    name = f"container-{place}-request-{sorted(requests).index(resource)}"
    use(name)
    exactly = ExactDeviceRequest(device_class_name=device_class, allocation_mode=EXACT_COUNT, count=missing)
    return DeviceRequest(name=name, exactly=exactly)


def _count(request: DeviceRequest) -> int:
    return request.exactly.count if request.exactly is not None else 0


class _Counted(msgspec.Struct):
    """Devices of a node that provide a resource, with what they depend on; and how many of them are allocated."""

    index: ResourceSliceIndex
    labels: Mapping[str, str]
    by: DeviceClass
    devices: Sequence[SliceDevice]
    pools: Sequence[PoolId]
    holders: Sequence[ResourceClaim] = ()
    allocated: int | None = None


class ExtendedResourceUsage:
    """How much of an extended resource a node's devices provide, and how much of it is allocated: for scores."""

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
        self._resource_cache = ExtendedResourceCache(classes)
        self._slice_cache = ResourceSliceCache(slices, features)
        self._allocated_devices = AllocatedDevices(claims, in_flight, features)
        self._holders = DeviceHolders(claims, in_flight)
        self._counted: dict[tuple[str, str], _Counted] = {}
        """By node and resource."""

    def is_device_backed(self, resource: str) -> bool:
        """Whether a node that lacks the resource may have devices instead: DynamicResources checks that."""
        return self._is_on and "/" in resource and self._resource_cache.class_of(resource) is not None

    def usage(self, node: NodeView, resource: str, used: int, capacity: int) -> tuple[int, int]:
        """How much of the resource is used, of how much. Where the node lacks it, devices may count instead."""
        if capacity == 0 and self.is_device_backed(resource):
            devices, allocated = self.at(node, resource)
            if devices:
                return allocated, devices
        return used, capacity

    def usage_of_nodes(
        self, nodes: NodeRows, resource: str, used: IntArray, capacity: IntArray
    ) -> tuple[IntArray, IntArray]:
        """`usage`, for many nodes."""
        if not self.is_device_backed(resource):
            return used, capacity
        used, capacity = used.copy(), capacity.copy()
        for place, node in enumerate(nodes):
            used[place], capacity[place] = self.usage(node, resource, int(used[place]), int(capacity[place]))
        return used, capacity

    def at(self, node: NodeView, resource: str) -> tuple[int, int]:
        """How many devices provide the resource on the node, and how many of them are allocated."""
        name = self._resource_cache.class_of(resource)
        device_class = self._classes.get(name) if name is not None else None
        if device_class is None:
            return 0, 0
        index = self._slice_cache.index()
        known = self._counted.get((node.name, resource))
        if known is None or known.index is not index or known.labels != node.labels or known.by is not device_class:
            known = self._counted[node.name, resource] = self._offered(node, device_class, index)
        holders = self._holders.of(known.pools)
        if known.allocated is None or known.holders != holders:
            known.holders = holders
            known.allocated = sum(self._allocated_devices.is_allocated(offered.id) for offered in known.devices)
        return len(known.devices), known.allocated

    def _offered(self, node: NodeView, device_class: DeviceClass, index: ResourceSliceIndex) -> _Counted:
        """The devices that the class selects of those that the node can use."""
        selectors = expressions_of(device_class)
        try:
            devices = [
                offered
                for offered in self._usable(node, index)
                if all(selects(*selector, offered) for selector in selectors)
            ]
        except AllocationFault:  # a selector has no value for some device: the node's devices cannot be counted
            devices = []
        pools = {PoolId(offered.id.driver, offered.id.pool): None for offered in devices}
        return _Counted(index, node.labels, device_class, devices, list(pools))

    def _usable(self, node: NodeView, index: ResourceSliceIndex) -> Iterator[SliceDevice]:
        """What slices offer to the node, whatever the state of their pools."""
        for each in index.possible_slices(node):
            if each.spec.per_device_node_selection:
                for offered in each.devices:
                    device = offered.device
                    if node_matches(node, device.node_name, device.all_nodes, device.node_selector):
                        yield offered
            elif _is_for(each, node):
                yield from each.devices


def _is_for(each: DeviceSlice, node: NodeView) -> bool:
    spec = each.spec
    if not spec.node_name and not spec.all_nodes and spec.node_selector is None:
        return True
    return node_matches(node, spec.node_name, spec.all_nodes, spec.node_selector)
