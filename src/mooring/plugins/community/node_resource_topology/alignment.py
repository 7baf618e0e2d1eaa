"""Whether the topology manager of a node would admit the pod.

With the policy `single-numa-node` each container, or all of them, must fit one NUMA node. With `restricted` they must
fit as few NUMA nodes as on an empty node. Other policies admit every pod.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial
from itertools import combinations

from mooring.framework import NodeView
from mooring.plugins.community.node_resource_topology.pod_needs import Amounts, PodNeeds, is_host_level
from mooring.plugins.community.node_resource_topology.topologies import (
    DEFAULT_MOST_NUMA_NODES,
    POD,
    RESTRICTED,
    SINGLE_NUMA_NODE,
    KubeletTopology,
    NumaNode,
)

CANNOT_ALIGN_POD = "cannot align pod"
CANNOT_ALIGN_CONTAINER = "cannot align container"
ON_EVERY_NODE = ("cpu", "memory", "pods", "ephemeral-storage")
"""Resources that scheduling takes every node to have."""

NumaNodes = tuple[NumaNode, ...]
Aligned = tuple[NumaNodes, Amounts]
"""The NUMA nodes that would serve requests, and what they would give exclusively."""
Align = Callable[[NumaNodes, PodNeeds, Amounts], Aligned | None]
"""None: the requests are rejected."""


def refusal(
    node: NodeView, numa_nodes: NumaNodes, kubelet: KubeletTopology, needs: PodNeeds, *, is_compatible: bool
) -> str | None:
    """Why the node would not admit the pod; None: it would. `is_compatible`: as scheduler-plugins has it."""
    align = _alignment(kubelet, numa_nodes, is_compatible=is_compatible)
    if align is None:
        return None
    if kubelet.scope == POD:
        return None if _aligned(align, node, numa_nodes, needs, needs.whole) is not None else CANNOT_ALIGN_POD
    left = tuple(numa._replace(available=dict(numa.available)) for numa in numa_nodes)
    for container in needs.containers:
        aligned = _aligned(align, node, left, needs, container.requests)
        if aligned is None:
            return f"cannot align {container.kind} container" if container.kind else CANNOT_ALIGN_CONTAINER
        if not container.kind:  # init containers have ended when the others start
            _take(*aligned)
    return None


def _alignment(kubelet: KubeletTopology, numa_nodes: NumaNodes, *, is_compatible: bool) -> Align | None:
    """How the kubelet aligns requests; None: it admits every pod."""
    if kubelet.policy == SINGLE_NUMA_NODE:
        return partial(_one, must_be_listed=is_compatible)
    # A kubelet has at most eight NUMA nodes, unless it is configured otherwise; all their combinations are tried.
    if kubelet.policy == RESTRICTED and not is_compatible and len(numa_nodes) <= DEFAULT_MOST_NUMA_NODES:
        return _fewest
    return None


def _aligned(align: Align, node: NodeView, numa_nodes: NumaNodes, needs: PodNeeds, requests: Amounts) -> Aligned | None:
    wanted = {resource: amount for resource, amount in requests.items() if amount}
    if not all(resource in ON_EVERY_NODE or node.offers(resource) for resource in wanted):
        return None
    return align(numa_nodes, needs, wanted)


def _one(numa_nodes: NumaNodes, needs: PodNeeds, requests: Amounts, *, must_be_listed: bool) -> Aligned | None:
    """The NUMA node of the lowest id that has all this. A resource that none lists is bound to none.

    `must_be_listed`: CPU, memory and huge pages are bound all the same, so that no NUMA node has them.
    """
    fitting = numa_nodes
    for resource, wanted in requests.items():
        is_listed = any(resource in numa.available for numa in numa_nodes)
        if not is_listed and (is_host_level(resource) or not must_be_listed):
            continue
        fitting = tuple(
            numa
            for numa in fitting
            if resource in numa.available and needs.is_suitable(resource, wanted, numa.available[resource])
        )
        if not fitting:
            return None
    lowest = sorted(fitting, key=lambda numa: numa.id)[:1]
    return tuple(lowest), {resource: wanted for resource, wanted in requests.items() if needs.is_exclusive(resource)}


def _fewest(numa_nodes: NumaNodes, needs: PodNeeds, requests: Amounts) -> Aligned | None:
    """NUMA nodes that together have all this, and no more of them than an empty node would need."""
    exclusive = {
        resource: wanted
        for resource, wanted in requests.items()
        if needs.is_exclusive(resource)
        and (resource != "cpu" or wanted.denominator == 1)  # parts of CPUs are shared
        and any(resource in numa.available for numa in numa_nodes)
    }
    for count in range(len(numa_nodes) + 1):
        groups = list(combinations(numa_nodes, count))
        if any(_have([numa.allocatable for numa in group], exclusive) for group in groups):
            found = (group for group in groups if _have([numa.available for numa in group], exclusive))
            return next(((group, exclusive) for group in found), None)
    return None


def _have(amounts: Sequence[Amounts], wanted: Amounts) -> bool:
    return all(sum(each.get(name, Fraction(0)) for each in amounts) >= amount for name, amount in wanted.items())


def _take(numa_nodes: NumaNodes, exclusive: Amounts) -> None:
    """Take this from the NUMA nodes, in their order."""
    for resource, wanted in exclusive.items():
        for numa in numa_nodes:
            available: dict[str, Fraction] = numa.available  # type: ignore[assignment]  # a copy, made by `refusal`
            taken = min(wanted, available.get(resource, Fraction(0)))
            if taken > 0:
                available[resource] -= taken
                wanted -= taken
