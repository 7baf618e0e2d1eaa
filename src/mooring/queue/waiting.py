"""A pod on its way through the queue: where it is, how often it was tried, and who refused it."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from mooring.framework.queued_pod import QueuedPod
from mooring.framework.verdicts import Code


class Place(StrEnum):
    """Where a pending pod is: in exactly one of these."""

    ACTIVE = "active"
    BACKOFF = "backoff"
    UNSCHEDULABLE = "unschedulable"
    GATED = "gated"
    IN_FLIGHT = "in flight"
    ABSENT = "absent"


@dataclass(frozen=True, slots=True)
class Gating:
    """Who keeps a pod out of the queue, and why."""

    plugin: str
    code: Code
    reasons: tuple[str, ...]
    is_failure: bool = False
    """It raised or answered nonsense."""


@dataclass(slots=True, eq=False)
class Waiting(QueuedPod):
    """A pod in the queue or in flight. Only the queue writes it."""

    place: Place = Place.ABSENT
    unschedulable_plugins: set[str] = field(default_factory=set)
    """Who refused the last attempt, or keeps the pod out of the queue. Kept while the next attempt runs."""
    pending_plugins: set[str] = field(default_factory=set)
    """Who answered Pending: their event brings the pod back without backoff."""
    gating: Gating | None = None
    """The pre_enqueue that keeps the pod out."""
    unschedulable_count: int = 0
    """How many attempts ended with a refusal."""
    consecutive_errors: int = 0
    """How many attempts in a row ended with an error."""
    popped: float = 0.0
    """When the attempt under way began, in the clock's monotonic time."""
    was_flushed: bool = False
    """Whether no event but the timeout of the unschedulable pods brought it back since it last failed."""
    flush_timestamp: float | None = None

    @property
    def gating_plugin(self) -> str | None:
        return None if self.gating is None else self.gating.plugin

    @property
    def rejectors(self) -> set[str]:
        return self.unschedulable_plugins | self.pending_plugins

    @property
    def failed_by_error(self) -> bool:
        """Whether no plugin refused it: an error, or no node at all."""
        return not self.unschedulable_plugins and not self.pending_plugins
