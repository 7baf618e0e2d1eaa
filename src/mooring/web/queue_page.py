"""Pending pods, grouped by what they wait for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from mooring.framework import Pod
from mooring.web.pending_causes import PendingCause
from mooring.web.pod_store import PodStore
from mooring.why.owner_kinds import owner_of

MOST_PODS = 200
"""Of a group; `total` counts all."""

Document = dict[str, Any]


def queue_page(
    pods: PodStore,
    causes: dict[str, PendingCause],
    revision: int,
    *,
    may_see: Callable[[str], bool],
    queued: Mapping[str, Document] | None = None,
    most: int = MOST_PODS,
) -> Document:
    """Groups, the largest first; in each the pods of highest priority first, then the oldest.

    `queued` is what the queue of a scheduler knows, by uid.
    """
    known = queued or {}
    groups: dict[tuple[str, str], list[tuple[Pod, PendingCause]]] = {}
    pending = 0
    for key, cause in causes.items():
        pod = pods.pending.get(key)
        if pod is None or not may_see(pod.namespace):
            continue
        pending += 1
        groups.setdefault((cause.reason, cause.plugin), []).append((pod, cause))
    return {
        "revision": revision,
        "pending": pending,
        "groups": [
            {
                "reason": reason,
                "plugin": plugin,
                "message": members[0][1].message,
                "total": len(members),
                "pods": [waiting_pod(pod, known.get(pod.uid)) for pod, _ in sorted(members, key=_order)[:most]],
            }
            for (reason, plugin), members in sorted(groups.items(), key=lambda each: (-len(each[1]), each[0]))
        ],
    }


def waiting_pod(pod: Pod, queued: Mapping[str, Any] | None) -> Document:
    found: Document = {
        "namespace": pod.namespace,
        "name": pod.name,
        "priority": pod.spec.priority or 0,
        "since": pod.metadata.creation_timestamp,
        "owner": owner_of(pod),
    }
    if pod.status.nominated_node_name:
        found["nominatedNode"] = pod.status.nominated_node_name
    for field in ("attempts", "nextAttempt"):
        if queued is not None and field in queued:
            found[field] = queued[field]
    return found


def _order(member: tuple[Pod, PendingCause]) -> tuple[int, str, str]:
    pod = member[0]
    return -(pod.spec.priority or 0), pod.metadata.creation_timestamp or "", pod.key
