"""What attempts that take long cost their namespace.

A tenant could create many pods whose attempts take long, up to the time budget. Three rules bound what the pods of
other namespaces lose by that, beside one attempt of each such namespace:

1. A pod that exceeds its time budget is set aside (`FailureHandler.error`).
2. After an attempt of more than 100 ms it is the turn of other namespaces that have pods waiting, if their attempts are
   much shorter, or not known yet. Each may take as much time. So no pod waits behind a queue of long attempts, unless
   those pods have a higher priority.
3. After an attempt of more than a second beside much shorter ones of others, all pods of its namespace wait until the
   time lost is a tenth, or less, of the time that has passed; with several such namespaces, a tenth for all of them.
   Time of which the objects of other namespaces are the cause (their PodDisruptionBudgets) is left out here.

Where the attempts of all namespaces take long, or only one namespace has pods, nothing changes: the reason is the
cluster, or a plugin, and nothing would be gained.
"""

from __future__ import annotations

import msgspec

from mooring.base.clock import Clock
from mooring.queue import QueuedPodInfo, SchedulingQueue
from mooring.scheduler.cycle.failure_handler import FailureHandler
from mooring.scheduler.introspection.decision_log import DecisionLog

LOST_SHARE = 10
"""A second lost is a penalty of this many seconds."""
LONG_SECONDS = 1.0
"""An attempt that takes longer, and much longer than those of others, is a penalty."""
TURN_SECONDS = 0.1
"""After an attempt that takes longer, it is the turn of others."""
TIMES_OTHERS = 4
"""So many times as long as a recent one of others is much longer."""
RECENT_SECONDS = 120.0
MOST_NAMESPACES = 1000


class Penalties(msgspec.Struct):
    """Until when the pods of which namespace wait."""

    clock: Clock
    _until: dict[str, float] = msgspec.field(default_factory=dict)

    def add(self, namespace: str, lost_seconds: float) -> None:
        now = self.clock.monotonic()
        self._until = {name: until for name, until in self._until.items() if until > now}
        until = self._until.setdefault(namespace, now)
        self._until[namespace] = until + lost_seconds * LOST_SHARE * len(self._until)

    def left(self, namespace: str) -> float:
        """How many seconds the namespace still waits."""
        until = self._until.get(namespace)
        return 0.0 if until is None else max(0.0, until - self.clock.monotonic())

    def clear(self) -> None:
        self._until.clear()


class Overruns(msgspec.Struct):
    """Holds back the pods of namespaces that take too much time."""

    penalties: Penalties
    queue: SchedulingQueue
    failures: FailureHandler
    decision_log: DecisionLog
    _last: dict[str, tuple[float, float]] = msgspec.field(default_factory=dict)
    """By namespace how long its last attempt took, and when it ended."""
    _owed: dict[str, float] = msgspec.field(default_factory=dict)
    """How many seconds these namespaces may take before others."""

    def pop(self) -> QueuedPodInfo | None:
        """The next pod to schedule: of a namespace whose turn it is, or the queue's first."""
        queued = self.queue.pop(self._owed)
        if self._owed and (queued is None or queued.pod.namespace not in self._owed):
            self._owed.clear()
        return queued

    def attempted(self, namespace: str, seconds: float, others_seconds: float = 0.0) -> None:
        """An attempt for a pod of this namespace took so long. Of `others_seconds` other namespaces are the cause."""
        now = self.penalties.clock.monotonic()
        if namespace in self._owed:
            self._owed[namespace] -= seconds
            if self._owed[namespace] <= 0:
                del self._owed[namespace]
        if (own := seconds - others_seconds) > LONG_SECONDS:
            others = self._shortest_of_others(namespace, now)
            if others is not None and own > TIMES_OTHERS * others:
                self.penalties.add(namespace, own)
        if seconds > TURN_SECONDS:
            self._owed = {
                other: seconds
                for other in self.queue.active_namespaces()
                if other != namespace and seconds > TIMES_OTHERS * self._last_of(other, now)
            }
        elif namespace not in self._last and len(self._last) >= MOST_NAMESPACES:
            self._last.clear()
        self._last[namespace] = (seconds, now)

    def _last_of(self, namespace: str, now: float) -> float:
        """How long its last attempt took; nothing where that is not known, or long ago."""
        seconds, ended = self._last.get(namespace, (0.0, now))
        return seconds if now - ended < RECENT_SECONDS else 0.0

    def _shortest_of_others(self, namespace: str, now: float) -> float | None:
        return min(
            (
                seconds
                for other, (seconds, ended) in self._last.items()
                if other != namespace and now - ended < RECENT_SECONDS
            ),
            default=None,
        )

    def holds(self, queued: QueuedPodInfo) -> bool:
        """Whether the pod must wait for its namespace's sake; then it is requeued here."""
        namespace = queued.pod.namespace
        if not (seconds := self.penalties.left(namespace)):
            return False
        # Without the seconds: a message that changes each time would be as many status patches.
        message = f"pods of namespace {namespace} wait because attempts for some of them take too long"
        self.decision_log.write(queued.pod, {"attempt": queued.attempts, "node": None, "message": message})
        self.failures.hold_back(queued, message)
        self.queue.retry_after(queued.pod, seconds)
        return True
