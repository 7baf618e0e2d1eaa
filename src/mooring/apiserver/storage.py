"""One storage with revisions, and the one watch mechanism.

Every write takes the next revision of the whole store. A bounded history per storage key lets a watch begin in
the past; older than that is `410 Gone`. An event is encoded once per view and handed to every watcher.
All of it runs on one thread: a write is visible to readers and queued to watchers when it returns.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterator
from typing import Literal

from mooring.apiserver.documents import Document, View, encode, same
from mooring.apiserver.status import Refused, expired

EventType = Literal["ADDED", "MODIFIED", "DELETED"]
Key = tuple[str, str]
HISTORY = 20_000
# How many of the latest events keep their encoded lines for all watchers.
SHARED = 256


class Stored:
    """One version of an object: the document, its revision, and its bytes per view."""

    __slots__ = ("_encoded", "_views", "document", "revision")

    def __init__(self, document: Document, revision: int) -> None:
        self.document = document
        self.revision = revision
        self._encoded: bytes | None = None
        self._views: dict[object, tuple[Document, bytes]] | None = None

    @property
    def encoded(self) -> bytes:
        if self._encoded is None:
            self._encoded = encode(self.document)
        return self._encoded

    def seen(self, view: View) -> tuple[Document, bytes]:
        """The object as one API version shows it; `view` identifies itself."""
        if view is same:
            return self.document, self.encoded
        if self._views is None:
            self._views = {}
        found = self._views.get(view)
        if found is None:
            shown = view(self.document)
            found = self._views[view] = (shown, self.encoded if shown is self.document else encode(shown))
        return found

    def shed(self) -> None:
        """Let go of the bytes: an overtaken version is rarely read again, and can be encoded anew."""
        self._encoded = self._views = None


class Event:
    """What a write did. `previous` lets a selecting watch see an object leave its selection."""

    __slots__ = ("_lines", "previous", "revision", "stored", "type")

    def __init__(self, type: EventType, stored: Stored, previous: Stored | None) -> None:
        self.type = type
        self.stored = stored
        self.previous = previous
        self.revision = stored.revision
        self._lines: dict[tuple[str, object], bytes] = {}

    def line(self, type: EventType, view: View) -> bytes:
        """The event as one line of a watch answer, made once for all watchers."""
        key = (type, view)
        found = self._lines.get(key)
        if found is None:
            found = self._lines[key] = b'{"type":"%s","object":%s}\n' % (type.encode(), self.stored.seen(view)[1])
        return found

    def shed(self) -> None:
        """Let go of the lines, once the watchers that keep up have had them."""
        self._lines.clear()


class Watch:
    """A reader's place in the stream of one storage key. Iterate `next_batch()` until `ended`."""

    def __init__(self, collection: Collection, backlog: list[Event]) -> None:
        self._collection = collection
        self._pending: deque[Event] = deque(backlog)
        self._wake = asyncio.Event()
        self.ended = False
        self._nudged = False
        self.failure: Refused | None = None
        if backlog:
            self._wake.set()

    def push(self, event: Event) -> None:
        self._pending.append(event)
        if len(self._pending) > HISTORY:
            # A client that does not read must list again; its backlog must not fill our memory.
            self._pending.clear()
            self.end(expired(f"too old resource version: the watch fell behind by {HISTORY} events"))
        self._wake.set()

    def end(self, failure: Refused | None = None) -> None:
        self.ended = True
        self.failure = failure
        self._wake.set()

    def nudge(self) -> None:
        """Make `next_batch` return even if nothing happened."""
        self._nudged = True
        self._wake.set()

    async def next_batch(self) -> list[Event]:
        """Wait for events. An empty batch means that the watch was nudged or has ended."""
        while not self._pending and not self.ended and not self._nudged:
            self._wake.clear()
            await self._wake.wait()
        self._nudged = False
        batch = list(self._pending)
        self._pending.clear()
        return batch

    def close(self) -> None:
        self._collection.watches.discard(self)


