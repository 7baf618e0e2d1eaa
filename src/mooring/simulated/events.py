"""Events of kubelets and controllers, as core/v1 writes them, written after everything that matters more.

Upstream's kubelet and controllers still write core/v1 with a source, and `kubectl describe` shows that source. A burst
of events about one object is cut as upstream cuts it (25, then one in five minutes); what the server does not take in
time is dropped and counted.
"""

from __future__ import annotations

import asyncio
import itertools
from collections import OrderedDict
from dataclasses import dataclass

from mooring.base.clock import Clock, timestamp
from mooring.base.errors import ApiError, Fault
from mooring.base.log import Log
from mooring.client import ApiClient
from mooring.objects.meta import Kind, KubeObject
from mooring.simulated.records import Document

EVENT = Kind("", "v1", "Event", "events")
BURST = 25
REFILL_SECONDS = 300.0
_MOST_PENDING = 20_000
_MOST_SUBJECTS = 4096


@dataclass(frozen=True)
class Source:
    """Who speaks: `kubelet` on a host, or a controller on none."""

    component: str
    host: str = ""


class Events:
    """Takes events at once and writes them when it can."""

    def __init__(self, client: ApiClient, *, clock: Clock, log: Log, writers: int = 4) -> None:
        self._client = client
        self._clock = clock
        self._log = log
        self._writers = writers
        self._pending: asyncio.Queue[Document] = asyncio.Queue(_MOST_PENDING)
        self._buckets: OrderedDict[tuple[Source, str], tuple[float, float]] = OrderedDict()
        self._numbers = itertools.count()
        self.dropped = 0

    def record(
        self, about: KubeObject, source: Source, reason: str, message: str, *, field: str = "", warning: bool = False
    ) -> None:
        """Say what happened to an object; `field` names the part of it (`spec.containers{web}`)."""
        if not self._may_speak(source, about.uid):
            self.dropped += 1
            return
        try:
            self._pending.put_nowait(self._event(about, source, reason, message, field, warning))
        except asyncio.QueueFull:
            self.dropped += 1

    async def run(self) -> None:
        """Write until cancelled."""
        async with asyncio.TaskGroup() as group:
            for _ in range(self._writers):
                group.create_task(self._write())

    async def flush(self) -> None:
        """Wait until everything taken so far is written or refused."""
        await self._pending.join()

    async def _write(self) -> None:
        while True:
            event = await self._pending.get()
            try:
                await self._client.create(EVENT, event, event["metadata"]["namespace"])
            except ApiError as error:
                # In a namespace that goes away nothing new is made; nobody is left to read it either.
                if error.code not in (403, 404, 409):
                    self._log.v(2).warning("An event was refused", reason=event["reason"], err=str(error))
                self.dropped += 1
            except Fault:
                self.dropped += 1
            finally:
                self._pending.task_done()

    def _event(
        self, about: KubeObject, source: Source, reason: str, message: str, field: str, warning: bool
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

    def _may_speak(self, source: Source, uid: str) -> bool:
        now = self._clock.monotonic()
        left, since = self._buckets.pop((source, uid), (float(BURST), now))
        left = min(float(BURST), left + (now - since) / REFILL_SECONDS)
        allowed = left >= 1
        self._buckets[source, uid] = (left - 1 if allowed else left), now
        if len(self._buckets) > _MOST_SUBJECTS:
            self._buckets.popitem(last=False)
        return allowed
