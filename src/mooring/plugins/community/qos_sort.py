"""QOSSort: among waiting pods of one priority, those with guaranteed resources first.

The order of the queue: higher priority; then Guaranteed before Burstable before BestEffort; then the pod that waits
longer.
"""

from __future__ import annotations

from mooring.framework import Plugin, QueuedPod
from mooring.objects.qos import Qos, qos_of

_PLACE = {Qos.GUARANTEED: 0, Qos.BURSTABLE: 1, Qos.BEST_EFFORT: 2}


class QOSSort(Plugin):
    """Try pods of higher priority first; among equals, those of a better quality of service."""

    def sort_key(self, queued: QueuedPod) -> tuple[int, int, float]:
        return (-queued.priority, _PLACE[qos_of(queued.pod)], queued.timestamp)
