"""ByDeadline: pods with the earliest deadline are tried first.

The annotation `example.com/deadline` holds a time such as `2026-11-16T18:00:00Z`. Pods without one come after all that
have one, by priority and then by age, as kube-scheduler sorts them. A queue has one order: the plugin takes the place
of PrioritySort in all profiles.
"""

from __future__ import annotations

import math
from datetime import UTC, datetime

from mooring.framework import Log, Plugin, Pod, QueuedPod

DEADLINE = "example.com/deadline"


class ByDeadline(Plugin):
    """Try pods with the earliest deadline first."""

    def __init__(self, log: Log) -> None:
        self._log = log

    def sort_key(self, queued: QueuedPod) -> tuple[float, int, float]:
        """The lowest key goes first, so a higher priority is a lower number."""
        return (self._deadline(queued.pod), -queued.priority, queued.timestamp)

    def _deadline(self, pod: Pod) -> float:
        text = pod.metadata.annotations.get(DEADLINE)
        if text is None:
            return math.inf
        try:
            time = datetime.fromisoformat(text)
        except ValueError:
            self._log.warning("Ignoring a deadline that is not a time", pod=pod.key, deadline=text)
            return math.inf
        return (time if time.tzinfo is not None else time.replace(tzinfo=UTC)).timestamp()
