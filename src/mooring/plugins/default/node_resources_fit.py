"""NodeResourcesFit: a node must have room for what the pod requests; which of those with room is better is a strategy.

Every resource that falls short is a reason of its own. If the pod requests more than the node has when empty, evicting
pods would not help. Where a node lacks an extended resource that a DeviceClass provides, DynamicResources checks
it. Scores count a container without CPU or memory request as 100m and 200Mi.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from mooring.base.errors import StateMissing
from mooring.framework import (
    UNRESOLVABLE,
    UNSCHEDULABLE,
    Action,
    Args,
    ClaimsInFlight,
    Cycle,
    FeatureGates,
    Hint,
    Meta,
    Node,
    NodeRows,
    NodeView,
    Objects,
    PlacedPod,
    Plugin,
    Pod,
    PodGroupInfo,
    ProposedPlacement,
    Reads,
    Rejection,
    Rejections,
)
from mooring.framework.nodes import Capacity
from mooring.objects.names import qualified_name
from mooring.objects.quantity import whole
from mooring.objects.requests import Amounts, in_units, requests_of_containers
from mooring.objects.resource import IMPLICIT_EXTENDED_RESOURCE, DeviceClass, ResourceClaim, ResourceSlice
from mooring.plugins.default.dynamic_resources.extended_resources import ExtendedResourceUsage
from mooring.plugins.default.resource_scores import ResourceScorer, ScoringStrategy, Usage

TOO_MANY_PODS = "Too many pods"
FULLEST = ResourceScorer(ScoringStrategy(type="MostAllocated"))
"""Scores placements of pod groups."""


def insufficient(resource: str) -> str:
    return f"Insufficient {resource}"


class NodeResourcesFitArgs(Args):
    """Arguments of NodeResourcesFit."""

    ignored_resources: Annotated[
        list[str], Meta(description="Extended resources that the filter does not look at.")
    ] = []
    ignored_resource_groups: Annotated[
        list[str], Meta(description='Groups (the part before the "/") of extended resources to ignore likewise.')
    ] = []
    scoring_strategy: Annotated[
        ScoringStrategy, Meta(description="How nodes with room are ranked, by which resources.")
    ] = ScoringStrategy()

    def mistakes(self) -> Iterable[tuple[str, str]]:
        for at, resource in enumerate(self.ignored_resources):
            for wrong in qualified_name(resource):
                yield f"ignoredResources[{at}]", f'{wrong}, got "{resource}"'
        for at, group in enumerate(self.ignored_resource_groups):
            if "/" in group:
                yield f"ignoredResourceGroups[{at}]", f'resource group name can\'t contain "/", got "{group}"'
            else:
                for wrong in qualified_name(group):
                    yield f"ignoredResourceGroups[{at}]", f'{wrong}, got "{group}"'
        yield from self.scoring_strategy.mistakes("scoringStrategy")


class NodeResourcesFit(Plugin):
    """Refuse nodes without room for the pod's requests; rank the others by a strategy."""

    pod_fields = ("spec.containers", "spec.initContainers")
    missing_state_message = 'error reading "{}" from cycleState: not found'
    reads = Reads.REQUESTED
    per_template = True
    pre_filter_reads_pods = False
    score_needs_pre_score = False

    def __init__(
        self,
        args: NodeResourcesFitArgs,
        classes: Objects[DeviceClass],
        claims: Objects[ResourceClaim],
        slices: Objects[ResourceSlice],
        in_flight: ClaimsInFlight,
        gates: FeatureGates,
    ) -> None:
        self._ignored = frozenset(args.ignored_resources)
        self._ignored_groups = frozenset(args.ignored_resource_groups)
        self._scorer = ResourceScorer(args.scoring_strategy)
        self._weights = args.scoring_strategy.weights
        self._scores_devices = any(_is_extended(resource) for resource in self._weights)
        self._devices = ExtendedResourceUsage(classes, claims, slices, in_flight, gates)
        self._can_be_devices = gates.on("DRAExtendedResource")
        self._capacities: tuple[tuple[Node, Amounts], ...] = ()
        """The last two nodes that hints read."""

    def sign(self, pod: Pod) -> Hashable | None:
        """What is read of the pod. Where devices may stand in for a resource, more is read than pod and node."""
        if self._scores_devices or (self._can_be_devices and any("/" in resource for resource in pod.requests.amounts)):
            return None
        requests = pod.requests
        signature = (*requests.amounts.items(), requests.nonzero_cpu_milli, requests.nonzero_memory_bytes)
        if pod.spec.resources is None:
            return signature
        ranked = requests_of_containers(pod)
        return (signature, *ranked.amounts.items(), ranked.nonzero_cpu_milli, ranked.nonzero_memory_bytes)

    def events(self) -> Iterable[Hint]:
        hints = [
            Hint(Pod, Action.DELETE | Action.UPDATE_POD_SCALE_DOWN, self._freed_something, per_template=True),
            Hint(Node, Action.ADD | Action.UPDATE_NODE_ALLOCATABLE, self._node_grew, per_template=True),
        ]
        if self._can_be_devices:
            hints.append(Hint(DeviceClass, Action.ADD | Action.UPDATE, self._class_began_to_provide, per_template=True))
        return hints

    def pre_filter(self, pod: Pod, cycle: Cycle) -> Amounts:
        """What the pod requests, without ignored resources."""
        return {
            resource: amount
            for resource, amount in pod.requests.amounts.items()
            if amount > 0 and not ("/" in resource and self._is_ignored(resource))
        }

    def filter(self, pod: Pod, node: NodeView, cycle: Cycle) -> Rejection | None:
        wanted: Amounts = cycle.filter_state(self)
        reasons = [TOO_MANY_PODS] if node.free("pods") < 1 else []
        short: list[str] = []
        for resource, amount in wanted.items():
            if amount > node.free(resource) and (
                node.allocatable(resource) > 0 or not self._devices.is_device_backed(resource)
            ):
                short.append(resource)
        if not reasons and not short:
            return None
        is_unresolvable = any(wanted[resource] > node.allocatable(resource) for resource in short)
        return Rejection(*reasons, *map(insufficient, short), code=UNRESOLVABLE if is_unresolvable else UNSCHEDULABLE)

    def filter_nodes(self, pod: Pod, nodes: NodeRows, cycle: Cycle) -> Iterator[Rejections]:
        """`filter`, for many nodes at once."""
        if not nodes.is_room_everywhere("pods", 1):
            is_full = nodes.free("pods") < 1
            if is_full.any():
                yield Rejections(is_full, TOO_MANY_PODS)
        for resource, amount in cycle.filter_state(self).items():
            if nodes.is_room_everywhere(resource, amount):
                continue
            is_short = amount > nodes.free(resource)
            if self._devices.is_device_backed(resource):
                is_short &= nodes.allocatable(resource) > 0
            if is_short.any():
                yield Rejections(is_short, insufficient(resource), amount > nodes.allocatable(resource))

    def pre_score(self, pod: Pod, feasible: NodeRows, cycle: Cycle) -> Amounts:
        """How much of each scored resource the pod counts as."""
        requests = requests_of_containers(pod)
        counted = requests.amounts | {"cpu": requests.nonzero_cpu_milli, "memory": requests.nonzero_memory_bytes}
        # An extended resource that the pod does not request does not rank the node.
        return {
            resource: counted.get(resource, 0)
            for resource in self._weights
            if counted.get(resource) or not _is_scalar(resource)
        }

    def score(self, pod: Pod, node: NodeView, cycle: Cycle) -> int:
        usages = []
        for resource, amount in self._scored(pod, cycle).items():
            used, capacity = node.requested_nonzero(resource), node.allocatable(resource)
            if not capacity:
                used, capacity = self._devices.usage(node, resource, used, capacity)
            usages.append((used + amount, capacity, self._weights[resource]))
        return self._scorer.score(usages)

    def score_nodes(self, pod: Pod, nodes: NodeRows, cycle: Cycle) -> NDArray[Any]:
        """`score`, for many nodes at once."""
        return self._scorer.score_rows(
            [self._usage_of_nodes(nodes, resource, amount) for resource, amount in self._scored(pod, cycle).items()],
            len(nodes),
        )

    def placement_score(self, group: PodGroupInfo, proposed: ProposedPlacement) -> int:
        """How full the placement would be with the group, whatever the strategy for nodes: fuller is better."""
        nodes = proposed.placement.nodes
        usages = []
        for resource, weight in self._weights.items():
            used, capacity = nodes.requested_nonzero(resource), nodes.allocatable(resource)
            if _is_extended(resource):
                used, capacity = self._devices.usage_of_nodes(nodes, resource, used, capacity)
            more = sum(_counted(each.pod, resource) for each in proposed.assignments)
            usages.append((int(used.sum()) + more, int(capacity.sum()), weight))
        return FULLEST.score(usages)

    def _usage_of_nodes(self, nodes: NodeRows, resource: str, more: int) -> Usage:
        """How much of the resource is used, of how much."""
        weight = self._weights[resource]
        if not _is_extended(resource):
            can_exceed = not nodes.is_room_everywhere(resource, more, nonzero=True)
            return Usage(nodes.used(resource, nonzero=True), more, nodes.capacity(resource), weight, can_exceed)
        used, capacity = nodes.requested_nonzero(resource), nodes.allocatable(resource)
        used, capacity = self._devices.usage_of_nodes(nodes, resource, used, capacity)
        return Usage(used.astype(np.float64), more, Capacity(capacity), weight, can_exceed=True)

    def _scored(self, pod: Pod, cycle: Cycle) -> Amounts:
        try:
            amounts: Amounts = cycle.score_state(self)
        except StateMissing:  # pre_score is switched off in this profile
            return self.pre_score(pod, cycle.nodes, cycle)
        return amounts

    def _is_ignored(self, resource: str) -> bool:
        group = resource.partition("/")[0]
        return _is_extended(resource) and (resource in self._ignored or group in self._ignored_groups)

    def _freed_something(self, pod: Pod, before: PlacedPod | Pod, after: PlacedPod | Pod | None) -> bool:
        held_room = isinstance(before, PlacedPod) or bool(before.spec.node_name or before.status.nominated_node_name)
        if after is None:
            return held_room
        if after.uid == pod.uid:
            return True
        return isinstance(after, PlacedPod) and any(
            amount > 0 and before.request(resource) > after.request(resource)
            for resource, amount in pod.requests.amounts.items()
        )

    def _node_grew(self, pod: Pod, before: Node | None, after: Node) -> bool:
        has, had = self._capacity(after), self._capacity(before) if before is not None else None
        may_help = had is None
        for resource, amount in (("pods", 1), *pod.requests.amounts.items()):
            if amount <= 0 or self._is_ignored(resource):
                continue
            capacity = has.get(resource, 0)
            if amount > capacity:
                if capacity or not self._devices.is_device_backed(resource):
                    return False
                may_help = True
            elif had is not None and capacity > had.get(resource, 0):
                may_help = True
        return may_help

    def _capacity(self, node: Node) -> Amounts:
        """What the node offers. One event runs the hints of thousands of pods on the same two objects."""
        for known, amounts in self._capacities:
            if known is node:
                return amounts
        amounts = _capacity(node)
        self._capacities = ((node, amounts), *self._capacities[:1])
        return amounts

    def _class_began_to_provide(self, pod: Pod, before: DeviceClass | None, after: DeviceClass) -> bool:
        requested, provided = pod.requests.amounts, after.spec.extended_resource_name
        if before is None and f"{IMPLICIT_EXTENDED_RESOURCE}{after.name}" in requested:
            return True
        if before is not None and (before.spec.extended_resource_name or "") == (provided or ""):
            return False
        return provided is not None and provided in requested


def _counted(pod: Pod, resource: str) -> int:
    """How much of a scored resource the pod counts as."""
    requests = requests_of_containers(pod)
    if resource == "cpu":
        return requests.nonzero_cpu_milli
    return requests.nonzero_memory_bytes if resource == "memory" else requests.amounts.get(resource, 0)


def _capacity(node: Node) -> Amounts:
    allocatable = node.status.allocatable
    return in_units(allocatable) | {"pods": whole(allocatable.get("pods", 0))}


def _is_scalar(resource: str) -> bool:
    return resource not in ("cpu", "memory", "ephemeral-storage")


def _is_extended(resource: str) -> bool:
    return "/" in resource and "kubernetes.io/" not in resource and not resource.startswith("requests.")