class Collection:
    """The objects under one storage key."""

    def __init__(self, floor: int) -> None:
        self.objects: dict[Key, Stored] = {}
        self.history: deque[Event] = deque()
        self.floor = floor
        self.watches: set[Watch] = set()
        self._order: list[Key] | None = None

    def ordered(self) -> list[Key]:
        """Keys by namespace and name: the order of a list answer."""
        if self._order is None:
            self._order = sorted(self.objects)
        return self._order

    def record(self, event: Event, key: Key) -> None:
        if event.type == "DELETED":
            del self.objects[key]
            self._order = None
        else:
            if key not in self.objects:
                self._order = None
            self.objects[key] = event.stored
        self.history.append(event)
        if event.previous is not None:
            event.previous.shed()
        if len(self.history) > SHARED:
            self.history[-SHARED].shed()
        while len(self.history) > HISTORY:
            self.floor = self.history.popleft().revision
        for watch in self.watches:
            watch.push(event)


class Store:
    """All objects, keyed by storage key (`pods`, `deployments.apps`), namespace and name."""

    def __init__(self) -> None:
        self.revision = 1
        self._collections: dict[str, Collection] = {}
        self.listeners: list[Callable[[str, Event], None]] = []

    def collection(self, storage: str) -> Collection:
        found = self._collections.get(storage)
        if found is None:
            found = self._collections[storage] = Collection(0)
        return found

    def get(self, storage: str, namespace: str, name: str) -> Document | None:
        found = self.collection(storage).objects.get((namespace, name))
        return None if found is None else found.document

    def stored(self, storage: str, namespace: str, name: str) -> Stored | None:
        return self.collection(storage).objects.get((namespace, name))

    def list(self, storage: str, namespace: str | None = None) -> list[Document]:
        return [stored.document for _, stored in self.scan(storage, namespace)]

    def scan(
        self, storage: str, namespace: str | None = None, after: Key | None = None
    ) -> Iterator[tuple[Key, Stored]]:
        """Objects in order, of one namespace or of all, optionally after a key."""
        collection = self.collection(storage)
        keys = collection.ordered()
        start = 0
        if after is not None:
            start = bisect_right(keys, after)
        elif namespace:
            start = bisect_right(keys, (namespace, ""))
        for index in range(start, len(keys)):
            key = keys[index]
            if namespace and key[0] != namespace:
                if key[0] > namespace:
                    return
                continue
            yield key, collection.objects[key]

    def create(self, storage: str, document: Document) -> Stored:
        """Store a new object under its metadata's namespace and name, at the next revision."""
        return self._write(storage, "ADDED", document, None)

    def update(self, storage: str, document: Document, previous: Stored) -> Stored:
        return self._write(storage, "MODIFIED", document, previous)

    def delete(self, storage: str, previous: Stored) -> Stored:
        """Remove the object; watchers see its last state at the revision of the removal."""
        last = dict(previous.document)
        last["metadata"] = dict(last["metadata"])
        return self._write(storage, "DELETED", last, previous)

    def _write(self, storage: str, type: EventType, document: Document, previous: Stored | None) -> Stored:
        self.revision += 1
        metadata = document["metadata"]
        metadata["resourceVersion"] = str(self.revision)
        stored = Stored(document, self.revision)
        event = Event(type, stored, previous)
        self.collection(storage).record(event, (metadata.get("namespace", ""), metadata["name"]))
        for listener in self.listeners:
            listener(storage, event)
        return stored

    def watch(self, storage: str, since: int | None) -> Watch:
        """Events after a revision, or from now on."""
        collection = self.collection(storage)
        backlog: list[Event] = []
        if since is not None:
            if since < collection.floor:
                raise expired(f"too old resource version: {since} ({collection.floor})")
            for event in reversed(collection.history):
                if event.revision <= since:
                    break
                backlog.append(event)
            backlog.reverse()
        watch = Watch(collection, backlog)
        collection.watches.add(watch)
        return watch

    def end_watches(self, storage: str | None = None) -> None:
        """End the watches of one storage key, or all of them."""
        for name, collection in self._collections.items():
            if storage is None or name == storage:
                for watch in list(collection.watches):
                    watch.end()
