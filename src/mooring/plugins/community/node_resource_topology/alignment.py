"""Whether a node with the policy single-numa-node would admit the pod: each container, or all, on one NUMA node."""

from __future__ import annotations

from fractions import Fraction

from mooring.base.errors import Fault
from mooring.framework import NodeView
from mooring.plugins.community.node_resource_topology.pod_needs import Amounts, PodNeeds, is_host_level, is_numa_bound
from mooring.plugins.community.node_resource_topology.topologies import POD, KubeletTopology, NumaNode

CANNOT_ALIGN_POD = "cannot align pod"
CANNOT_ALIGN_CONTAINER = "cannot align container"
ON_EVERY_NODE = ("cpu", "memory", "pods", "ephemeral-storage")
"""Resources that scheduling takes every node to have."""


def refusal(node: NodeView, numa_nodes: tuple[NumaNode, ...], kubelet: KubeletTopology, needs: PodNeeds) -> str | None:
    """Why the node would not admit the pod; None: it would."""
    if kubelet.scope == POD:
        return None if _fitting(node, numa_nodes, needs, needs.whole) is not None else CANNOT_ALIGN_POD
    left = [numa._replace(available=dict(numa.available)) for numa in numa_nodes]
    for container in needs.containers:
        numa_id = _fitting(node, tuple(left), needs, container.requests)
        if numa_id is None:
            return f"cannot align {container.kind} container" if container.kind else CANNOT_ALIGN_CONTAINER
        if not container.kind:  # init containers have ended when the others start
            _take(left, numa_id, needs, container.requests)
    return None


def _fitting(node: NodeView, numa_nodes: tuple[NumaNode, ...], needs: PodNeeds, requests: Amounts) -> int | None:
    """The NUMA node of the lowest id that has all this; None if there is none."""
    fitting: set[int] | None = None  # all
    for resource, wanted in requests.items():
        if not wanted:
            continue
        if resource not in ON_EVERY_NODE and not node.offers(resource):
            return None
        listing = [numa for numa in numa_nodes if resource in numa.available]
        if not listing and is_host_level(resource):
            continue
        suitable = {numa.id for numa in listing if needs.is_suitable(resource, wanted, numa.available[resource])}
        fitting = suitable if fitting is None else fitting & suitable
        if not fitting:
            return None
    return 0 if fitting is None else min(fitting)


def _take(left: list[NumaNode], numa_id: int, needs: PodNeeds, requests: Amounts) -> None:
    for numa in left:
        if numa.id != numa_id:
            continue
        available: dict[str, Fraction] = numa.available  # type: ignore[assignment]  # a copy, made by `refusal`
        for resource, wanted in requests.items():
            if (not needs.is_guaranteed and is_numa_bound(resource)) or not wanted or resource not in available:
                continue
            if available[resource] < wanted:
                raise Fault("inconsistent resource accounting")
            available[resource] -= wanted
