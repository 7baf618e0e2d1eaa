"""Storage with revisions, and its watch cache.

Every write takes the next revision of the whole store. A bounded watch cache per storage key lets a watch begin in the
past; an older resourceVersion is `410 Gone`. A watch is a position in that cache, not a queue of its own: a client that
does not read costs nothing but its connection, and its watch ends once the cache no longer holds its next event. An
event is encoded once per served version and shared by all watches.
All of it runs on one thread: a write is visible to readers and watches when it returns.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterator
from typing import Literal, NamedTuple

from mooring.apiserver.documents import Converter, Document, encode, identity
from mooring.apiserver.status import StatusError, expired, too_large

EventType = Literal["ADDED", "MODIFIED", "DELETED"]
Key = tuple[str, str]
"""Namespace and name, within one storage key."""
WATCH_CACHE_EVENTS = 20_000
WATCH_CACHE_BYTES = 64 * 1024 * 1024
"""Encoded size of the events in all watch caches together."""
MAX_OBJECT_BYTES = 1536 * 1024
"""etcd's limit on a request: no object is larger, whatever patches made it."""
# How many of the latest events keep their encoded lines for all watches, and how long such a line may be.
SHARED = 256
SHARED_BYTES = 64 * 1024
# How many events a watch takes at once.
BATCH = 512


class ObjectKey(NamedTuple):
    """Which object, among those of all storage keys."""

    storage: str
    namespace: str
    name: str


class StoredObject:
    """One version of an object: the document, its revision, and its bytes per served version."""

    __slots__ = ("_converted", "_encoded", "document", "revision")

    def __init__(self, document: Document, revision: int) -> None:
        self.document = document
        self.revision = revision
        self._encoded: bytes | None = None
        self._converted: dict[object, tuple[Document, bytes]] | None = None

    @property
    def encoded(self) -> bytes:
        if self._encoded is None:
            self._encoded = encode(self.document)
        return self._encoded

    def converted(self, to_served: Converter) -> tuple[Document, bytes]:
        """The object and its bytes in a served version; cached by the conversion."""
        if to_served is identity:
            return self.document, self.encoded
        if self._converted is None:
            self._converted = {}
        found = self._converted.get(to_served)
        if found is None:
            served = to_served(self.document)
            found = self._converted[to_served] = (served, self.encoded if served is self.document else encode(served))
        return found

    def drop_encoded(self) -> None:
        """Drop the cached bytes: a superseded version is rarely read again, and can be encoded again."""
        self._encoded = self._converted = None


class Event:
    """What a write did. `previous` lets a watch with selectors report an object that no longer matches."""

    __slots__ = ("_lines", "previous", "revision", "size", "stored", "type")

    def __init__(self, type: EventType, stored: StoredObject, previous: StoredObject | None) -> None:
        self.type = type
        self.stored = stored
        self.previous = previous
        self.revision = stored.revision
        self.size = len(stored.encoded)
        self._lines: dict[tuple[str, object], tuple[bytes, ...]] = {}

    def line(self, type: EventType, to_served: Converter) -> tuple[bytes, ...]:
        """The event as one line of a watch response, encoded once for all watches."""
        key = (type, to_served)
        found = self._lines.get(key)
        if found is None:
            found = self._lines[key] = event_line(type, self.stored.converted(to_served)[1])
        return found

    def drop_encoded(self) -> None:
        """Drop the cached lines, once the watches that keep up have sent them."""
        self._lines.clear()


def event_line(type: EventType, served: bytes) -> tuple[bytes, ...]:
    """One line of a watch response, in one piece where copying it costs little."""
    if len(served) > SHARED_BYTES:
        return b'{"type":"%s","object":' % type.encode(), served, b"}\n"
    return (b'{"type":"%s","object":%s}\n' % (type.encode(), served),)


class Watch:
    """A client's position in the watch cache of one storage key. Call `next_batch()` until `ended`."""

    def __init__(self, collection: Collection, missed: int) -> None:
        self._collection = collection
        self._position = collection.written - missed
        self._wake = asyncio.Event()
        self.ended = False
        self._bookmark_requested = False
        self.failure: StatusError | None = None
        self._on_end: Callable[[], None] | None = None

    @property
    def behind(self) -> int:
        """Events that the client has not received yet."""
        return 0 if self.failure is not None else self._collection.written - self._position

    def wake(self) -> None:
        """An event was recorded. A watch whose next event was dropped from the cache ends."""
        if self.behind > len(self._collection.watch_cache):
            self.failure = expired("too old resource version: the watch fell behind the watch cache")
            self.end()
        self._wake.set()

    def end(self) -> None:
        """Accept no further events; those that are behind are still sent."""
        if self.ended:
            return
        self.ended = True
        self._wake.set()
        if self._on_end is not None:
            self._on_end()

    def on_end(self, call: Callable[[], None]) -> None:
        """Call this when the watch ends."""
        self._on_end = call

    def request_bookmark(self) -> None:
        """Make `next_batch` return without events, so that a bookmark is sent."""
        self._bookmark_requested = True
        self._wake.set()

    async def next_batch(self) -> list[Event]:
        """Wait for events. An empty batch means that a bookmark is due, or that the watch has ended."""
        while not self.behind and not self.ended and not self._bookmark_requested:
            self._wake.clear()
            await self._wake.wait()
        self._bookmark_requested = False
        behind, watch_cache = self.behind, self._collection.watch_cache
        batch = [watch_cache[place] for place in range(-behind, min(BATCH - behind, 0))]
        self._position += len(batch)
        return batch

    def close(self) -> None:
        self._collection.watches.discard(self)


