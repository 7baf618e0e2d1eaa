"""What is wrong with the report of a node: logged once for each report, and counted."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from mooring.framework import Log, Metrics, NodeView
from mooring.objects.quantity import amount
from mooring.plugins.community.node_resource_topology.topologies import NodeResourceTopology, TopologyZone


class TopologyChecks:
    """Looks at each report when a decision first reads it."""

    def __init__(self, log: Log, metrics: Metrics) -> None:
        self._log = log
        self._seen: dict[str, NodeResourceTopology] = {}
        self._wrong: set[str] = set()
        self._count = metrics.gauge(
            "node_resource_topologies_wrong", "NodeResourceTopologies that contradict themselves or their node."
        )

    def look_at(self, topology: NodeResourceTopology, node: NodeView) -> None:
        if self._seen.get(node.name) is topology:
            return
        self._seen[node.name] = topology
        if problem := topology.unreadable or next(_contradictions(topology, node), ""):
            self._wrong.add(node.name)
            going_on = "the node is rejected" if topology.unreadable else "it is used as it is"
            self._log.warning(f"A NodeResourceTopology is wrong; {going_on}", node=node.name, err=problem)
        else:
            self._wrong.discard(node.name)
        self._count.set(len(self._wrong))


def _contradictions(topology: NodeResourceTopology, node: NodeView) -> Iterator[str]:
    zones = [zone for zone in topology.zones if zone.type == "Node"]
    names = [zone.name for zone in zones]
    for name in sorted({name for name in names if names.count(name) > 1}):
        yield f"two zones are named {name}"
    for zone in zones:
        yield from _of_zone(zone)
    for resource in sorted({each.name for zone in zones for each in zone.resources}):
        together = sum(
            amount(resource, each.allocatable) for zone in zones for each in zone.resources if each.name == resource
        )
        if together > (allocatable := node.allocatable(resource)):
            of_zones, of_node = _shown(resource, together), _shown(resource, allocatable)
            yield f"its zones have {resource} {of_zones}, the node has {of_node}"


def _of_zone(zone: TopologyZone) -> Iterator[str]:
    for each in zone.resources:
        allocatable, available = amount(each.name, each.allocatable), amount(each.name, each.available)
        if available < 0:
            yield f"{zone.name} has {each.name} {each.available} available"
        elif allocatable and available > allocatable:
            yield f"{zone.name} has {each.name} {each.available} available, but {each.allocatable} allocatable"


def _shown(resource: str, number: int) -> str:
    return str(float(Fraction(number, 1000))).removesuffix(".0") if resource == "cpu" else str(number)
