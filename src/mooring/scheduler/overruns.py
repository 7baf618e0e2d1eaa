"""Pods whose attempts exceed their time budget, and what that costs their namespace.

The pod is set aside: no cluster event requeues it, only the flush of unschedulable pods or another configuration. A
tenant could still create such pods faster than they are set aside. So all pods of the namespace wait until the time
lost is a tenth, or less, of the time that has passed; with several such namespaces, a tenth for all of them together.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from mooring.base.clock import Clock
from mooring.base.errors import BudgetExceeded
from mooring.queue import SchedulingQueue, Waiting
from mooring.scheduler.failures import Failures
from mooring.scheduler.journal import Journal

LOST_SHARE = 10
"""A second lost is a penalty of this many seconds."""


@dataclass
class Penalties:
    """Until when the pods of which namespace wait."""

    clock: Clock
    _until: dict[str, float] = field(default_factory=dict)

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


@dataclass
class Overruns:
    """Sets aside pods whose attempt was stopped, and holds back the pods of their namespaces."""

    penalties: Penalties
    queue: SchedulingQueue
    failures: Failures
    journal: Journal
    budget_seconds: float

    def exceeded(self, waiting: Waiting, fault: BudgetExceeded) -> None:
        """The attempt was stopped: set the pod aside, and let its namespace wait."""
        self.penalties.add(waiting.pod.namespace, self.budget_seconds)
        self.failures.set_aside(waiting, fault)

    def holds(self, waiting: Waiting) -> bool:
        """Whether the pod must wait for its namespace's sake; then it is requeued here."""
        namespace = waiting.pod.namespace
        if not (seconds := self.penalties.left(namespace)):
            return False
        # Without the seconds: a message that changes each time would be as many status patches.
        message = f"pods of namespace {namespace} wait because attempts for some of them exceeded their time budget"
        self.journal.write(waiting.pod, {"attempt": waiting.attempts, "node": None, "message": message})
        self.failures.held(waiting, message)
        self.queue.retry_after(waiting.pod, seconds)
        return True
