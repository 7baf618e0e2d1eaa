"""A pod in the queue: its place, its attempts and the plugins that rejected it."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from mooring.framework.queued_pod import QueuedPod
from mooring.framework.verdicts import Code
from mooring.objects.core import Pod


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
    """The PreEnqueue plugin that gates a pod, and why."""

    plugin: str
    code: Code
    reasons: tuple[str, ...]
    is_failure: bool = False
    """It raised, or returned a value of the wrong type."""


@dataclass(slots=True, eq=False)
class QueuedPodInfo:
    """A pod in the queue or in flight. Only the queue writes it."""

    pod: Pod
    timestamp: float
    """When it entered the queue or was last put back (seconds since the epoch)."""
    attempts: int = 0
    initial_attempt: float | None = None
    """When it first became ready to be tried."""
    place: Place = Place.ABSENT
    unschedulable_plugins: set[str] = field(default_factory=set)
    """The plugins that rejected the last attempt, or that gate the pod. Unchanged while the next attempt runs."""
    pending_plugins: set[str] = field(default_factory=set)
    """The plugins that returned Pending: their event requeues the pod without backoff."""
    gating: Gating | None = None
    """Set while the pod is gated."""
    unschedulable_count: int = 0
    """How many attempts ended with a rejection."""
    consecutive_errors: int = 0
    """How many attempts in a row ended with an error."""
    popped: float = 0.0
    """When the attempt under way began, in the clock's monotonic time."""
    was_flushed: bool = False
    """Whether the timeout of unschedulable pods requeued it since it last failed, and no event."""
    flush_timestamp: float | None = None
    requeued_by: str = ""
    """The label of the event that requeued it, or of what else did."""
    started_by: str = ""
    """The same, of the attempt under way; "" for the first one."""
    entry: int = 0
    """Its turn among the unschedulable pods: they are requeued in the order in which they came."""

    def shown(self) -> QueuedPod:
        """What plugins see of it."""
        return QueuedPod(self.pod, self.timestamp, self.attempts, self.initial_attempt)

    @property
    def priority(self) -> int:
        return self.pod.priority

    @property
    def gating_plugin(self) -> str | None:
        return None if self.gating is None else self.gating.plugin

    @property
    def rejectors(self) -> set[str]:
        return self.unschedulable_plugins | self.pending_plugins

    @property
    def failed_by_error(self) -> bool:
        """Whether no plugin rejected it: an error, or no node at all."""
        return not self.unschedulable_plugins and not self.pending_plugins
