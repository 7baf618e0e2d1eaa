"""Devices, slices, classes and claims for tests, and a small cluster that has them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec.structs import force_setattr

from mooring.framework import NodeView, Pod, Rejection
from mooring.objects import ObjectMeta, OwnerReference
from mooring.objects.core import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, PodResourceClaim
from mooring.objects.quantity import QuantityText
from mooring.objects.resource import (
    ALL,
    AllocatedDevice,
    Allocation,
    CapacityRequirements,
    CelSelector,
    ConsumerReference,
    Counter,
    CounterConsumption,
    CounterSet,
    Device,
    DeviceAllocation,
    DeviceAttribute,
    DeviceCapacity,
    DeviceClaim,
    DeviceClass,
    DeviceClassSpec,
    DeviceConstraint,
    DeviceRequest,
    DeviceSelector,
    DeviceSubRequest,
    DeviceTaint,
    DeviceToleration,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimSpec,
    ResourceClaimStatus,
    ResourcePool,
    ResourceSlice,
    ResourceSliceSpec,
)
from mooring.plugins.default.dynamic_resources import DynamicResources
from mooring.plugins.default.dynamic_resources.pod_claims import PodClaims
from mooring.testing import Services, a_cluster, a_cycle, a_node, a_plugin, a_pod

DRIVER = "gpu.example.com"
Attribute = str | int | bool


def a_device(
    name: str = "gpu-0",
    *,
    capacity: Mapping[str, QuantityText | DeviceCapacity] | None = None,
    taint: str = "",
    consumes: Mapping[str, QuantityText] | None = None,
    shareable: bool = False,
    conditions: Sequence[str] | None = None,
    failures: Sequence[str] | None = None,
    binds_to_node: bool = False,
    node: str | None = None,
    everywhere: bool | None = None,
    selector: NodeSelector | None = None,
    **attributes: Attribute,
) -> Device:
    """A device; `consumes` is of the counter set "counters", `taint` as "key=value:Effect"."""
    head, _, effect = taint.rpartition(":")
    key, _, value = head.partition("=")
    return Device(
        name=name,
        attributes={each: _attribute(found) for each, found in attributes.items()},
        capacity={
            each: found if isinstance(found, DeviceCapacity) else DeviceCapacity(value=found)
            for each, found in (capacity or {}).items()
        },
        taints=(DeviceTaint(key=key, value=value, effect=effect),) if taint else (),
        consumes_counters=(
            (CounterConsumption(counter_set="counters", counters=_counters(consumes)),) if consumes else ()
        ),
        allow_multiple_allocations=shareable or None,
        binding_conditions=None if conditions is None else tuple(conditions),
        binding_failure_conditions=None if failures is None else tuple(failures),
        binds_to_node=binds_to_node or None,
        node_name=node,
        all_nodes=everywhere,
        node_selector=selector,
    )


def devices(*names: str) -> list[Device]:
    """Devices that differ in name only."""
    return [a_device(name) for name in names]


def _attribute(value: Attribute) -> DeviceAttribute:
    if isinstance(value, bool):
        return DeviceAttribute(bool_value=value)
    return DeviceAttribute(int_value=value) if isinstance(value, int) else DeviceAttribute(string_value=value)


def _counters(amounts: Mapping[str, QuantityText]) -> dict[str, Counter]:
    return {name: Counter(value=amount) for name, amount in amounts.items()}


def a_slice(
    *offered: Device,
    node: str | None = "node",
    name: str | None = None,
    pool: str | None = None,
    driver: str = DRIVER,
    generation: int = 1,
    of: int = 1,
    counters: Mapping[str, QuantityText] | None = None,
    everywhere: bool | None = None,
    selector: NodeSelector | None = None,
    per_device: bool | None = None,
) -> ResourceSlice:
    """A slice of a node's pool; `of` is how many slices the pool has."""
    if everywhere or selector is not None or per_device:
        node = None
    return ResourceSlice(
        metadata=ObjectMeta(name=name or f"{pool or node}-slice", uid=f"slice-{name or pool or node}"),
        spec=ResourceSliceSpec(
            driver=driver,
            pool=ResourcePool(name=pool or node or "pool", generation=generation, resource_slice_count=of),
            node_name=node,
            all_nodes=everywhere,
            node_selector=selector,
            per_device_node_selection=per_device,
            devices=tuple(offered),
            shared_counters=tuple([CounterSet(name="counters", counters=_counters(counters))] if counters else []),
        ),
    )


def a_class(name: str = "gpu", *selectors: str, provides: str | None = None, created: str | None = None) -> DeviceClass:
    return DeviceClass(
        metadata=ObjectMeta(name=name, uid=f"class-{name}", creation_timestamp=created),
        spec=DeviceClassSpec(selectors=tuple(_selectors(selectors)), extended_resource_name=provides),
    )


def _selectors(expressions: Iterable[str]) -> list[DeviceSelector]:
    return [DeviceSelector(cel=CelSelector(expression=each)) for each in expressions]


def wants(
    name: str = "r",
    count: int = 1,
    *selectors: str,
    all: bool = False,
    of: str = "gpu",
    admin: bool | None = None,
    tolerating: Sequence[DeviceToleration] = (),
    capacity: Mapping[str, QuantityText] | None = None,
) -> DeviceRequest:
    """A request for so many devices (or all) of a class."""
    return DeviceRequest(
        name=name,
        exactly=ExactDeviceRequest(
            device_class_name=of,
            selectors=tuple(_selectors(selectors)),
            allocation_mode=ALL if all else "ExactCount",
            count=0 if all else count,
            admin_access=admin,
            tolerations=tuple(tolerating),
            capacity=None if capacity is None else CapacityRequirements(requests=dict(capacity)),
        ),
    )


