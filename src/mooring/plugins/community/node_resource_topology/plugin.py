"""The plugin: filter, score, and what is reserved in between."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Annotated, Literal

import msgspec
import numpy as np

from mooring.framework import (
    Action,
    Args,
    ArgsPart,
    Background,
    Cycle,
    Hint,
    IntArray,
    Log,
    Meta,
    Metrics,
    Node,
    NodeRows,
    NodeView,
    Objects,
    Plugin,
    Pod,
    Rejection,
    Rejections,
    constant_score,
)
from mooring.plugins.community.compatibility import Compatibility
from mooring.plugins.community.node_resource_topology.alignment import refusal
from mooring.plugins.community.node_resource_topology.caches import (
    DiscardReserved,
    OverReserve,
    Reports,
    TopologyCache,
    TopologyPod,
)
from mooring.plugins.community.node_resource_topology.pod_needs import PodNeeds, needs_of
from mooring.plugins.community.node_resource_topology.scores import (
    HIGHEST,
    NumaScore,
    allocation_score,
    balanced_allocation,
    least_allocated,
    least_numa_nodes_score,
    most_allocated,
)
from mooring.plugins.community.node_resource_topology.topologies import NodeResourceTopology
from mooring.plugins.community.node_resource_topology.topology_checks import TopologyChecks

STALE = "invalid node topology data"
STRATEGIES = ("MostAllocated", "BalancedAllocation", "LeastAllocated", "LeastNUMANodes")


class NumaResource(ArgsPart):
    name: str
    weight: Annotated[int, Meta(description="How much it counts against the others; 0 counts as 1.")] = 1


class NumaScoringStrategy(ArgsPart):
    type: Annotated[str, Meta(description="LeastAllocated, MostAllocated, BalancedAllocation or LeastNUMANodes.")] = ""
    resources: Annotated[list[NumaResource], Meta(description="Weights; a resource not named counts 1.")] = []


class NumaCacheArgs(ArgsPart):
    """How the cache works, where `cacheResyncPeriodSeconds` is set."""

    foreign_pods_detect: Literal["All", "None", "OnlyExclusiveResources"] = "All"
    resync_method: Literal["Autodetect", "All", "OnlyExclusiveResources"] = "Autodetect"
    informer_mode: Literal["Dedicated", "Shared"] = "Dedicated"
    resync_scope: Literal["All", "OnlyResources"] = "All"


class NodeResourceTopologyMatchArgs(Args):
    """Arguments of NodeResourceTopologyMatch."""

    scoring_strategy: NumaScoringStrategy | None = None
    cache_resync_period_seconds: Annotated[
        int, Meta(description="How often reports are compared with reservations; 0: nothing is reserved.")
    ] = 0
    discard_reserved_nodes: Annotated[
        bool, Meta(description="Whether a node is left out while a pod is being bound to it.")
    ] = False
    cache: NumaCacheArgs = msgspec.field(default_factory=NumaCacheArgs)
    compatibility: Compatibility = "mooring"

    @property
    def strategy(self) -> str:
        return "LeastAllocated" if self.scoring_strategy is None else self.scoring_strategy.type

    def mistakes(self) -> Iterable[tuple[str, str]]:
        if self.strategy not in STRATEGIES:
            yield "scoringStrategy.type", f'Invalid value: "{self.strategy}": invalid ScoringStrategyType'
        if self.cache_resync_period_seconds < 0:
            yield "cacheResyncPeriodSeconds", f"must be 0 or more, got {self.cache_resync_period_seconds}"


class NodeResourceTopologyMatch(Plugin):
    """Refuse nodes whose NUMA nodes cannot take the pod, and favour those that take it best."""

    pod_fields = ("spec.containers", "spec.initContainers")

    def __init__(
        self,
        args: NodeResourceTopologyMatchArgs,
        topologies: Objects[NodeResourceTopology],
        pods: Objects[TopologyPod],
        background: Background,
        metrics: Metrics,
        log: Log,
    ) -> None:
        self._checks = TopologyChecks(log, metrics)
        given = args.scoring_strategy.resources if args.scoring_strategy is not None else []
        weights = {resource.name: resource.weight for resource in given}
        self._is_compatible = args.compatibility == "scheduler-plugins"
        scores: dict[str, NumaScore] = {
            "LeastAllocated": least_allocated(weights),
            "MostAllocated": most_allocated(weights),
            "BalancedAllocation": balanced_allocation(one_is_nan=self._is_compatible),
        }
        self._score_of = scores.get(args.strategy)
        """None: LeastNUMANodes."""
        self._background, self._period = background, args.cache_resync_period_seconds
        self._over_reserve: OverReserve | None = None
        if args.discard_reserved_nodes:
            self._cache: TopologyCache = DiscardReserved(topologies)
        elif args.cache_resync_period_seconds > 0:
            self._cache = self._over_reserve = OverReserve(
                topologies,
                pods,
                log,
                foreign_pods=args.cache.foreign_pods_detect,
                resync_method=args.cache.resync_method,
                watches_attributes=args.cache.resync_scope == "All",
                only_running=args.cache.informer_mode == "Shared",
            )
        else:
            self._cache = Reports(topologies)
        self._needs: tuple[Pod | None, PodNeeds | None] = (None, None)

    async def start(self) -> None:
        if self._over_reserve is not None:
            self._background.every(float(self._period), self._over_reserve.resync)

    def events(self) -> Iterable[Hint]:
        return [
            Hint(Pod, Action.DELETE),
            Hint(Node, Action.ADD | Action.UPDATE_NODE_ALLOCATABLE),
            Hint(NodeResourceTopology, Action.ADD | Action.UPDATE),
        ]

    def filter(self, pod: Pod, node: NodeView, cycle: Cycle) -> Rejection | None:
        needs = self._needs_of(pod)
        if needs.is_ignored:
            return None
        if self._cache.is_stale(node.name):
            return Rejection(STALE)
        topology = self._cache.get(node.name)
        if topology is None:
            return None
        self._checks.look_at(topology, node)
        if topology.unreadable:
            return Rejection(STALE)
        numa_nodes = self._cache.numa_nodes(topology)
        reason = refusal(node, numa_nodes, topology.kubelet, needs, is_compatible=self._is_compatible)
        if reason is None:
            return None
        self._cache.refused(node.name)
        return Rejection(reason)

    def score(self, pod: Pod, node: NodeView, cycle: Cycle) -> int:
        needs = self._needs_of(pod)
        if not needs.is_guaranteed:
            return HIGHEST
        topology = None if self._cache.is_stale(node.name) else self._cache.get(node.name)
        if topology is None or topology.unreadable:
            return 0
        numa_nodes = self._cache.numa_nodes(topology)
        if not self._is_compatible:
            needs = needs.listed_on(numa_nodes)
        if self._score_of is None:
            return least_numa_nodes_score(numa_nodes, topology.kubelet, needs)
        if not topology.kubelet.is_single_numa_node:
            return 0
        return allocation_score(self._score_of, numa_nodes, topology.kubelet, needs)

    def filter_nodes(self, pod: Pod, nodes: NodeRows, cycle: Cycle) -> Iterator[Rejections]:
        if self._needs_of(pod).is_ignored:
            return
        places: dict[str, list[int]] = {}
        for place in self._known(nodes):
            rejection = self.filter(pod, nodes.at(place), cycle)
            if rejection is not None:
                places.setdefault(rejection.reasons[0], []).append(place)
        for reason, rejected in places.items():
            mask = np.zeros(len(nodes), np.bool_)
            mask[rejected] = True
            yield Rejections(mask, reason)

    def score_nodes(self, pod: Pod, nodes: NodeRows, cycle: Cycle) -> IntArray:
        if not self._needs_of(pod).is_guaranteed:
            return constant_score(HIGHEST, nodes)
        scores = np.zeros(len(nodes), np.int64)
        for place in self._known(nodes):
            scores[place] = self.score(pod, nodes.at(place), cycle)
        return scores

    def _known(self, nodes: NodeRows) -> list[int]:
        """The places of nodes whose topology is known; nothing is computed for the others."""
        places: list[int] = np.flatnonzero(nodes.where_named(self._cache.known_nodes())).tolist()
        return places

    def reserve(self, pod: Pod, node: NodeView, cycle: Cycle) -> None:
        self._cache.reserve(pod, node.name)

    def unreserve(self, pod: Pod, node: NodeView, cycle: Cycle) -> None:
        self._cache.unreserve(pod, node.name)

    async def post_bind(self, pod: Pod, node: NodeView, cycle: Cycle) -> None:
        self._cache.bound(pod, node.name)

    def _needs_of(self, pod: Pod) -> PodNeeds:
        """Computed once for a pod, and read for every node."""
        known, needs = self._needs
        if known is not pod or needs is None:
            needs = needs_of(pod)
            self._needs = (pod, needs)
            if self._over_reserve is not None:
                self._over_reserve.profiles.add(pod.spec.scheduler_name)
        return needs
