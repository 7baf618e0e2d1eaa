"""How long an event of the watch takes: what it changes in the state, and whom it wakes in the queue."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from mooring.client.reflector import Feed
from mooring.objects.meta import KubeObject
from mooring.queue import SchedulingQueue
from mooring.scheduler.metrics.scheduler_metrics import SchedulerMetrics

T = TypeVar("T", bound=KubeObject)


class TimedFeed(Generic[T]):
    """A feed that passes everything on, and observes under the name of what the queue was told last."""

    def __init__(self, feed: Feed[T], queue: SchedulingQueue, metrics: SchedulerMetrics) -> None:
        self._feed = feed
        self._queue = queue
        self._metrics = metrics

    def listed(self, objects: list[T]) -> None:
        """Not observed: it is many events, and none of them came by itself."""
        self._feed.listed(objects)

    def changed(self, found: T) -> None:
        self._timed(self._feed.changed, found)

    def deleted(self, found: T) -> None:
        self._timed(self._feed.deleted, found)

    def _timed(self, handle: Callable[[T], None], found: T) -> None:
        queue, metrics = self._queue, self._metrics
        began = metrics.now()
        queue.last_told = ""
        handle(found)
        if queue.last_told:
            metrics.handled(queue.last_told, metrics.now() - began)
