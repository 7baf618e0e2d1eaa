"""A waiting pod, as the plugin that orders the queue sees it."""

from __future__ import annotations

import msgspec

from mooring.objects.core import Pod


class QueuedPod(msgspec.Struct, frozen=True, gc=False):
    """A waiting pod as `sort_key` sees it."""

    pod: Pod
    timestamp: float
    """When it entered the queue or was last put back (seconds since the epoch)."""
    attempts: int = 0
    initial_attempt: float | None = None
    """When it first became ready to be tried."""

    @property
    def priority(self) -> int:
        return self.pod.priority
