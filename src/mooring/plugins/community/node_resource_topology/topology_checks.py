"""What is wrong with the report of a node: logged once for each report, and counted.

`mooring controllers` reports the same as events.
"""

from __future__ import annotations

from mooring.framework import Log, Metrics, NodeView
from mooring.plugins.community.node_resource_topology.contradictions import problem_of
from mooring.plugins.community.node_resource_topology.topologies import NodeResourceTopology


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
        if problem := problem_of(topology, node.allocatable):
            self._wrong.add(node.name)
            going_on = "the node is rejected" if topology.unreadable else "it is used as it is"
            self._log.warning(f"A NodeResourceTopology is wrong; {going_on}", node=node.name, err=problem)
        else:
            self._wrong.discard(node.name)
        self._count.set(len(self._wrong))
