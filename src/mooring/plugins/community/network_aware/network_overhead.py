"""NetworkOverhead: place pods near those they depend on, by what the network between them costs.

Each pod that the incoming one depends on is compared with a candidate node: on the same node the network costs
nothing, in the same zone 1, otherwise what the NetworkTopology has for the two zones or regions. A node where more
dependencies exceed their highest cost than keep within it is refused; the less the network costs in all, the better
the node. Pods without an AppGroup, or whose dependencies run nowhere yet, may go anywhere.

What a node costs follows from its region and zone, and from the pods on it: it is computed once for each place.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated, NamedTuple

import numpy as np

from mooring.base.errors import Fault
from mooring.framework import (
    Action,
    Args,
    Cycle,
    Hint,
    IntArray,
    Log,
    Meta,
    Node,
    NodeRows,
    NodeView,
    Objects,
    Plugin,
    Pod,
    Pods,
    PodsWhere,
    Rejection,
    Rejections,
    constant_score,
)
from mooring.plugins.community.compatibility import Compatibility
from mooring.plugins.community.go_arithmetic import CheapestBest
from mooring.plugins.community.network_aware.app_groups import (
    GROUP_LABEL,
    WORKLOAD_LABEL,
    AppGroup,
    AppGroupDependency,
    NetworkCost,
    NetworkOrigin,
    NetworkTopology,
    NetworkTopologyLevel,
    binary_search,
    first_of,
)

REGION, ZONE = "topology.kubernetes.io/region", "topology.kubernetes.io/zone"
SAME_ZONE_COST, UNKNOWN_COST = 1, 100
MEASURED = "NetperfCosts"
"""The weights that a controller writes; scheduler-plugins expects it to sort them."""


class NetworkOverheadArgs(Args):
    """Arguments of NetworkOverhead."""

    namespaces: Annotated[
        list[str],
        Meta(description="Where AppGroups and the NetworkTopology are looked for, in this order; none given: default."),
    ] = []
    weights_name: Annotated[str, Meta(description="Which weights of the NetworkTopology count.")] = "UserDefined"
    network_topology_name: Annotated[str, Meta(description="The name of the NetworkTopology.")] = "nt-default"
    compatibility: Compatibility = "mooring"


class NetworkPlace(NamedTuple):
    """Where a node is; "" where it lacks the label."""

    region: str
    zone: str


class Overhead(NamedTuple):
    """The dependencies that a node would keep within their highest cost, those beyond it, and the cost of all."""

    satisfied: int = 0
    violated: int = 0
    cost: int = 0

    def plus(self, other: Overhead, times: int = 1) -> Overhead:
        return Overhead(
            self.satisfied + times * other.satisfied,
            self.violated + times * other.violated,
            self.cost + times * other.cost,
        )


NEAR = Overhead(satisfied=1, cost=SAME_ZONE_COST)
NOWHERE = Overhead(violated=1, cost=UNKNOWN_COST)
"""To a node with neither region nor zone."""


class NetworkCosts:
    """The costs of one measure of a NetworkTopology. `sorts`: whether its lists may be in any order."""

    def __init__(self, topology: NetworkTopology, weights_name: str, *, sorts: bool) -> None:
        self._levels = [weights.topology_list for weights in topology.spec.weights if weights.name == weights_name]
        self._sorts = sorts
        self._known: dict[NetworkPlace, dict[tuple[str, str], int]] = {}

    def between(self, here: NetworkPlace, origin: str, destination: str) -> int | None:
        costs = self._known.get(here)
        if costs is None:
            costs = self._known[here] = self._from(here)
        return costs.get((origin, destination))

    def _from(self, here: NetworkPlace) -> dict[tuple[str, str], int]:
        costs: dict[tuple[str, str], int] = {}
        for levels in self._levels:
            for key, origin in ((REGION, here.region), (ZONE, here.zone)):
                if origin:
                    costs |= {
                        (origin, cost.destination): cost.network_cost for cost in self._costs(levels, key, origin)
                    }
        return costs

    def _costs(self, levels: Sequence[NetworkTopologyLevel], key: str, origin: str) -> Iterable[NetworkCost]:
        if self._sorts:
            levels = sorted(levels, key=_key_of)
        level = binary_search(levels, _key_of, key)
        if level is None:
            return ()
        origins = sorted(level.origin_list, key=_origin_of) if self._sorts else level.origin_list
        found = binary_search(origins, _origin_of, origin)
        return () if found is None else found.cost_list


def _key_of(level: NetworkTopologyLevel) -> str:
    return level.topology_key


def _origin_of(origin: NetworkOrigin) -> str:
    return origin.origin


class Overheads:
    """What the network to the pods that one depends on would cost, by node."""

    def __init__(self, costs: NetworkCosts, there: Counter[tuple[NetworkPlace, int]], on_node: Counter[str]) -> None:
        self._costs = costs
        self._there = there
        """How many dependencies run at a place, by their highest cost."""
        self._on_node = on_node
        """How many of them run on a node itself."""
        self._known: dict[NetworkPlace, Overhead] = {}

    def of(self, node: NodeView) -> Overhead:
        labels = node.labels
        here = NetworkPlace(labels.get(REGION, ""), labels.get(ZONE, ""))
        overhead = self._known.get(here)
        if overhead is None:
            overhead = self._known[here] = self._at(here)
        if own := self._on_node.get(node.name, 0):
            # Those on the node itself were counted as on another one of its zone.
            overhead = overhead.plus(NEAR if any(here) else NOWHERE, -own).plus(Overhead(satisfied=1), own)
        return overhead

    def _at(self, here: NetworkPlace) -> Overhead:
        total = Overhead()
        for (there, highest_cost), count in self._there.items():
            total = total.plus(self._one(here, there, highest_cost), count)
        return total

    def _one(self, here: NetworkPlace, there: NetworkPlace, highest_cost: int) -> Overhead:
        if not any(there):
            return NOWHERE
        if here == there:
            return NEAR
        if here.region == there.region:
            cost = self._costs.between(here, here.zone, there.zone)
        else:
            cost = self._costs.between(here, here.region, there.region)
        if cost is None:
            return Overhead(cost=UNKNOWN_COST)
        is_within = cost <= highest_cost
        return Overhead(int(is_within), int(not is_within), cost)


class NetworkOverhead(Plugin):
    """NetworkPlace pods where the network to the pods that they depend on costs least."""

    normalizer = CheapestBest()
    pre_filter_reads_pods = False
    """In a what-if of preemption, dependencies count where they are, evicted or not: as in scheduler-plugins."""

    def __init__(
        self,
        args: NetworkOverheadArgs,
        groups: Objects[AppGroup],
        topologies: Objects[NetworkTopology],
        pods: Pods,
        log: Log,
    ) -> None:
        self._namespaces = args.namespaces or ["default"]
        self._weights_name, self._topology_name = args.weights_name, args.network_topology_name
        self._is_compatible = args.compatibility == "scheduler-plugins"
        self._groups, self._topologies, self._pods, self._log = groups, topologies, pods, log
        self._missing: set[str] = set()
        """What was logged as missing, and has not been found since."""

    def events(self) -> Iterable[Hint]:
        return [
            Hint(Pod, Action.ADD | Action.DELETE),
            Hint(Node, Action.ADD | Action.UPDATE_NODE_LABEL),
            Hint(AppGroup),
            Hint(NetworkTopology),
        ]

    def pre_filter(self, pod: Pod, cycle: Cycle) -> Overheads | None:
        """None: every node is alike."""
        name = pod.labels.get(GROUP_LABEL, "")
        if not name:
            return None
        group = first_of(self._groups, name, self._namespaces)
        topology = first_of(self._topologies, self._topology_name, self._namespaces)
        self._log_missing("AppGroup", name, is_missing=group is None)
        self._log_missing("NetworkTopology", self._topology_name, is_missing=topology is None)
        if group is None or topology is None:
            return None
        selector = pod.labels.get(WORKLOAD_LABEL, "")
        dependencies = [
            dependency
            for member in group.spec.workloads
            if member.workload.selector == selector
            for dependency in member.dependencies
        ]
        if not dependencies:
            return None
        sorts = not self._is_compatible or self._weights_name != MEASURED
        costs = NetworkCosts(topology, self._weights_name, sorts=sorts)
        return self._overheads(pod, dependencies, costs, cycle.nodes)

    def filter(self, pod: Pod, node: NodeView, cycle: Cycle) -> Rejection | None:
        overheads: Overheads | None = cycle.filter_state(self)
        overhead = None if overheads is None else overheads.of(node)
        if overhead is None or overhead.violated <= overhead.satisfied:
            return None
        return Rejection(self._reason(node.name, overhead))

    def filter_nodes(self, pod: Pod, nodes: NodeRows, cycle: Cycle) -> Iterator[Rejections]:
        overheads: Overheads | None = cycle.filter_state(self)
        if overheads is None:
            return
        reasons: dict[str, list[int]] = {}
        for place, node in enumerate(nodes):
            overhead = overheads.of(node)
            if overhead.violated > overhead.satisfied:
                reasons.setdefault(self._reason(node.name, overhead), []).append(place)
        for reason, places in reasons.items():
            mask = np.zeros(len(nodes), np.bool_)
            mask[places] = True
            yield Rejections(mask, reason)

    def score(self, pod: Pod, node: NodeView, cycle: Cycle) -> int:
        overheads: Overheads | None = cycle.filter_state(self)
        return 0 if overheads is None else overheads.of(node).cost

    def score_nodes(self, pod: Pod, nodes: NodeRows, cycle: Cycle) -> IntArray:
        overheads: Overheads | None = cycle.filter_state(self)
        if overheads is None:
            return constant_score(0, nodes)
        return np.fromiter((overheads.of(node).cost for node in nodes), np.int64, len(nodes))

    def _overheads(
        self, pod: Pod, dependencies: Sequence[AppGroupDependency], costs: NetworkCosts, nodes: NodeRows
    ) -> Overheads | None:
        own = {GROUP_LABEL: pod.labels[GROUP_LABEL]}
        # Who may create pods in another namespace must not move those of this one by a label.
        namespaces = {pod.namespace, *(each.workload.namespace for each in dependencies)}
        members = self._pods.placed(PodsWhere.labelled(own, namespaces=None if self._is_compatible else namespaces))
        if not members:
            return None
        found = np.flatnonzero(nodes.where_named({member.node for member in members})).tolist()
        places = {
            node.name: NetworkPlace(node.labels.get(REGION, ""), node.labels.get(ZONE, ""))
            for node in map(nodes.at, found)
        }
        there: Counter[tuple[NetworkPlace, int]] = Counter()
        on_node: Counter[str] = Counter()
        for member in members:
            selector = member.labels.get(WORKLOAD_LABEL, "")
            for dependency in dependencies:
                if dependency.workload.selector != selector:
                    continue
                if not self._is_compatible and member.namespace not in (pod.namespace, dependency.workload.namespace):
                    continue
                place = places.get(member.node)
                if place is not None:
                    there[place, dependency.max_network_cost] += 1
                    on_node[member.node] += 1
                elif self._is_compatible:
                    raise Fault(f'pod hostname not found: nodeinfo not found for node name "{member.node}"')
        return Overheads(costs, there, on_node)

    def _reason(self, node: str, overhead: Overhead) -> str:
        numbers = f"Satisfied: {overhead.satisfied} Violated: {overhead.violated}"
        if self._is_compatible:
            return f"Node {node} does not meet several network requirements from Workload dependencies: {numbers}"
        return f"node(s) do not meet network requirements from workload dependencies: {numbers}"

    def _log_missing(self, kind: str, name: str, *, is_missing: bool) -> None:
        """Log once that the object is missing, until it is there."""
        what = f"{kind}/{name}"
        if is_missing and what not in self._missing:
            self._missing.add(what)
            self._log.warning(
                f"The {kind} is missing; pods are placed without network requirements",
                name=name,
                namespaces=", ".join(self._namespaces),
            )
        elif not is_missing:
            self._missing.discard(what)