def first_of(name: str, *alternatives: DeviceRequest) -> DeviceRequest:
    """A request for the first alternative that can be had."""
    return DeviceRequest(name=name, first_available=tuple(_alternative(each) for each in alternatives))


def _alternative(request: DeviceRequest) -> DeviceSubRequest:
    spec = request.exactly
    assert spec is not None
    return DeviceSubRequest(
        name=request.name,
        device_class_name=spec.device_class_name,
        selectors=spec.selectors,
        allocation_mode=spec.allocation_mode,
        count=spec.count,
        tolerations=spec.tolerations,
        capacity=spec.capacity,
    )


def same(attribute: str, *requests: str) -> DeviceConstraint:
    return DeviceConstraint(match_attribute=attribute, requests=tuple(requests))


def distinct(attribute: str, *requests: str) -> DeviceConstraint:
    return DeviceConstraint(distinct_attribute=attribute, requests=tuple(requests))


def a_claim(
    name: str = "claim",
    *requests: DeviceRequest,
    constraints: Sequence[DeviceConstraint] = (),
    allocation: Allocation | None = None,
    reserved_for: Sequence[str] = (),
    made_for: str | None = None,
    deleted: bool = False,
    annotations: Mapping[str, str] | None = None,
) -> ResourceClaim:
    """A claim; `reserved_for` and `made_for` are uids of pods."""
    owner = [] if made_for is None else [OwnerReference(kind="Pod", name="pod", uid=made_for, controller=True)]
    return ResourceClaim(
        metadata=ObjectMeta(
            name=name,
            namespace="default",
            uid=f"claim-{name}",
            owner_references=tuple(owner),
            annotations=dict(annotations or {}),
            deletion_timestamp="2025-01-01T00:00:00Z" if deleted else None,
        ),
        spec=ResourceClaimSpec(devices=DeviceClaim(requests=tuple(requests), constraints=tuple(constraints))),
        status=ResourceClaimStatus(
            allocation=allocation,
            reserved_for=tuple(ConsumerReference(resource="pods", name="pod", uid=uid) for uid in reserved_for),
        ),
    )


def allocated(
    device: str = "gpu-0",
    *,
    pool: str = "node",
    on: str | None = "node",
    request: str = "r",
    share: str | None = None,
    consumed: Mapping[str, QuantityText] | None = None,
    admin: bool | None = None,
    conditions: Sequence[str] = (),
    failures: Sequence[str] = (),
    at: str | None = None,
) -> Allocation:
    """The allocation of one device, usable on one node (None: anywhere)."""
    result = AllocatedDevice(
        request=request,
        driver=DRIVER,
        pool=pool,
        device=device,
        share_id=share,
        consumed_capacity=dict(consumed or {}),
        admin_access=admin,
        binding_conditions=tuple(conditions),
        binding_failure_conditions=tuple(failures),
    )
    return Allocation(
        devices=DeviceAllocation(results=(result,)),
        node_selector=None if on is None else named(on),
        allocation_timestamp=at,
    )


def named(*nodes: str) -> NodeSelector:
    """The nodes of these names."""
    field = NodeSelectorRequirement(key="metadata.name", operator="In", values=tuple(nodes))
    return NodeSelector(node_selector_terms=(NodeSelectorTerm(match_fields=(field,)),))


def labelled(key: str, value: str) -> NodeSelector:
    part = NodeSelectorRequirement(key=key, operator="In", values=(value,))
    return NodeSelector(node_selector_terms=(NodeSelectorTerm(match_expressions=(part,)),))


def a_claiming_pod(*claims: str, uid: str = "uid", requests: Mapping[str, QuantityText] | None = None) -> Pod:
    """A pod that uses the claims of these names."""
    pod = a_pod(uid=uid, requests=requests)
    force_setattr(
        pod.spec, "resource_claims", tuple(PodResourceClaim(name=name, resource_claim_name=name) for name in claims)
    )
    return pod


class World:
    """A cluster with devices, and the plugin that looks at it."""

    def __init__(
        self,
        *nodes: NodeView,
        slices: Sequence[ResourceSlice] = (),
        classes: Sequence[DeviceClass] = (),
        claims: Sequence[ResourceClaim] = (),
        gates: Mapping[str, bool] | None = None,
        **arguments: Any,
    ) -> None:
        self.services = Services(
            objects={ResourceSlice: slices, DeviceClass: classes or [a_class()], ResourceClaim: claims}, gates=gates
        )
        self.plugin = a_plugin(DynamicResources, self.services, **arguments)
        self.cluster = a_cluster(*(nodes or [a_node()]), plugins=[self.plugin], services=self.services)

    def filter(self, pod: Pod, node: str = "node") -> Rejection | None:
        """The plugin's verdict on a node."""
        return self.plugin.filter(pod, self.cluster.node(node), a_cycle(pod, self.cluster))

    def chosen(self, pod: Pod, node: str = "node") -> dict[str, list[str]] | str:
        """Request → the devices that it would get on the node, or why the node is refused."""
        cycle = a_cycle(pod, self.cluster)
        refusal = self.plugin.filter(pod, self.cluster.node(node), cycle)
        if refusal is not None:
            return refusal.reasons[0]
        state: PodClaims = cycle.filter_state(self.plugin)
        chosen: dict[str, list[str]] = {}
        for claim in state.found[node].found:
            for device in claim.devices:
                chosen.setdefault(device.wanted.reference, []).append(device.offered.id.device)
        return chosen
