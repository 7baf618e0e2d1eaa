"""How long a pod that failed waits: doubling, capped, in windows of a whole second.

A window is the whole second in which a pod's backoff ends. A pod is released at the first whole second after its
window, so pods of one window come out together and the sort order decides among them, not the order of failures.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from mooring.queue.queued_pod_info import QueuedPodInfo

WINDOW_SECONDS = 1
_NANOSECONDS = 1_000_000_000


@dataclass(frozen=True, slots=True)
class PodBackoff:
    initial_seconds: float
    max_seconds: float
    _initial: int = field(init=False)
    _max: int = field(init=False)

    def __post_init__(self) -> None:
        # Whole nanoseconds, so that doubling never overflows and never rounds.
        object.__setattr__(self, "_initial", round(self.initial_seconds * _NANOSECONDS))
        object.__setattr__(self, "_max", round(self.max_seconds * _NANOSECONDS))

    def seconds(self, failures: int) -> float:
        """How long a pod waits that failed so often: 1, 2, 4, 8, 10, 10 … with the default settings."""
        if failures <= 0 or self._max == 0:
            return 0.0
        doublings = failures - 1
        if self._initial > self._max >> doublings:
            return self._max / _NANOSECONDS
        return (self._initial << doublings) / _NANOSECONDS

    def window(self, queued: QueuedPodInfo) -> int | None:
        """The whole second in which the pod's backoff ends; None if it has none."""
        # Errors in a row matter more now than refusals long ago.
        failures = queued.consecutive_errors or queued.unschedulable_count
        if failures <= 0 or self._max == 0:
            return None
        return math.floor(queued.timestamp + self.seconds(failures))


def has_ended(window: int, now: float) -> bool:
    """Whether the pods of this window are released."""
    return window < math.floor(now)


def release_time(window: int) -> float:
    """When the pods of this window are released."""
    return float(window + WINDOW_SECONDS)
