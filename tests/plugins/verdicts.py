"""Verdicts, scores and hints of a plugin, for tests."""

from __future__ import annotations

from mooring.engine import Decision
from mooring.framework import ClusterEvent, Code, Node, PlacedPod, Plugin, Pod, Refusal
from mooring.framework.events import (
    NODE_ADDED,
    NODE_DELETED,
    Action,
    node_changes,
    pending_pod_changes,
    placed_pod_changes,
    registered_hints,
    resource_name,
)
from mooring.objects import KubeObject

Seen = KubeObject | PlacedPod | None


def verdict(refusal: Refusal | None) -> tuple[Code, tuple[str, ...]] | None:
    return None if refusal is None else (refusal.code, refusal.reasons)


def normalized(decision: Decision, plugin: str) -> dict[str, int]:
    """The plugin's final score of each feasible node."""
    columns = decision.columns()
    assert columns is not None
    return dict(zip(columns.nodes, columns.normalized[plugin].tolist(), strict=True))


def requeues(plugin: Plugin, pod: Pod, before: Seen, after: Seen) -> bool:
    """Whether this change of an object requeues a pod that the plugin rejected."""
    hints = registered_hints(plugin.events(), can_refuse=True)
    return any(
        hint.matches(event) and (hint.test is None or hint.test(pod, before, after))
        for event in _events(before, after)
        for hint in hints
    )


def _events(before: Seen, after: Seen) -> list[ClusterEvent]:
    if isinstance(before, Node) and isinstance(after, Node):
        return node_changes(before, after)
    if isinstance(before, PlacedPod) and isinstance(after, PlacedPod):
        return placed_pod_changes(before, after)
    if isinstance(before, Pod) and isinstance(after, Pod):
        return pending_pod_changes(before, after)
    shown = before if after is None else after
    action = Action.DELETE if after is None else Action.ADD if before is None else Action.UPDATE
    if isinstance(shown, Node):
        return [NODE_DELETED if after is None else NODE_ADDED]
    if isinstance(shown, KubeObject) and not isinstance(shown, Pod):
        return [ClusterEvent(resource_name(type(shown)), action)]
    return [ClusterEvent("AssignedPod" if isinstance(shown, PlacedPod) else "UnschedulablePod", action)]
