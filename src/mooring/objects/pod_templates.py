"""Pod templates: what the pods of one workload have in common, so that it is read once for all of them.

Pods of a Deployment or a Job differ in their names. Whatever depends only on namespace, labels, spec and reported
resources is the same for all of them. It is kept as long as there is room for it, or a pod of the template is known.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

import msgspec

from mooring.base.bounded import BoundedCache

if TYPE_CHECKING:
    from mooring.objects.core import Pod
    from mooring.objects.requests import PodRequests

MOST_CACHED_BYTES = 16 * 1024 * 1024
TEMPLATE_BYTES = 1024
"""About what one takes in memory, besides its text."""

_encode = msgspec.msgpack.Encoder().encode


class PodTemplate:
    """One for all pods that are alike; compared by identity."""

    __slots__ = ("__weakref__", "notes", "requests")

    def __init__(self) -> None:
        self.requests: PodRequests | None = None
        """What scheduling counts for such a pod, once it was read."""
        self.notes: dict[Hashable, Any] = {}
        """What else was read of it, by its reader; little, because it lives as long as the template."""


_known: BoundedCache[bytes, PodTemplate] = BoundedCache(MOST_CACHED_BYTES)


def template_of(pod: Pod) -> PodTemplate:
    metadata, status = pod.metadata, pod.status
    reported = None
    if status.container_statuses or status.init_container_statuses or status.resources is not None:
        reported = status
    text = _encode((metadata.namespace, metadata.labels, pod.spec, reported))
    known = _known.get(text)
    return _known.put(text, PodTemplate(), len(text) + TEMPLATE_BYTES) if known is None else known
