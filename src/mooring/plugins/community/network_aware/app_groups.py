"""The custom resources of network-aware scheduling: which workloads depend on each other, and what the network costs.

A pod belongs to an AppGroup by one label and to a workload of it by another. A NetworkTopology has the cost between
regions and between zones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

import msgspec

from mooring.framework import CustomResource, Objects, ResourcePart
from mooring.objects.quantity import QuantityField

GROUP_LABEL = "appgroup.diktyo.x-k8s.io"
WORKLOAD_LABEL = "appgroup.diktyo.x-k8s.io.workload"

E = TypeVar("E")
K = TypeVar("K", bound=CustomResource)


class AppGroupWorkload(ResourcePart):
    """A workload, whose pods have its selector as a label."""

    kind: str = ""
    name: str = ""
    selector: str = ""
    api_version: str = ""
    namespace: str = ""


class AppGroupDependency(ResourcePart):
    """A workload that another depends on."""

    workload: AppGroupWorkload = msgspec.field(default_factory=AppGroupWorkload)
    min_bandwidth: QuantityField | None = None
    max_network_cost: int = 0


class AppGroupMember(ResourcePart):
    workload: AppGroupWorkload = msgspec.field(default_factory=AppGroupWorkload)
    dependencies: list[AppGroupDependency] = []


class AppGroupSpec(ResourcePart):
    num_members: int = 0
    topology_sorting_algorithm: str = ""
    workloads: list[AppGroupMember] = []


class AppGroupOrder(ResourcePart):
    """The place of a workload in the order of dependencies."""

    workload: AppGroupWorkload = msgspec.field(default_factory=AppGroupWorkload)
    index: int = 0


class AppGroupStatus(ResourcePart):
    running_workloads: int = 0
    schedule_start_time: str | None = None
    topology_calculation_time: str | None = None
    topology_order: list[AppGroupOrder] = []


class AppGroup(
    CustomResource,
    group="appgroup.diktyo.x-k8s.io",
    version="v1alpha1",
    plural="appgroups",
    approved="unapproved, the kind of scheduler-plugins' network-aware plugins",
    short_names=("ag",),
    status_subresource=False,
):
    """An application of several workloads that depend on each other."""

    spec: AppGroupSpec = msgspec.field(default_factory=AppGroupSpec)
    status: AppGroupStatus = msgspec.field(default_factory=AppGroupStatus)


class NetworkCost(ResourcePart):
    destination: str = ""
    network_cost: int = 0
    bandwidth_capacity: QuantityField | None = None
    bandwidth_allocated: QuantityField | None = None


class NetworkOrigin(ResourcePart):
    origin: str = ""
    cost_list: list[NetworkCost] = []


class NetworkTopologyLevel(ResourcePart):
    """Costs between regions or between zones."""

    topology_key: str = ""
    origin_list: list[NetworkOrigin] = []


class NetworkWeights(ResourcePart):
    name: str = ""
    topology_list: list[NetworkTopologyLevel] = []


class NetworkTopologySpec(ResourcePart):
    weights: list[NetworkWeights] = []
    configmap_name: str = ""


class NetworkTopologyStatus(ResourcePart):
    node_count: int = 0
    weight_calculation_time: str | None = None


class NetworkTopology(
    CustomResource,
    group="networktopology.diktyo.x-k8s.io",
    version="v1alpha1",
    plural="networktopologies",
    approved="unapproved, the kind of scheduler-plugins' network-aware plugins",
    short_names=("nt",),
    status_subresource=False,
):
    """What the network between regions and zones costs, by several measures."""

    spec: NetworkTopologySpec = msgspec.field(default_factory=NetworkTopologySpec)
    status: NetworkTopologyStatus = msgspec.field(default_factory=NetworkTopologyStatus)


def first_of(objects: Objects[K], name: str, namespaces: Iterable[str]) -> K | None:
    """The object of this name in the first of the namespaces that has it."""
    return next((found for namespace in namespaces if (found := objects.get(name, namespace)) is not None), None)


def binary_search(entries: Sequence[E], key_of: Callable[[E], str], key: str) -> E | None:
    """The entry of this key, where entries are sorted by it; in others it may be missed, as in scheduler-plugins."""
    low, high = 0, len(entries) - 1
    while low <= high:
        middle = (low + high) // 2
        found = key_of(entries[middle])
        if found == key:
            return entries[middle]
        low, high = (middle + 1, high) if found < key else (low, middle - 1)
    return None
