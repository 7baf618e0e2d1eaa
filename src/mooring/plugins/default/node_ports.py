"""NodePorts: a node must have the host ports free that the pod's containers and sidecars ask for.

The same port of the same protocol conflicts on the same address, and where either side listens on all (0.0.0.0).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from mooring.framework import (
    Action,
    Cycle,
    Hint,
    Node,
    NodeRows,
    NodeView,
    PlacedPod,
    Plugin,
    Pod,
    Reads,
    Rejection,
    Rejections,
    Skip,
)
from mooring.objects.placed import ANY_ADDRESS, HostPort, host_ports

TAKEN = "node(s) didn't have free ports for the requested pod ports"


class NodePorts(Plugin):
    """Refuse nodes where a host port that the pod asks for is taken."""

    pod_fields = ("spec.containers[*].ports", "spec.initContainers[*].ports")
    reads = Reads.PODS
    pre_filter_reads_pods = False

    def events(self) -> Iterable[Hint]:
        return [Hint(Pod, Action.DELETE, self._freed_a_port), Hint(Node, Action.ADD)]

    def pre_filter(self, pod: Pod, cycle: Cycle) -> tuple[HostPort, ...] | Skip:
        """The ports that the pod asks for."""
        return host_ports(pod) or Skip()

    def filter(self, pod: Pod, node: NodeView, cycle: Cycle) -> Rejection | None:
        wanted = cycle.filter_state(self)
        return Rejection(TAKEN) if _conflict(wanted, node.ports) else None

    def filter_nodes(self, pod: Pod, nodes: NodeRows, cycle: Cycle) -> Iterator[Rejections]:
        """`filter`, for many nodes at once."""
        yield Rejections(nodes.where_port_taken(cycle.filter_state(self)), TAKEN)

    def _freed_a_port(self, pod: Pod, before: PlacedPod | Pod, after: None) -> bool:
        if isinstance(before, PlacedPod):
            return _conflict(host_ports(pod), before.ports)
        had_a_place = bool(before.spec.node_name or before.status.nominated_node_name)
        return had_a_place and _conflict(host_ports(pod), host_ports(before))


def _conflict(wanted: Sequence[HostPort], held: Sequence[HostPort]) -> bool:
    return any(
        one[1:] == other[1:] and (one[0] == other[0] or ANY_ADDRESS in (one[0], other[0]))
        for one in held
        for other in wanted
    )
