"""Records how long the queue's plugins take. Nothing in the queue depends on it."""

from __future__ import annotations

from typing import Protocol


class QueueObserver(Protocol):
    """Called on the thread that runs the plugin; must return at once."""

    def now(self) -> float:
        """Seconds, of which only differences mean anything."""
        ...

    def gated(self, profile: str, status: str, seconds: float, /) -> None:
        """PreEnqueue ran for a pod; the status is kube-scheduler's status code."""
        ...

    def hinted(self, plugin: str, event: str, hint: str, seconds: float, /) -> None:
        """A queueing hint ran: `Queue`, `QueueSkip`, or `Error` if it failed."""
        ...
