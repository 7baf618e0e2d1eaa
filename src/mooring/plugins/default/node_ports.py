"""NodePorts: a node must have the host ports free that the pod's containers and sidecars request.

The same port of the same protocol conflicts on the same address, and where either side listens on all (0.0.0.0).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

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


class Wanted:
    """The ports that a pod requests."""

    __slots__ = ("_addresses", "ports")

    def __init__(self, ports: tuple[HostPort, ...]) -> None:
        self.ports = ports
        self._addresses: dict[tuple[str, int], set[str]] = {}
        for address, protocol, port in ports:
            self._addresses.setdefault((protocol, port), set()).add(address)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Wanted) and self.ports == other.ports

    def __hash__(self) -> int:
        return hash(self.ports)

    def conflicts(self, held: Iterable[HostPort]) -> bool:
        """Whether one of them is among those that are held."""
        for address, protocol, port in held:
            same_port = self._addresses.get((protocol, port))
            if same_port and (address == ANY_ADDRESS or address in same_port or ANY_ADDRESS in same_port):
                return True
        return False


class NodePorts(Plugin):
    """Reject nodes where a host port that the pod requests is taken."""

    pod_fields = ("spec.containers[*].ports", "spec.initContainers[*].ports")
    reads = Reads.REQUESTED
    per_template = True
    reads_requests = False
    pre_filter_reads_pods = False

    def sign(self, pod: Pod) -> tuple[HostPort, ...]:
        return host_ports(pod)

    def events(self) -> Iterable[Hint]:
        return [Hint(Pod, Action.DELETE, self._freed_a_port, per_template=True), Hint(Node, Action.ADD)]

    def pre_filter(self, pod: Pod, cycle: Cycle) -> Wanted | Skip:
        ports = host_ports(pod)
        return Wanted(ports) if ports else Skip()

    def filter(self, pod: Pod, node: NodeView, cycle: Cycle) -> Rejection | None:
        wanted: Wanted = cycle.filter_state(self)
        return Rejection(TAKEN) if wanted.conflicts(node.ports) else None

    def filter_nodes(self, pod: Pod, nodes: NodeRows, cycle: Cycle) -> Iterator[Rejections]:
        """`filter`, for many nodes at once."""
        wanted: Wanted = cycle.filter_state(self)
        yield Rejections(nodes.where_port_taken(wanted.ports), TAKEN)

    def _freed_a_port(self, pod: Pod, before: PlacedPod | Pod, after: None) -> bool:
        if isinstance(before, PlacedPod):
            return Wanted(host_ports(pod)).conflicts(before.ports)
        had_a_place = bool(before.spec.node_name or before.status.nominated_node_name)
        return had_a_place and Wanted(host_ports(pod)).conflicts(host_ports(before))
