"""Traces of attempts for an OpenTelemetry collector: one span an attempt, one a point, one a plugin's turn.

Sent as OTLP over HTTP, in JSON, by a thread of its own: that is one small document format, so no library is needed for
it. The loop only puts what happened into a queue. When the collector is slow or unavailable, attempts are dropped and
counted; nothing waits for it.
"""

from __future__ import annotations

import hashlib
import http.client
import queue
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from mooring import __version__
from mooring.base.errors import PluginFault
from mooring.base.log import Log
from mooring.base.redaction import scrubbed, shown_url
from mooring.engine.stopwatch import Run
from mooring.scheduler.metrics.attempt_metrics import Part
from mooring.scheduler.metrics.series import Counter

PATH = "/v1/traces"
MOST_WAITING = 2048
MOST_AT_ONCE = 256
PAUSE_SECONDS = 1.0
RESPONSE_SECONDS = 10.0
COMPLAINTS_APART_SECONDS = 60.0
INTERNAL, FAILED = 1, 2
"""OTLP's numbers for a span within one program, and for a status that is an error."""

_log = Log("tracing")


@dataclass(frozen=True)
class TracingOptions:
    """Where traces go, and of how many attempts."""

    url: str = field(repr=False)
    """With the path."""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    service: str = "mooring"
    share: float = 1.0


class OtlpTracer:
    """The `Tracer` of attempts. `start`, and `stop` at the end: what waits then is sent."""

    def __init__(self, options: TracingOptions) -> None:
        self._options = options
        self._waiting: queue.Queue[_Seen | None] = queue.Queue(MOST_WAITING)
        self._thread = threading.Thread(target=self._send_all, name="tracing", daemon=True)
        self._has_warned = float("-inf")
        self.dropped = Counter("mooring_trace_attempts_dropped_total", "Attempts that could not be traced.")

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._waiting.put(None)
        self._thread.join(RESPONSE_SECONDS)

    def record(self, part: Part, /) -> None:
        decision = part.decision
        trace = _identity(f"{decision.pod.uid}/{decision.cycle.attempt}", 16)
        if int(trace[:8], 16) >= self._options.share * 2**32:
            return
        seen = _Seen(
            trace,
            part.name,
            decision.pod.key,
            decision.profile,
            decision.cycle.attempt,
            decision.node or "",
            "" if decision.node else decision.message,
            part.fault,
            time.time() - time.monotonic(),
            part.began,
            part.ended,
            tuple(part.runs),
        )
        try:
            self._waiting.put_nowait(seen)
        except queue.Full:
            self.dropped.at[()] += 1

    def _send_all(self) -> None:
        is_over = False
        while not is_over:
            batch: list[_Seen] = []
            found = self._waiting.get()
            end = time.monotonic() + PAUSE_SECONDS
            while found is not None and len(batch) < MOST_AT_ONCE:
                batch.append(found)
                try:
                    found = self._waiting.get(timeout=max(0.0, end - time.monotonic()))
                except queue.Empty:
                    break
            else:
                is_over = found is None
            if batch:
                self._send(batch)

    def _send(self, batch: list[_Seen]) -> None:
        body = msgspec.json.encode(document(batch, self._options.service))
        headers = {"Content-Type": "application/json", **self._options.headers}
        try:
            request = urllib.request.Request(self._options.url, body, headers)
            with urllib.request.urlopen(request, timeout=RESPONSE_SECONDS) as response:
                response.read()
        except (OSError, ValueError, http.client.HTTPException) as error:
            self.dropped.at[()] += len(batch)
            if time.monotonic() - self._has_warned >= COMPLAINTS_APART_SECONDS:
                self._has_warned = time.monotonic()
                _log.warning(
                    "Failed to send traces; is the collector's OTLP/HTTP receiver running?",
                    url=shown_url(self._options.url),
                    err=scrubbed(str(error), self._options.url, secrets=self._options.headers.values()),
                )


class _Seen(msgspec.Struct, frozen=True):
    """A part of an attempt as it is sent: nothing of it changes any more, or keeps a decision alive."""

    trace: str
    name: str
    pod: str
    profile: str
    attempt: int
    node: str
    message: str
    fault: PluginFault | None
    offset: float
    """From the monotonic clock to the time of day."""
    began: float
    ended: float
    runs: tuple[Run, ...]


def document(batch: list[_Seen], service: str) -> dict[str, Any]:
    """What OTLP wants to read."""
    resource = {"attributes": [_attribute("service.name", service), _attribute("service.version", __version__)]}
    spans = [span for seen in batch for span in _spans(seen)]
    scope = {"name": "mooring", "version": __version__}
    return {"resourceSpans": [{"resource": resource, "scopeSpans": [{"scope": scope, "spans": spans}]}]}


def _spans(seen: _Seen) -> Iterator[dict[str, Any]]:
    """The part, within it the points, within those the plugins' turns."""
    attempt = _identity(f"{seen.trace}/schedule", 8)
    whole = attempt if seen.name == "schedule" else _identity(f"{seen.trace}/{seen.name}", 8)
    attributes = {"pod": seen.pod, "profile": seen.profile, "attempt": str(seen.attempt), "node": seen.node}
    yield _span(
        seen, seen.name, whole, "" if whole == attempt else attempt, seen.began, seen.ended, attributes, seen.message
    )
    for number, run in enumerate(seen.runs):
        point, point_id = run.point, _identity(f"{whole}/{number}", 8)
        yield _span(seen, point.metric_name, point_id, whole, run.began, run.ended, {})
        ends = [*run.moments[1:], run.ended]
        for place, (plugin, began, until) in enumerate(zip(run.plugins, run.moments, ends, strict=True)):
            fault = seen.fault
            is_broken = fault is not None and (fault.plugin, fault.point) == (plugin, point.metric_name)
            error = str(fault) if is_broken else ""
            own = _identity(f"{point_id}/{place}", 8)
            yield _span(seen, plugin, own, point_id, began, until, {"extension_point": point.metric_name}, error)


def _span(
    seen: _Seen,
    name: str,
    own: str,
    parent: str,
    began: float,
    ended: float,
    attributes: Mapping[str, str],
    error: str = "",
) -> dict[str, Any]:
    span: dict[str, Any] = {
        "traceId": seen.trace,
        "spanId": own,
        "parentSpanId": parent,
        "name": name,
        "kind": INTERNAL,
        "startTimeUnixNano": str(int((began + seen.offset) * 1e9)),
        "endTimeUnixNano": str(int((ended + seen.offset) * 1e9)),
        "attributes": [_attribute(key, value) for key, value in attributes.items() if value],
    }
    if error:
        span["status"] = {"code": FAILED, "message": error}
    return span


def _attribute(key: str, value: str) -> dict[str, Any]:
    return {"key": key, "value": {"stringValue": value}}


def _identity(of: str, size: int) -> str:
    """The same for the same thing: what is decided and what is bound later belong to one trace."""
    return hashlib.blake2b(of.encode(), digest_size=size).hexdigest()
