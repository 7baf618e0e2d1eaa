"""Pending pods, grouped by what they wait for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from mooring.web.pod_store import PodStore
from mooring.why.pending import MOST_PODS, PendingCause, pending_groups

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
    """`queued` is what the queue of a scheduler knows, by uid."""
    found = [
        (pod, cause)
        for key, cause in causes.items()
        if (pod := pods.pending.get(key)) is not None and may_see(pod.namespace)
    ]
    return {"revision": revision, "pending": len(found), "groups": pending_groups(found, queued, most)}
