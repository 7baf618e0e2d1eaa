"""Writes events (events.k8s.io/v1) in the background.

Events that are equal but for their text are one series: the first is created, the second patches its count to 2 at
once, later ones are counted here and written when the series has been quiet for six minutes, or every thirty.
`record` never waits and never raises; when the server cannot keep up, events are dropped and counted.
"""

from __future__ import annotations

import asyncio
import socket
import uuid
from collections import OrderedDict, deque
from typing import Any, Literal

import msgspec

from mooring.base.clock import Clock, micro_timestamp, timestamp
from mooring.base.errors import ApiError, MooringError
from mooring.base.log import Log
from mooring.client.api import ApiClient
from mooring.objects import Kind
from mooring.objects.core import ObjectReference

EventType = Literal["Normal", "Warning"]

QUEUED = 50_000
"""Events that can wait to be sent: those of a minute of bindings, some 40 MiB."""
REMEMBERED = 10_000
"""How many events we can still turn into a series. The oldest is finished to make room."""
SENDERS, MOST_SENDERS = 1, 64
LATE_SECONDS = 5.0
"""An event costs the API server as much as a binding. One is sent at a time while bindings are in flight, so that those
come first; as many as bindings when there are none, or where the oldest event has waited so long."""
TRIES = 12
SECONDS_BETWEEN_TRIES = 10.0
FINISH_SECONDS = 6 * 60.0
REFRESH_SECONDS = 30 * 60.0
NOTE_BYTES = 1_024
CUT = " ..."
LONGEST_NAME = 253

EVENTS = Kind("events.k8s.io", "v1", "Event", "events")
CORE_EVENTS = Kind("", "v1", "Event", "events")

_log = Log("events")
_encode = msgspec.json.Encoder().encode
_Key = tuple[str, ...]


class _Series(msgspec.Struct, eq=False):
    """An event and how often it happened."""

    key: _Key
    name: str
    namespace: str
    event_time: float
    type: str
    reason: str
    action: str
    note: str
    controller: str
    instance: str
    regarding: ObjectReference
    related: ObjectReference | None
    count: int = 1
    last_seen: float = 0.0
    written: int = 0
    """The count that the server knows; 0 before the event exists."""
    is_due: bool = False
    """The API server does not have this count yet."""
    is_taken: bool = False
    """Queued or being sent, so that the writes of one event keep their order."""
    queued_at: float = 0.0


class ControllerEvents:
    """Records events in one controller's name; several share a recorder."""

    def __init__(self, recorder: EventRecorder, controller: str, instance: str) -> None:
        self._recorder = recorder
        self.controller = controller
        self.instance = instance

    def record(
        self,
        regarding: ObjectReference,
        *,
        type: EventType,
        reason: str,
        action: str,
        note: str,
        related: ObjectReference | None = None,
    ) -> None:
        """Record an event about the object. Returns at once."""
        self._recorder.add(self, regarding, type, reason, action, note, related)


