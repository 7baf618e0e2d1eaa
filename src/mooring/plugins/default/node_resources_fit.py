"""NodeResourcesFit: a node must have room for what the pod requests; which of those with room is better is a strategy.

Every resource that falls short is a reason of its own. If the pod asks for more than the node has when empty, evicting
pods would not help. Scores count a container without CPU or memory request as 100m and 200Mi.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Annotated

from mooring.base.errors import StateMissing
from mooring.framework import (
    UNRESOLVABLE,
    UNSCHEDULABLE,
    Action,
    Args,
    Cycle,
    Hint,
    IntArray,
    Meta,
    Node,
    NodeRows,
    NodeView,
    PlacedPod,
    Plugin,
    Pod,
    Reads,
    Rejection,
    Rejections,
)
from mooring.objects.quantity import whole
from mooring.objects.requests import Amounts, in_units, requests_of_containers
from mooring.plugins.default.resource_scores import Scorer, ScoringStrategy

TOO_MANY_PODS = "Too many pods"


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
        for at, group in enumerate(self.ignored_resource_groups):
            if "/" in group:
                yield f"ignoredResourceGroups[{at}]", f'resource group name can\'t contain "/", got "{group}"'
        yield from self.scoring_strategy.mistakes("scoringStrategy")


class NodeResourcesFit(Plugin):
    """Refuse nodes without room for the pod's requests; rank the others by a strategy."""

    reads = Reads.PODS
    score_needs_pre_score = False

    def __init__(self, args: NodeResourcesFitArgs) -> None:
        self._ignored = frozenset(args.ignored_resources)
        self._ignored_groups = frozenset(args.ignored_resource_groups)
        self._scorer = Scorer(args.scoring_strategy)
        self._weights = args.scoring_strategy.weights

    def events(self) -> Iterable[Hint]:
        return [
            Hint(Pod, Action.DELETE | Action.UPDATE_POD_SCALE_DOWN, self._freed_something),
            Hint(Node, Action.ADD | Action.UPDATE_NODE_ALLOCATABLE, self._node_grew),
        ]

    def pre_filter(self, pod: Pod, cycle: Cycle) -> Amounts:
        """What the pod requests and the filter looks at."""
        return {
            resource: amount
            for resource, amount in pod.requests.amounts.items()
            if amount > 0 and not self._is_ignored(resource)
        }

    def filter(self, pod: Pod, node: NodeView, cycle: Cycle) -> Rejection | None:
        wanted: Amounts = cycle.filter_state(self)
        reasons = [TOO_MANY_PODS] if node.free("pods") < 1 else []
        short = [resource for resource, amount in wanted.items() if amount > node.free(resource)]
        if not reasons and not short:
            return None
        is_hopeless = any(wanted[resource] > node.allocatable(resource) for resource in short)
        return Rejection(*reasons, *map(insufficient, short), code=UNRESOLVABLE if is_hopeless else UNSCHEDULABLE)

    def filter_nodes(self, pod: Pod, nodes: NodeRows, cycle: Cycle) -> Iterator[Rejections]:
        """`filter`, for many nodes at once."""
        yield Rejections(nodes.free("pods") < 1, TOO_MANY_PODS)
        for resource, amount in cycle.filter_state(self).items():
            yield Rejections(
                amount > nodes.free(resource), insufficient(resource), amount > nodes.allocatable(resource)
            )

    def pre_score(self, pod: Pod, feasible: NodeRows, cycle: Cycle) -> Amounts:
        """How much of each scored resource the pod counts as."""
        asked = requests_of_containers(pod)
        counted = asked.amounts | {"cpu": asked.nonzero_cpu_milli, "memory": asked.nonzero_memory_bytes}
        # An extended resource that the pod does not ask for says nothing about the node.
        return {
            resource: counted.get(resource, 0)
            for resource in self._weights
            if counted.get(resource) or not _is_scalar(resource)
        }

    def score(self, pod: Pod, node: NodeView, cycle: Cycle) -> int:
        return self._scorer.score(
            (node.requested_nonzero(resource) + amount, node.allocatable(resource), self._weights[resource])
            for resource, amount in self._scored(pod, cycle).items()
        )

    def score_nodes(self, pod: Pod, nodes: NodeRows, cycle: Cycle) -> IntArray:
        """`score`, for many nodes at once."""
        return self._scorer.score_rows(
            (
                (nodes.requested_nonzero(resource) + amount, nodes.allocatable(resource), self._weights[resource])
                for resource, amount in self._scored(pod, cycle).items()
            ),
            len(nodes),
        )

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
        has = _capacity(after)
        wanted = {"pods": 1} | {
            resource: amount
            for resource, amount in pod.requests.amounts.items()
            if amount > 0 and not self._is_ignored(resource)
        }
        if any(amount > has.get(resource, 0) for resource, amount in wanted.items()):
            return False
        had = {} if before is None else _capacity(before)
        return before is None or any(has.get(resource, 0) > had.get(resource, 0) for resource in wanted)


def _capacity(node: Node) -> Amounts:
    allocatable = node.status.allocatable
    return in_units(allocatable) | {"pods": whole(allocatable.get("pods", 0))}


def _is_scalar(resource: str) -> bool:
    return resource not in ("cpu", "memory", "ephemeral-storage")


def _is_extended(resource: str) -> bool:
    return "/" in resource and "kubernetes.io/" not in resource and not resource.startswith("requests.")
