"""Events about objects that cannot work as they are: each once it has lasted for a while, and not with every sync.

An API server keeps an event for an hour, so one whose problem remains is repeated before that: `kubectl describe` shows
it for as long as it holds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from mooring.base.clock import Clock
from mooring.client.core_event_recorder import CoreEventRecorder, EventSource
from mooring.objects.meta import KubeObject

GRACE_SECONDS = 10.0
"""Objects of one manifest are created one after the other, in any order."""
REPEAT_SECONDS = 1800.0
CHANGE_SECONDS = 300.0
"""The same problem with another message (numbers in it change) is reported so often at most."""


class ObjectProblem(NamedTuple):
    """A warning event."""

    reason: str
    message: str


@dataclass
class _Standing:
    reason: str
    since: float
    message: str = ""
    reported_at: float | None = None

    def due(self, message: str, grace_seconds: float) -> float:
        """When the next event is (monotonic seconds)."""
        if self.reported_at is None:
            return self.since + grace_seconds
        return self.reported_at + (REPEAT_SECONDS if message == self.message else CHANGE_SECONDS)


class ProblemEvents:
    """Which object has which problem, by uid, and when that was reported."""

    def __init__(self, events: CoreEventRecorder, source: EventSource, clock: Clock) -> None:
        self._events, self._source, self._clock = events, source, clock
        self._standing: dict[str, _Standing] = {}

    def report(
        self, about: KubeObject, problem: ObjectProblem | None, *, grace_seconds: float = GRACE_SECONDS
    ) -> float:
        """Record an event if one is due. Returns after how many seconds to call again; 0: there is no problem."""
        if problem is None:
            self.forget(about)
            return 0.0
        now = self._clock.monotonic()
        standing = self._standing.get(about.uid)
        if standing is None or standing.reason != problem.reason:
            standing = self._standing[about.uid] = _Standing(problem.reason, now)
        if standing.due(problem.message, grace_seconds) <= now:
            self._events.record(about, self._source, *problem, warning=True)
            standing.message, standing.reported_at = problem.message, now
        return standing.due(problem.message, grace_seconds) - now

    def forget(self, about: KubeObject) -> None:
        """It is gone, or has no problem any more."""
        self._standing.pop(about.uid, None)
