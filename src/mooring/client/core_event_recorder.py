"""Records core/v1 events of kubelets and controllers, in the background.

Upstream's kubelet and controllers still write core/v1 with a source, and `kubectl describe` shows that source. An event
that repeats is one object with a count. Events about one object are rate-limited as upstream (25, then one in five
minutes); events that the server rejects, or that find the queue full, are dropped and counted.
"""

from __future__ import annotations

import asyncio
import itertools
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any

from mooring.base.clock import Clock, timestamp
from mooring.base.errors import ApiError, Fault
from mooring.base.log import Log
from mooring.client.api import ApiClient
from mooring.objects.meta import Kind, KubeObject

Document = dict[str, Any]
EVENT = Kind("", "v1", "Event", "events")
BURST = 25
REFILL_SECONDS = 300.0
_MOST_PENDING = 20_000
_MOST_SUBJECTS = 4096
_MOST_SERIES = 4096


@dataclass(frozen=True)
class EventSource:
    """The component that reports an event: `kubelet` on a host, or a controller without one."""

    component: str
    host: str = ""


_EventKey = tuple[EventSource, str, str, str, str, bool]
"""Equal events are counted as one that repeats: source, uid, reason, message, field, is a warning."""


@dataclass(eq=False)
class _Series:
    """One event object, and whether its last count is queued and its object created."""

    event: Document
    is_pending: bool = False
    is_created: bool = False


class CoreEventRecorder:
    """Queues events and writes them in the background."""

    def __init__(self, client: ApiClient, *, clock: Clock, log: Log, writers: int = 4) -> None:
        self._client = client
        self._clock = clock
        self._log = log
        self._writers = writers
        self._pending: asyncio.Queue[_Series] = asyncio.Queue(_MOST_PENDING)
        self._buckets: OrderedDict[tuple[EventSource, str], tuple[float, float]] = OrderedDict()
        self._series: OrderedDict[_EventKey, _Series] = OrderedDict()
        self._numbers = itertools.count()
        self.dropped = 0

    def record(
        self,
        about: KubeObject,
        source: EventSource,
        reason: str,
        message: str,
        *,
        field: str = "",
        warning: bool = False,
    ) -> None:
        """Record an event about an object; `field` is the part of it (`spec.containers{web}`)."""
        what = (source, about.uid, reason, message, field, warning)
        if (series := self._series.pop(what, None)) is None:
            series = _Series(self._event(about, source, reason, message, field, warning))
        else:
            series.event["count"] += 1
            series.event["lastTimestamp"] = timestamp(self._clock.now())
        self._series[what] = series
        if len(self._series) > _MOST_SERIES:
            self._series.popitem(last=False)
        if self._is_within_rate(source, about.uid):
            self._enqueue(series)
        else:
            self.dropped += 1  # its count stays, and is written with the next event within the rate

    def _enqueue(self, series: _Series) -> None:
        if series.is_pending:
            return  # the count at the time of writing is sent
        try:
            self._pending.put_nowait(series)
            series.is_pending = True
        except asyncio.QueueFull:
            self.dropped += 1

    async def run(self) -> None:
        """Write until cancelled."""
        async with asyncio.TaskGroup() as group:
            for _ in range(self._writers):
                group.create_task(self._write())

    async def flush(self) -> None:
        """Wait until all queued events are written or dropped."""
        await self._pending.join()

    async def _write(self) -> None:
        while True:
            series = await self._pending.get()
            count = series.event["count"]
            try:
                await self._send(series)
            except ApiError as error:
                # In a terminating namespace nothing can be created, and no client reads its events.
                if error.code not in (403, 404, 409):
                    self._log.v(2).warning("Failed to write event", reason=series.event["reason"], err=str(error))
                self.dropped += 1
            except Fault:
                self.dropped += 1
            finally:
                series.is_pending = False
                if series.event["count"] > count:  # it was repeated meanwhile
                    self._enqueue(series)
                self._pending.task_done()

    async def _send(self, series: _Series) -> None:
        """Create the event, or patch count and time of one that repeats. An expired one is created again."""
        event, metadata = series.event, series.event["metadata"]
        if series.is_created:
            body = {"count": event["count"], "lastTimestamp": event["lastTimestamp"]}
            try:
                await self._client.patch(EVENT, metadata["name"], metadata["namespace"], body, form="merge")
                return
            except ApiError as error:
                if error.code != 404:
                    raise
        await self._client.create(EVENT, event, metadata["namespace"])
        series.is_created = True

    def _event(
        self, about: KubeObject, source: EventSource, reason: str, message: str, field: str, warning: bool
    ) -> Document:
        kind = type(about).KIND
        now = self._clock.now()
        involved = {
            "apiVersion": kind.api_version,
            "kind": kind.kind,
            "name": about.name,
            "uid": about.uid,
            "resourceVersion": about.metadata.resource_version,
        }
        if about.namespace:
            involved["namespace"] = about.namespace
        if field:
            involved["fieldPath"] = field
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {
                # Upstream's names are the object's and the time in hexadecimal nanoseconds; the count keeps them apart.
                "name": f"{about.name}.{int(now * 1e9) + next(self._numbers):x}",
                "namespace": about.namespace or "default",
            },
            "involvedObject": involved,
            "reason": reason,
            "message": message,
            "source": {"component": source.component} | ({"host": source.host} if source.host else {}),
            "reportingComponent": source.component,
            "reportingInstance": source.host,
            "type": "Warning" if warning else "Normal",
            "firstTimestamp": timestamp(now),
            "lastTimestamp": timestamp(now),
            "count": 1,
        }

    def _is_within_rate(self, source: EventSource, uid: str) -> bool:
        now = self._clock.monotonic()
        left, since = self._buckets.pop((source, uid), (float(BURST), now))
        left = min(float(BURST), left + (now - since) / REFILL_SECONDS)
        allowed = left >= 1
        self._buckets[source, uid] = (left - 1 if allowed else left), now
        if len(self._buckets) > _MOST_SUBJECTS:
            self._buckets.popitem(last=False)
        return allowed
