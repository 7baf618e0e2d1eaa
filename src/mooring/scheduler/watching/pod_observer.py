"""Watch events of the pending pods of our profiles: one protocol for all observers."""

from __future__ import annotations

from mooring.objects.core import Pod


class PodObserver:
    """Called by `PodFeed`, in the order of its list; must neither wait nor raise. Override what is of interest."""

    def pending(self, pod: Pod) -> None:
        """The pod waits to be scheduled: new, or changed. Called before the queue is updated."""

    def assigned(self, pod: Pod) -> None:
        """A pod that was pending has a node now."""
        self.not_pending(pod)

    def deleted(self, pod: Pod) -> None:
        """A pod that was pending is gone; or it is being deleted while it is being bound."""
        self.not_pending(pod)

    def not_ours(self, pod: Pod) -> None:
        """A pending pod's scheduler name is no longer one of our profiles."""
        self.not_pending(pod)

    def not_pending(self, pod: Pod) -> None:
        """Any of the three."""
