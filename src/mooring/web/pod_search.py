"""Pods found by a part of their name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mooring.web.access import Rights
from mooring.web.errors import RequestError
from mooring.web.pod_store import PodStore

DEFAULT, MOST = 50, 1_000


def search_pods(pods: PodStore, query: Mapping[str, str], rights: Rights) -> dict[str, Any]:
    """Those whose `namespace/name` contains `q`; names that begin with it first."""
    namespace, text, limit = query.get("namespace", ""), query.get("q", "").lower(), _limit(query.get("limit"))
    if namespace:
        rights.check_namespace(namespace)
    found = [
        pod
        for pod in pods
        if (not namespace or pod.namespace == namespace) and rights.may_see(pod.namespace) and text in pod.key.lower()
    ]
    found.sort(key=lambda pod: (not pod.name.startswith(text), pod.key))
    return {
        "total": len(found),
        "pods": [
            {
                "namespace": pod.namespace,
                "name": pod.name,
                "node": pod.spec.node_name or None,
                "phase": pod.status.phase or "Pending",
            }
            for pod in found[:limit]
        ],
    }


def _limit(text: str | None) -> int:
    if text is None:
        return DEFAULT
    if not (text.isascii() and text.isdigit()) or not 1 <= int(text[:9]) <= MOST:
        raise RequestError(400, f'limit must be a number from 1 to {MOST}, got "{text[:40]}".', field="limit")
    return int(text)
