"""A watch as HTTP: one JSON line per event, bookmarks, initial events, and an end that comes promptly."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping
from typing import Protocol

from aiohttp import web

from mooring.apiserver.documents import Document, encode
from mooring.apiserver.negotiation import whole_number
from mooring.apiserver.resources import Resource
from mooring.apiserver.selection import Selection
from mooring.apiserver.status import Refused, expired, forbidden_field, invalid, invalid_value
from mooring.apiserver.storage import Event, EventType, Store, Stored, Watch
from mooring.base.clock import Clock

BOOKMARK_SECONDS = 60.0
SHORTEST_SECONDS = 1800


class Show(Protocol):
    """How an object is written into an event: as it is, as a table row, as metadata."""

    def __call__(self, stored: Stored) -> bytes: ...


def revision_of(text: str) -> int | None:
    """A resourceVersion as a number; "" and "0" (any state will do) are None."""
    if text in ("", "0"):
        return None
    if not text.isdigit():
        why = f'strconv.ParseUint: parsing "{text}": invalid syntax'
        raise invalid("meta.k8s.io", "ListOptions", "", [invalid_value("resourceVersion", text, why)])
    return int(text)


def selected(event: Event, selection: Selection) -> EventType | None:
    """What the event is for a watcher that sees only its selection."""
    if selection.is_everything:
        return event.type
    is_in = selection(event.stored.document)
    was_in = event.previous is not None and selection(event.previous.document)
    if event.type == "DELETED":
        return "DELETED" if was_in or is_in else None
    if is_in:
        return "MODIFIED" if was_in else "ADDED"
    return "DELETED" if was_in else None


class WatchAnswer:
    """Serves one watch request."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        row: Resource,
        selection: Selection,
        query: Mapping[str, str],
        show: Show | None,
    ) -> None:
        self._store, self._clock, self._row, self._selection = store, clock, row, selection
        self._show = show
        self._bookmarks = query.get("allowWatchBookmarks") in ("true", "1")
        self._since = revision_of(query.get("resourceVersion", ""))
        self._send_initial = self._wants_initial_events(query)
        asked = whole_number(query, "timeoutSeconds")
        self._seconds = asked or random.randint(SHORTEST_SECONDS, 2 * SHORTEST_SECONDS)

    def _wants_initial_events(self, query: Mapping[str, str]) -> bool:
        match = query.get("resourceVersionMatch", "")
        asked = query.get("sendInitialEvents")
        if asked is None:
            if match:
                why = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
                raise invalid("meta.k8s.io", "ListOptions", "", [forbidden_field("resourceVersionMatch", why)])
            return False
        if match != "NotOlderThan":
            why = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
            raise invalid("meta.k8s.io", "ListOptions", "", [forbidden_field("resourceVersionMatch", why)])
        return asked in ("true", "1")

    def begin(self) -> tuple[Watch, list[bytes]]:
        """Join the stream; answers the lines that come first. Refuses a revision that history has lost."""
        if self._since is not None and self._since > self._store.revision:
            # Another life of this server wrote that revision: its objects are gone, so the client must list again.
            raise expired(f"too old resource version: {self._since} ({self._store.revision})")
        shows_state = self._send_initial or self._since is None
        watch = self._store.watch(self._row.storage, None if shows_state else self._since)
        lines: list[bytes] = []
        if shows_state:
            namespace = self._selection.namespace or None
            for _, stored in self._store.scan(self._row.storage, namespace):
                if self._selection(stored.document):
                    lines.append(self._line("ADDED", stored))
        if self._send_initial and self._bookmarks:
            lines.append(self._bookmark({"k8s.io/initial-events-end": "true"}))
        return watch, lines

    def _line(self, type: EventType, stored: Stored) -> bytes:
        shown = stored.seen(self._row.to_view)[1] if self._show is None else self._show(stored)
        return b'{"type":"%s","object":%s}\n' % (type.encode(), shown)

    def _event_line(self, event: Event) -> bytes | None:
        type = selected(event, self._selection)
        if type is None:
            return None
        if self._show is None:
            return event.line(type, self._row.to_view)
        return self._line(type, event.stored)

    def _bookmark(self, annotations: Document | None = None) -> bytes:
        metadata: Document = {"resourceVersion": str(self._store.revision), "creationTimestamp": None}
        if annotations:
            metadata["annotations"] = annotations
        mark = {"kind": self._row.kind, "apiVersion": self._row.api_version, "metadata": metadata}
        return b'{"type":"BOOKMARK","object":%s}\n' % encode(mark)

    async def _alarm(self, watch: Watch) -> None:
        """Time passing, for this watch: bookmarks now and then, and its end."""
        left = float(self._seconds)
        while left > 0:
            pause = min(left, BOOKMARK_SECONDS)
            await self._clock.sleep(pause)
            left -= pause
            if left > 0 and self._bookmarks:
                watch.nudge()
        watch.end()

    async def serve(self, request: web.BaseRequest) -> web.StreamResponse:
        watch, lines = self.begin()
        alarm = asyncio.create_task(self._alarm(watch))
        response = web.StreamResponse(
            headers={"Content-Type": "application/json", "Cache-Control": "no-cache, private"}
        )
        response.enable_chunked_encoding()
        try:
            await response.prepare(request)
            if lines:
                await response.write(b"".join(lines))
            while True:
                batch = await watch.next_batch()
                shown = [line for event in batch if (line := self._event_line(event)) is not None]
                if not batch and not watch.ended and self._bookmarks:
                    shown = [self._bookmark()]
                if shown:
                    await response.write(b"".join(shown))
                if watch.ended:
                    if watch.failure is not None:
                        await response.write(_error_line(watch.failure))
                    break
            await response.write_eof()
        except ConnectionError:
            # The client has gone: there is nobody to answer.
            pass
        finally:
            alarm.cancel()
            watch.close()
        return response


def _error_line(failure: Refused) -> bytes:
    return b'{"type":"ERROR","object":%s}\n' % encode(failure.document())
