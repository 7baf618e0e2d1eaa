"""The feed of a watch: one handler that updates state and queue, and observers before and after it.

The handling time is observed under the label of the cluster event that the handler published.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, Protocol, TypeVar

from mooring.client.reflector import Feed
from mooring.objects.meta import KubeObject
from mooring.scheduler.metrics.scheduler_metrics import SchedulerMetrics

T = TypeVar("T", bound=KubeObject)
Handled = TypeVar("Handled")


class EventHandler(Protocol[Handled]):
    """A `Feed` that returns the label of the last cluster event it published; "" for none."""

    def listed(self, objects: list[Handled], /) -> None: ...

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

    def listed(self, objects: list[T]) -> None:
        """Not timed: it stands for many events."""
        for observer in self._before:
            observer.listed(objects)
        self._handler.listed(objects)
        for observer in self._after:
            observer.listed(objects)

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