class Collection:
    """The objects under one storage key."""

    def __init__(self, compacted_revision: int) -> None:
        self.objects: dict[Key, StoredObject] = {}
        self.watch_cache: deque[Event] = deque()
        self.watch_cache_bytes = 0
        self.written = 0
        self.compacted_revision = compacted_revision
        self.watches: set[Watch] = set()
        self._order: list[Key] | None = None

    def ordered(self) -> list[Key]:
        """Keys by namespace and name: the order of lists."""
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
        self.watch_cache.append(event)
        self.watch_cache_bytes += event.size
        self.written += 1
        if event.previous is not None:
            event.previous.drop_encoded()
        if len(self.watch_cache) > SHARED:
            self.watch_cache[-SHARED].drop_encoded()

    def drop_oldest(self) -> int:
        """Drop one event from the watch cache; returns its size."""
        oldest = self.watch_cache.popleft()
        self.compacted_revision = oldest.revision
        self.watch_cache_bytes -= oldest.size
        return oldest.size

    def notify(self) -> None:
        """Wake the watches, and end those whose next event was dropped."""
        for watch in list(self.watches):
            watch.wake()


def _check_size(stored: StoredObject) -> None:
    """Reject an object that is too large."""
    encoded = stored.encoded
    if len(encoded) > MAX_OBJECT_BYTES:
        raise too_large(f"the object has {len(encoded)} bytes, limit is {MAX_OBJECT_BYTES}")


class Store:
    """All objects, keyed by storage key (`pods`, `deployments.apps`), namespace and name."""

    def __init__(self) -> None:
        self.revision = 1
        self._collections: dict[str, Collection] = {}
        self._watch_cache_bytes = 0
        self._listeners: list[Callable[[str, Event], None]] = []

    def subscribe(self, listener: Callable[[str, Event], None]) -> None:
        """Call the listener with every write from now on: its storage key and its event."""
        self._listeners.append(listener)

    def collection(self, storage: str) -> Collection:
        found = self._collections.get(storage)
        if found is None:
            found = self._collections[storage] = Collection(0)
        return found

    def get(self, storage: str, namespace: str, name: str) -> Document | None:
        found = self.collection(storage).objects.get((namespace, name))
        return None if found is None else found.document

    def stored(self, storage: str, namespace: str, name: str) -> StoredObject | None:
        return self.collection(storage).objects.get((namespace, name))

    def list(self, storage: str, namespace: str | None = None) -> list[Document]:
        return [stored.document for _, stored in self.scan(storage, namespace)]

    def scan(
        self, storage: str, namespace: str | None = None, after: Key | None = None
    ) -> Iterator[tuple[Key, StoredObject]]:
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

    def create(self, storage: str, document: Document) -> StoredObject:
        """Store a new object under its metadata's namespace and name, at the next revision."""
        return self._write(storage, "ADDED", document, None)

    def update(self, storage: str, document: Document, previous: StoredObject) -> StoredObject:
        return self._write(storage, "MODIFIED", document, previous)

    def delete(self, storage: str, previous: StoredObject) -> StoredObject:
        """Remove the object; watches report its last state at the revision of the removal."""
        last = dict(previous.document)
        last["metadata"] = dict(last["metadata"])
        return self._write(storage, "DELETED", last, previous)

    def _write(self, storage: str, type: EventType, document: Document, previous: StoredObject | None) -> StoredObject:
        metadata = document["metadata"]
        metadata["resourceVersion"] = str(self.revision + 1)
        stored = StoredObject(document, self.revision + 1)
        event = Event(type, stored, previous)
        if type != "DELETED":
            _check_size(stored)
        self.revision += 1
        collection = self.collection(storage)
        collection.record(event, (metadata.get("namespace", ""), metadata["name"]))
        self._watch_cache_bytes += event.size
        while len(collection.watch_cache) > WATCH_CACHE_EVENTS:
            self._watch_cache_bytes -= collection.drop_oldest()
        while self._watch_cache_bytes > WATCH_CACHE_BYTES:
            greatest = max(self._collections.values(), key=lambda each: each.watch_cache_bytes)
            self._watch_cache_bytes -= greatest.drop_oldest()
            greatest.notify()
        collection.notify()
        for listener in self._listeners:
            listener(storage, event)
        return stored

    def watch(self, storage: str, since: int | None) -> Watch:
        """Events after a revision, or from now on."""
        collection = self.collection(storage)
        missed = 0
        if since is not None:
            if since < collection.compacted_revision:
                raise expired(f"too old resource version: {since} ({collection.compacted_revision})")
            for event in reversed(collection.watch_cache):
                if event.revision <= since:
                    break
                missed += 1
        watch = Watch(collection, missed)
        collection.watches.add(watch)
        return watch

    def end_watches(self, storage: str | None = None) -> None:
        """End the watches of one storage key, or all of them."""
        for name, collection in self._collections.items():
            if storage is None or name == storage:
                for watch in list(collection.watches):
                    watch.end()
