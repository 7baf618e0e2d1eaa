"""How long a watch event takes: what it changes in the state and which pods it requeues."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from mooring.client.reflector import Feed
from mooring.objects.meta import KubeObject
from mooring.queue import SchedulingQueue
from mooring.scheduler.metrics.scheduler_metrics import SchedulerMetrics

T = TypeVar("T", bound=KubeObject)


class TimedFeed(Generic[T]):
    """Passes everything on and observes the time under the label of the queue's last event."""

    def __init__(self, feed: Feed[T], queue: SchedulingQueue, metrics: SchedulerMetrics) -> None:
        self._feed = feed
        self._queue = queue
        self._metrics = metrics

    def listed(self, objects: list[T]) -> None:
        """Not observed: it stands for many events."""
        self._feed.listed(objects)

    def changed(self, found: T) -> None:
        self._timed(self._feed.changed, found)

    def deleted(self, found: T) -> None:
        self._timed(self._feed.deleted, found)

    def _timed(self, handle: Callable[[T], None], found: T) -> None:
        queue, metrics = self._queue, self._metrics
        began = metrics.now()
        queue.last_event = ""
        handle(found)
        if queue.last_event:
            metrics.handled(queue.last_event, metrics.now() - began)
