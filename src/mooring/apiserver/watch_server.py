"""Serves watches over HTTP: one JSON line per event, initial events, bookmarks, and a bounded end."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from aiohttp import web

from mooring.apiserver.documents import Document, encode
from mooring.apiserver.options import ListOptions, revision_of
from mooring.apiserver.resources import Resource
from mooring.apiserver.selection_predicate import SelectionPredicate
from mooring.apiserver.status import StatusError, expired
from mooring.apiserver.storage import Event, EventType, Store, StoredObject, Watch, event_line
from mooring.apiserver.streaming import send
from mooring.base.clock import Clock

BOOKMARK_SECONDS = 60.0
SHORTEST_SECONDS = 1800
DRAIN_SECONDS = 5.0
"""How long a client may take to read the remaining events of a watch that has ended."""


class ObjectEncoder(Protocol):
    """Encodes the object of an event: as a table row or as metadata."""

    def __call__(self, stored: StoredObject) -> bytes: ...


def selected_event_type(event: Event, selection: SelectionPredicate) -> EventType | None:
    """The event's type for a watch with selectors; None if it concerns no selected object."""
    if selection.matches_everything:
        return event.type
    is_in = selection(event.stored.document)
    was_in = event.previous is not None and selection(event.previous.document)
    if event.type == "DELETED":
        return "DELETED" if was_in or is_in else None
    if is_in:
        return "MODIFIED" if was_in else "ADDED"
    return "DELETED" if was_in else None


class WatchServer:
    """Serves one watch request."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        row: Resource,
        selection: SelectionPredicate,
        options: ListOptions,
        show: ObjectEncoder | None,
    ) -> None:
        self._store, self._clock, self._row, self._predicate = store, clock, row, selection
        self._show = show
        self._bookmarks = options.bookmarks
        self._since = revision_of(options.resource_version)
        self._send_initial = options.send_initial_events or False
        self._seconds = options.timeout_seconds or random.randint(SHORTEST_SECONDS, 2 * SHORTEST_SECONDS)

    def begin(self) -> tuple[Watch, Iterator[bytes]]:
        """Start the watch; returns it and its initial lines. Raises 410 for a revision before the watch cache."""
        if self._since is not None and self._since > self._store.revision:
            # An earlier run of this server wrote that revision: its objects are gone, so the client must list again.
            raise expired(f"too old resource version: {self._since} ({self._store.revision})")
        sends_initial = self._send_initial or self._since is None
        watch = self._store.watch(self._row.storage, None if sends_initial else self._since)
        state: list[StoredObject] = []
        if sends_initial:
            found = self._store.scan(self._row.storage, self._predicate.namespace or None)
            state = [stored for _, stored in found if self._predicate(stored.document)]
        bookmark = self._bookmark({"k8s.io/initial-events-end": "true"})
        return watch, self._initial(state, bookmark)

    def _initial(self, state: list[StoredObject], bookmark: bytes) -> Iterator[bytes]:
        """The initial events, encoded while they are sent: a slow client holds no copy of them."""
        for stored in state:
            yield from self._line("ADDED", stored)
        if self._send_initial and self._bookmarks:
            yield bookmark

    def _line(self, type: EventType, stored: StoredObject) -> tuple[bytes, ...]:
        return event_line(type, stored.converted(self._row.to_served)[1] if self._show is None else self._show(stored))

    def _lines(self, batch: list[Event]) -> Iterator[bytes]:
        for event in batch:
            type = selected_event_type(event, self._predicate)
            if type is None:
                continue
            if self._show is None:
                yield from event.line(type, self._row.to_served)
            else:
                yield from self._line(type, event.stored)

    def _bookmark(self, annotations: Document | None = None) -> bytes:
        metadata: Document = {"resourceVersion": str(self._store.revision), "creationTimestamp": None}
        if annotations:
            metadata["annotations"] = annotations
        mark = {"kind": self._row.kind, "apiVersion": self._row.api_version, "metadata": metadata}
        return b'{"type":"BOOKMARK","object":%s}\n' % encode(mark)

    async def _alarm(self, watch: Watch) -> None:
        """Request bookmarks periodically, and end the watch after its timeout."""
        left = float(self._seconds)
        while left > 0:
            pause = min(left, BOOKMARK_SECONDS)
            await self._clock.sleep(pause)
            left -= pause
            if left > 0 and self._bookmarks:
                watch.request_bookmark()
        watch.end()

    async def serve(self, request: web.BaseRequest) -> web.StreamResponse:
        watch, initial = self.begin()
        alarm = asyncio.create_task(self._alarm(watch))
        response = web.StreamResponse(
            headers={"Content-Type": "application/json", "Cache-Control": "no-cache, private"}
        )
        response.enable_chunked_encoding()
        with closed_in_time(watch, request):
            try:
                await response.prepare(request)
                await send(response, initial)
                while True:
                    batch = await watch.next_batch()
                    await send(response, self._lines(batch))
                    if not batch and not watch.ended and self._bookmarks:
                        await response.write(self._bookmark())
                    if watch.ended and not watch.behind:
                        if watch.failure is not None:
                            await response.write(_error_line(watch.failure))
                        break
                await response.write_eof()
            except ConnectionError:
                # The client has disconnected.
                pass
            finally:
                alarm.cancel()
                watch.close()
        return response


@contextmanager
def closed_in_time(watch: Watch, request: web.BaseRequest) -> Iterator[None]:
    """Abort the connection of a client that does not read to the end of an ended watch in time."""
    pending: list[asyncio.TimerHandle] = []

    def cut() -> None:
        if request.transport is not None:
            request.transport.abort()

    watch.on_end(lambda: pending.append(asyncio.get_running_loop().call_later(DRAIN_SECONDS, cut)))
    try:
        yield
    finally:
        for each in pending:
            each.cancel()


def _error_line(failure: StatusError) -> bytes:
    return b'{"type":"ERROR","object":%s}\n' % encode(failure.document())
