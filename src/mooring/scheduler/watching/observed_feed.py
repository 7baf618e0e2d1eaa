"""The feed of a watch: one handler that updates state and queue, and observers before and after it.

The handling time is observed under the label of the cluster event that the handler published.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, Protocol, TypeVar

from mooring.client.reflector import Feed
from mooring.objects.meta import KubeObject
from mooring.objects.object_store import Present
from mooring.scheduler.metrics.scheduler_metrics import SchedulerMetrics

T = TypeVar("T", bound=KubeObject)
Handled = TypeVar("Handled", contravariant=True)


class EventHandler(Protocol[Handled]):
    """A `Feed` that returns the label of the last cluster event it published; "" for none."""

    def found(self, object: Handled, /) -> None: ...

    def listed(self, present: Present, /) -> None: ...

    def changed(self, object: Handled, /) -> str: ...

    def deleted(self, object: Handled, /) -> str: ...


class ObservedFeed(Generic[T]):
    """Passes each watch event to `before`, the handler and `after`, in this order."""

    def __init__(
        self,
        handler: EventHandler[T],
        metrics: SchedulerMetrics,
        before: Sequence[Feed[T]] = (),
        after: Sequence[Feed[T]] = (),
    ) -> None:
        self._handler = handler
        self._metrics = metrics
        self._before = before
        self._after = after

    def found(self, object: T) -> None:
        """Not timed: what a list brings is no event."""
        for observer in self._before:
            observer.found(object)
        self._handler.found(object)
        for observer in self._after:
            observer.found(object)

    def listed(self, present: Present) -> None:
        for observer in self._before:
            observer.listed(present)
        self._handler.listed(present)
        for observer in self._after:
            observer.listed(present)

    def changed(self, object: T) -> None:
        began = self._metrics.now()
        for observer in self._before:
            observer.changed(object)
        label = self._handler.changed(object)
        for observer in self._after:
            observer.changed(object)
        if label:
            self._metrics.handled(label, self._metrics.now() - began)

    def deleted(self, object: T) -> None:
        began = self._metrics.now()
        for observer in self._before:
            observer.deleted(object)
        label = self._handler.deleted(object)
        for observer in self._after:
            observer.deleted(object)
        if label:
            self._metrics.handled(label, self._metrics.now() - began)
