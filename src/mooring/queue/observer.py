"""Who wants to know how long plugins take that the queue asks. Nothing in the queue depends on it."""

from __future__ import annotations

from typing import Protocol


class QueueObserver(Protocol):
    """Told on the thread that asks; must return at once."""

    def now(self) -> float:
        """Seconds, of which only differences mean anything."""
        ...

    def gated(self, profile: str, status: str, seconds: float, /) -> None:
        """All pre_enqueue plugins were asked about a pod; the status is kube-scheduler's word for their answer."""
        ...

    def hinted(self, plugin: str, event: str, hint: str, seconds: float, /) -> None:
        """A plugin was asked whether the event helps a pod: `Queue`, `QueueSkip`, or `Error` if it failed."""
        ...
