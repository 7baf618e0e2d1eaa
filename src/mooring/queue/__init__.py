"""The scheduling queue: which pod is scheduled next, which are in backoff, and which wait for an event."""

from mooring.queue.queue import SchedulingQueue
from mooring.queue.queued_pod_info import Place, QueuedPodInfo
from mooring.queue.queueing_hints import ProfileRules

__all__ = ["Place", "ProfileRules", "QueuedPodInfo", "SchedulingQueue"]
