"""What is wrong with a NodeResourceTopology: in itself, and beside what its node reports."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction

from mooring.objects.quantity import amount
from mooring.plugins.community.node_resource_topology.topologies import (
    OLD_POLICIES,
    POLICIES,
    SCOPES,
    NodeResourceTopology,
    TopologyZone,
    numa_id,
)

OTHER_OLD_POLICIES = ("None", "BestEffort", "Restricted")
"""Agents may write them, too; the plugin filters by none of them."""


def problem_of(topology: NodeResourceTopology, allocatable: Callable[[str], int]) -> str:
    """The first one; "" for none. `allocatable`: of the node, by resource, in the scheduler's units."""
    return topology.unreadable or next(_contradictions(topology, allocatable), "")


def _contradictions(topology: NodeResourceTopology, allocatable: Callable[[str], int]) -> Iterator[str]:
    zones = [zone for zone in topology.zones if zone.type == "Node"]
    if not zones:
        yield "it has no zone of type Node"
    yield from _of_policies(topology)
    names = [zone.name for zone in zones]
    for name in sorted({name for name in names if names.count(name) > 1}):
        yield f"two zones are named {name}"
    for zone in zones:
        yield from _of_zone(zone)
    for resource in sorted({each.name for zone in zones for each in zone.resources}):
        together = sum(
            amount(resource, each.allocatable) for zone in zones for each in zone.resources if each.name == resource
        )
        if together > (of_node := allocatable(resource)):
            yield f"its zones have {resource} {_shown(resource, together)}, the node has {_shown(resource, of_node)}"
    for zone in zones:
        for cost in zone.costs:
            if cost.name not in names:
                yield f"{zone.name} has a distance to {cost.name}, which is no zone"


def _of_policies(topology: NodeResourceTopology) -> Iterator[str]:
    for policy in topology.topology_policies[:1]:
        if policy not in OLD_POLICIES and policy not in OTHER_OLD_POLICIES:
            yield f"topologyPolicies has {policy!r}, which is no policy of a kubelet"
    for name, known in (("topologyManagerPolicy", POLICIES), ("topologyManagerScope", SCOPES)):
        value = topology.attribute(name)
        if value is not None and value not in known:
            yield f"{name} is {value!r}; a kubelet has one of {', '.join(known)}"


def _of_zone(zone: TopologyZone) -> Iterator[str]:
    if numa_id(zone.name) is None:
        yield f"zone {zone.name!r} is not named node-<number> and is ignored"
    for each in zone.resources:
        allocatable, available = amount(each.name, each.allocatable), amount(each.name, each.available)
        if available < 0:
            yield f"{zone.name} has {each.name} {each.available} available"
        elif allocatable and available > allocatable:
            yield f"{zone.name} has {each.name} {each.available} available, but {each.allocatable} allocatable"


def _shown(resource: str, number: int) -> str:
    return str(float(Fraction(number, 1000))).removesuffix(".0") if resource == "cpu" else str(number)