class EventRecorder:
    """One queue and one set of senders for all controllers of the process."""

    def __init__(
        self,
        client: ApiClient,
        *,
        controller: str,
        instance: str | None = None,
        clock: Clock | None = None,
        yields_to: ApiClient | None = None,
    ) -> None:
        """`yields_to`: the client whose requests go first."""
        self.dropped = 0
        """Events that were dropped: the queue was full, or the server was unavailable or rejected them."""
        self._client = client
        self._yields_to = yields_to
        self._clock = clock if clock is not None else client.clock
        self.record = self.for_controller(controller, instance).record
        """In the recorder's own name."""
        self._series: OrderedDict[_Key, _Series] = OrderedDict()
        self._queue: deque[_Series] = deque()
        self._tasks: asyncio.TaskGroup | None = None
        """Of the senders, while `run` runs."""
        self._senders = 0
        self._sending = 0
        self._idle = asyncio.Event()
        self._last_nano = 0
        self._kind = EVENTS
        self._refused_with = 0

    @property
    def pending(self) -> int:
        """Events that are queued or on their way."""
        return len(self._queue) + self._sending

    def for_controller(self, controller: str, instance: str | None = None) -> ControllerEvents:
        """The same recorder under another name, as `reportingController` shows it."""
        return ControllerEvents(self, controller, instance or f"{controller}-{socket.gethostname()}")

    def add(
        self,
        source: ControllerEvents,
        regarding: ObjectReference,
        type: EventType,
        reason: str,
        action: str,
        note: str,
        related: ObjectReference | None,
    ) -> None:
        key = (type, action, reason, source.controller, source.instance, *_identity(regarding), *_identity(related))
        now = self._clock.now()
        known = self._series.get(key)
        if known is not None:
            known.count += 1
            known.last_seen = now
            self._series.move_to_end(key)
            if known.count == 2:
                self._enqueue(known)
            return
        if len(self._queue) >= QUEUED:
            self.dropped += 1
            return
        # Two events of one object in the same instant must not share a name.
        self._last_nano = max(int(now * 1e9), self._last_nano + 1)
        series = _Series(
            key=key,
            name=_event_name(regarding.name, self._last_nano),
            namespace=regarding.namespace or "default",
            event_time=now,
            type=type,
            reason=reason,
            action=action,
            note=shortened(note),
            controller=source.controller,
            instance=source.instance,
            regarding=regarding,
            related=related,
            last_seen=now,
        )
        self._series[key] = series
        if len(self._series) > REMEMBERED:
            _, oldest = self._series.popitem(last=False)
            if oldest.count > max(oldest.written, 1):
                self._enqueue(oldest)
        self._enqueue(series)

    async def run(self) -> None:
        """Send what is recorded, until cancelled."""
        async with asyncio.TaskGroup() as self._tasks:
            try:
                self._senders = 0
                self._start_senders()
                await self._refresh_series()
            finally:
                self._tasks = None

    async def flush(self, timeout: float) -> None:  # noqa: ASYNC109 (it ends quietly, what is left is counted)
        """At shutdown: send what is queued and the counts not written yet, as far as the time (in seconds) allows.

        Works whether `run` is still running or not.
        """
        for series in self._series.values():
            if series.count > series.written:
                self._enqueue(series)
        try:
            async with asyncio.timeout(timeout), asyncio.TaskGroup() as tasks:
                for _ in range(MOST_SENDERS):
                    tasks.create_task(self._send_queued())
        except TimeoutError:
            self.dropped += (lost := len(self._queue))
            _log.warning("Events were dropped at shutdown", count=lost)

    def _start_senders(self) -> None:
        """As many as may send now, and not more than there are events for them."""
        most = self._most_senders()
        while self._tasks is not None and self._senders < most and self._senders - self._sending < len(self._queue):
            self._senders += 1
            self._tasks.create_task(self._send_while_wanted())

    def _most_senders(self) -> int:
        if self._yields_to is not None and not self._yields_to.transport.requests:
            return MOST_SENDERS
        is_late = self._queue and self._clock.monotonic() - self._queue[0].queued_at >= LATE_SECONDS
        return MOST_SENDERS if is_late else SENDERS

    async def _send_while_wanted(self) -> None:
        try:
            while self._queue and self._senders <= self._most_senders():
                await self._send(self._queue.popleft())
                self._start_senders()
        finally:
            self._senders -= 1

    async def _send_queued(self) -> None:
        while self._queue:
            await self._send(self._queue.popleft())
        while self._sending:  # what `run` has in hand
            self._idle.clear()
            await self._idle.wait()

    async def _refresh_series(self) -> None:
        """Write the counts of series that went quiet, and forget them; refresh the others now and then."""
        refreshed = self._clock.monotonic()
        while True:
            await self._clock.sleep(FINISH_SECONDS)
            quiet_since = self._clock.now() - FINISH_SECONDS
            is_refresh = self._clock.monotonic() - refreshed >= REFRESH_SECONDS
            if is_refresh:
                refreshed = self._clock.monotonic()
            for series in list(self._series.values()):
                is_quiet = series.last_seen <= quiet_since
                if is_quiet:
                    self._series.pop(series.key, None)
                # A refresh also keeps an event whose count did not change from expiring (the server's default: 1 h).
                is_wanted = series.count > max(series.written, 1) if is_quiet else is_refresh and series.count > 1
                if is_wanted and not series.is_taken:
                    series.is_due = series.is_taken = True
                    await self._send(series)

    def _enqueue(self, series: _Series) -> None:
        series.is_due = True
        if not series.is_taken:
            series.is_taken = True
            series.queued_at = self._clock.monotonic()
            self._queue.append(series)
            self._start_senders()

    async def _send(self, series: _Series) -> None:
        """Bring the server up to date with a series; what became due meanwhile is sent too."""
        self._sending += 1
        try:
            while series.is_due:
                series.is_due = False
                if not await self._write(series):
                    self.dropped += 1
                    if not series.written:  # the next one may succeed; a rejected count would only be rejected again
                        self._series.pop(series.key, None)
            series.is_taken = False
        except asyncio.CancelledError:
            series.is_due = True
            self._queue.append(series)  # for `flush`; the event's name makes a second try harmless
            raise
        finally:
            self._sending -= 1
            if not self._sending:
                self._idle.set()

    async def _write(self, series: _Series) -> bool:
        """Create the event or patch its count. False when it had to be given up."""
        for attempt in range(1, TRIES + 1):
            count = series.count if series.written else 1
            if series.written == count == 1:
                return True  # it arrived while it was being flushed; a single event has no count
            try:
                if series.written:
                    await self._client.patch(self._kind, series.name, series.namespace, self._counted(series, count))
                else:
                    await self._client.post(self._kind, series.namespace, _encode(self._created(series)))
            except ApiError as error:
                if error.code == 409 and not series.written:
                    pass  # an earlier try did arrive
                elif error.code == 404 and series.written:
                    series.written = 0  # it expired meanwhile: write it again, and its count after it
                    continue
                elif error.code == 404 and await self._group_is_missing():
                    self._kind = CORE_EVENTS
                    continue
                else:
                    self._refused(series, error)
                    return False
            except Exception as error:
                # Any error: a failed event must not end the scheduler.
                if attempt == TRIES or not isinstance(error, MooringError):
                    _log.error("Event dropped after retries", event=series.name, reason=series.reason, err=error)
                    return False
                await self._clock.sleep(SECONDS_BETWEEN_TRIES)
                continue
            series.written, self._refused_with = count, 0
            if count == 1 and series.count > 1:
                series.is_due = True
            return True
        return False

    def _refused(self, series: _Series, error: ApiError) -> None:
        # A server that forbids events forbids all of them: one line is enough.
        log = _log if error.code != self._refused_with else _log.v(4)
        self._refused_with = error.code
        log.warning("API server rejected an event", event=series.name, reason=series.reason, err=error)

    async def _group_is_missing(self) -> bool:
        """Whether the 404 was about events.k8s.io as a whole, and not about the event's namespace."""
        if self._kind is CORE_EVENTS:
            return False
        try:
            await self._client.transport.request("GET", f"/apis/{EVENTS.api_version}")
        except ApiError as error:
            return error.code == 404
        except MooringError:
            return False
        return False

    def _created(self, series: _Series) -> dict[str, Any]:
        if self._kind is CORE_EVENTS:
            return _core_event(series)
        event = {
            "apiVersion": EVENTS.api_version,
            "kind": EVENTS.kind,
            "metadata": {"name": series.name, "namespace": series.namespace},
            "eventTime": micro_timestamp(series.event_time),
            "type": series.type,
            "reason": series.reason,
            "action": series.action,
            "note": series.note,
            "reportingController": series.controller,
            "reportingInstance": series.instance,
            "regarding": series.regarding,
        }
        if series.related is not None:
            event["related"] = series.related
        return event

    def _counted(self, series: _Series, count: int) -> dict[str, Any]:
        if self._kind is CORE_EVENTS:
            return {"count": count, "lastTimestamp": timestamp(series.last_seen)}
        return {"series": {"count": count, "lastObservedTime": micro_timestamp(series.last_seen)}}


