"""The pods that wait: which is tried next, which wait for time to pass, and which wait for something to happen."""

from mooring.queue.queue import SchedulingQueue
from mooring.queue.waiting import Place, Waiting
from mooring.queue.wakers import ProfileRules

__all__ = ["Place", "ProfileRules", "SchedulingQueue", "Waiting"]
