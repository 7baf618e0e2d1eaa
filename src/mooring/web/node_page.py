"""A node's page: what runs there, which pending pods it was refused to and why, what happened there lately."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from mooring.base.clock import timestamp
from mooring.engine import Decision
from mooring.framework import Pod
from mooring.objects.placed import PlacedPod
from mooring.state import RowView
from mooring.web.mirror import Mirror
from mooring.web.node_columns import node_row
from mooring.web.pod_store import PodEvent
from mooring.why.owner_kinds import owner_of
from mooring.why.pods import bound_at

MOST_REFUSED, MOST_HISTORY = 200, 200

Document = dict[str, Any]
Decided = Sequence[tuple[list[Pod], Decision]]
"""Pending pods of a kind, and the decision about it."""


def node_page(
    mirror: Mirror, view: RowView, resources: Iterable[str], decided: Decided, may_see: Callable[[str], bool]
) -> Document:
    """Pods of namespaces that the user may not see are counted, not named."""
    placed = [pod for pod in view.placed.values() if may_see(pod.namespace)]
    return {
        **node_row(view, resources),
        "conditions": [{"type": kind, "status": status} for kind, status in view.conditions.items()],
        "pods": [_placed_pod(mirror, pod) for pod in sorted(placed, key=lambda pod: (-pod.priority, pod.key))],
        "hiddenPods": len(view.placed) - len(placed),
        "refused": _refused(mirror, view, decided, may_see),
        "history": _history(mirror.pods.events, view.name, may_see),
    }


def _placed_pod(mirror: Mirror, placed: PlacedPod) -> Document:
    pod = mirror.pods.by_uid.get(placed.uid)
    since = bound_at(pod) if pod is not None else None
    return {
        "namespace": placed.namespace,
        "name": placed.name,
        "owner": owner_of(pod) if pod is not None else None,
        "phase": (pod.status.phase if pod is not None else "") or "Pending",
        "priority": placed.priority,
        "requests": dict(placed.requests.amounts),
        "since": since or (pod.metadata.creation_timestamp if pod is not None else None),
    }


def _refused(mirror: Mirror, view: RowView, decided: Decided, may_see: Callable[[str], bool]) -> list[Document]:
    """By the decisions taken now: which filter keeps each pending pod from this node."""
    now = timestamp(mirror.clock.now())
    found: list[Document] = []
    for pods, decision in decided:
        verdict = decision.rejections.get(view.name)
        if verdict is None:
            continue
        reason = "; ".join(verdict.refusal.reasons) or verdict.refusal.code.value
        for pod in pods:
            if may_see(pod.namespace) and len(found) < MOST_REFUSED:
                found.append(
                    {
                        "namespace": pod.namespace,
                        "name": pod.name,
                        "plugin": verdict.plugin,
                        "reason": reason,
                        "time": now,
                    }
                )
    return found


def _history(events: Iterable[PodEvent], node: str, may_see: Callable[[str], bool]) -> list[Document]:
    """The newest first."""
    found: list[Document] = [
        {"time": event.time, "what": event.kind, "pod": event.pod}
        | ({"message": event.message} if event.message else {})
        for event in events
        if event.node == node and may_see(event.namespace)
    ]
    return found[: -MOST_HISTORY - 1 : -1]