def _core_event(series: _Series) -> dict[str, Any]:
    """The older form, for servers without events.k8s.io."""
    event = {
        "apiVersion": CORE_EVENTS.api_version,
        "kind": CORE_EVENTS.kind,
        "metadata": {"name": series.name, "namespace": series.namespace},
        "firstTimestamp": timestamp(series.event_time),
        "lastTimestamp": timestamp(series.event_time),
        "count": 1,
        "type": series.type,
        "reason": series.reason,
        "action": series.action,
        "message": series.note,
        "source": {"component": series.controller},
        "reportingComponent": series.controller,
        "reportingInstance": series.instance,
        "involvedObject": series.regarding,
    }
    if series.related is not None:
        event["related"] = series.related
    return event


def _event_name(regarding: str, nanoseconds: int) -> str:
    name = f"{regarding}.{nanoseconds:x}"
    return name if len(name) <= LONGEST_NAME else str(uuid.uuid4())


def shortened(note: str) -> str:
    """At most 1,024 bytes, cut between characters."""
    if len(note) <= NOTE_BYTES and note.isascii():
        return note
    encoded = note.encode("utf-8", "replace")
    if len(encoded) <= NOTE_BYTES:
        return encoded.decode("utf-8")
    return encoded[: NOTE_BYTES - len(CUT)].decode("utf-8", "ignore") + CUT


def _identity(reference: ObjectReference | None) -> _Key:
    if reference is None:
        return ()
    return (
        reference.kind,
        reference.api_version,
        reference.namespace,
        reference.name,
        reference.uid,
        reference.resource_version,
    )
