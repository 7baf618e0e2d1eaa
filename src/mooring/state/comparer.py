"""The cache comparer: where the state differs from the objects of the API server. For operators, and for tests."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from mooring.objects import Node
from mooring.objects.placed import PlacedPod
from mooring.objects.requests import Amounts
from mooring.state.columns import LARGEST
from mooring.state.table import PODS, NodeTable


def differences(
    table: NodeTable, known: Mapping[str, PlacedPod], nodes: Iterable[Node], pods: Iterable[PlacedPod]
) -> list[str]:
    """Each difference as a sentence; assumed pods that the API server does not place yet are none."""
    listed_nodes = {node.name for node in nodes}
    listed_pods = {pod.uid: pod for pod in pods}
    return [
        *_nodes(table, listed_nodes),
        *_pods(known, listed_pods),
        *_sums(table, known),
    ]


def _nodes(table: NodeTable, listed: set[str]) -> Iterator[str]:
    ours = {view.name for view in table}
    for name in sorted(listed - ours):
        yield f"Node {name} exists and is not in the cache."
    for name in sorted(ours - listed):
        yield f"Node {name} is in the cache and does not exist."


def _pods(known: Mapping[str, PlacedPod], listed: Mapping[str, PlacedPod]) -> Iterator[str]:
    for uid, pod in listed.items():
        ours = known.get(uid)
        if ours is None:
            yield f"Pod {pod.key} runs on node {pod.node} and is not in the cache."
        elif ours.node != pod.node:
            yield f"Pod {pod.key} runs on node {pod.node}; the cache has it on node {ours.node}."
        elif ours.requests != pod.requests:
            yield f"Pod {pod.key} on node {pod.node} requests other amounts than the cache has."
    for uid, ours in known.items():
        if uid not in listed and ours.assumed_at is None:
            yield f"Pod {ours.key} is on no node; the cache has it on node {ours.node}."


def _sums(table: NodeTable, known: Mapping[str, PlacedPod]) -> Iterator[str]:
    """What the columns hold against what the pods add up to: a difference is a bug in the cache."""
    sums: dict[str, Amounts] = {}
    for pod in known.values():
        on_node = sums.setdefault(pod.node, {})
        on_node[PODS] = on_node.get(PODS, 0) + 1
        for resource, amount in pod.requests.amounts.items():
            on_node[resource] = on_node.get(resource, 0) + amount
    for view in table:
        for resource in table.requested:
            ours, right = view.requested(resource), min(LARGEST, sums.get(view.name, {}).get(resource, 0))
            if ours != right:
                yield f"Node {view.name} has {right} of {resource} requested; the cache counts {ours}."
