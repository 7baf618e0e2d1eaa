"""NodeResourceTopology: the NUMA nodes of a node, what is available on each, and how its kubelet aligns containers.

An agent on the node writes the object, which has the node's name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction
from typing import NamedTuple

from mooring.base.computed import computed_once
from mooring.framework import CustomResource, ResourcePart
from mooring.objects.quantity import BadQuantity, QuantityField, exact

SINGLE_NUMA_NODE, RESTRICTED = "single-numa-node", "restricted"
POD, CONTAINER = "pod", "container"
DEFAULT_MOST_NUMA_NODES, MOST_NUMA_NODES = 8, 1024
HIGHEST_NUMA_ID = 63
POLICIES, SCOPES = ("none", "best-effort", RESTRICTED, SINGLE_NUMA_NODE), (POD, CONTAINER)
OLD_POLICIES = {
    f"{name}{level}": (policy, scope)
    for name, policy in (
        ("SingleNUMANode", SINGLE_NUMA_NODE),
        ("BestEffort", "best-effort"),
        ("Restricted", RESTRICTED),
    )
    for level, scope in (("PodLevel", POD), ("ContainerLevel", CONTAINER))
}
_ID = re.compile(r"node-([+]?[0-9]{1,9})", re.ASCII)


class TopologyAttribute(ResourcePart):
    name: str = ""
    value: str = ""


class TopologyCost(ResourcePart):
    """The distance to a NUMA node."""

    name: str = ""
    value: int = 0


class TopologyResource(ResourcePart):
    name: str = ""
    capacity: QuantityField = 0
    allocatable: QuantityField = 0
    available: QuantityField = 0


class TopologyZone(ResourcePart):
    """A part of the node, such as a NUMA node."""

    name: str = ""
    type: str = ""
    parent: str = ""
    costs: list[TopologyCost] = []
    attributes: list[TopologyAttribute] = []
    resources: list[TopologyResource] = []


class NumaNode(NamedTuple):
    """A NUMA node: what is available there, and its distance to others."""

    id: int
    available: Mapping[str, Fraction]
    costs: Mapping[int, int]
    allocatable: Mapping[str, Fraction]
    """What it has when no pod runs there."""


class KubeletTopology(NamedTuple):
    """How the kubelet aligns containers with NUMA nodes."""

    policy: str = "none"
    scope: str = CONTAINER
    most_numa_nodes: int = DEFAULT_MOST_NUMA_NODES

    @property
    def is_single_numa_node(self) -> bool:
        return self.policy == SINGLE_NUMA_NODE


class NodeResourceTopology(
    CustomResource,
    group="topology.node.k8s.io",
    version="v1alpha2",
    plural="noderesourcetopologies",
    scope="Cluster",
    approved="https://github.com/kubernetes/enhancements/pull/1870",
    short_names=("node-res-topo",),
):
    """The NUMA nodes of the node of the same name."""

    topology_policies: list[str] = []
    zones: list[TopologyZone] = []
    attributes: list[TopologyAttribute] = []

    @computed_once
    def kubelet(self) -> KubeletTopology:
        """By the deprecated `topologyPolicies`, then by attributes; what is invalid there is ignored."""
        policy, scope, most = KubeletTopology()
        if self.topology_policies:
            policy, scope = OLD_POLICIES.get(self.topology_policies[0], (policy, scope))
        for attribute in self.attributes:
            value = attribute.value
            if attribute.name == "topologyManagerScope" and value in SCOPES:
                scope = value
            elif attribute.name == "topologyManagerPolicy" and value in POLICIES:
                policy = value
            elif attribute.name == "topologyManagerMaxNUMANodes" and re.fullmatch(r"[+]?[0-9]{1,18}", value, re.ASCII):
                most = min(int(value), MOST_NUMA_NODES) if int(value) > 1 else most
        return KubeletTopology(policy, scope, most)

    @computed_once
    def unreadable(self) -> str:
        """The first quantity that is none; "" where all are."""
        for zone in self.zones:
            for each in zone.resources:
                for field, text in (
                    ("capacity", each.capacity),
                    ("allocatable", each.allocatable),
                    ("available", each.available),
                ):
                    try:
                        exact(text)
                    except BadQuantity as error:
                        return f"{field} of {each.name} in zone {zone.name}: {error}"
        return ""

    @computed_once
    def numa_nodes(self) -> tuple[NumaNode, ...]:
        """In the order of the zones; none where a quantity cannot be read."""
        if self.unreadable:
            return ()
        found = [(numa_id(zone.name), zone) for zone in self.zones if zone.type == "Node"]
        zones = [(id, zone) for id, zone in found if id is not None]
        costs = {id: _costs(zone) for id, zone in zones}
        return tuple(
            NumaNode(
                id,
                {each.name: exact(each.available) for each in zone.resources},
                costs[id],
                {each.name: max(exact(each.allocatable), exact(each.available)) for each in zone.resources},
            )
            for id, zone in zones
        )

    def attribute(self, name: str) -> str | None:
        return next((attribute.value for attribute in self.attributes if attribute.name == name), None)


def numa_id(name: str) -> int | None:
    """Of a zone `node-<id>`."""
    match = _ID.fullmatch(name)
    return int(match[1]) if match is not None and int(match[1]) <= HIGHEST_NUMA_ID else None


def _costs(zone: TopologyZone) -> dict[int, int]:
    return {id: cost.value for cost in zone.costs if (id := numa_id(cost.name)) is not None}
