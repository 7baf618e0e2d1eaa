"""The objects of one kind in memory, with indexes; and the store that a watch fills.

One mechanism for all readers of watches: `Objects[K]` of plugins, informers of simulated controllers, the cache of a
small client.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, Generic, TypeVar
from weakref import WeakSet

from mooring.base.log import Log
from mooring.objects.meta import KubeObject

_log = Log("watch")

K = TypeVar("K", bound=KubeObject)
Present = Mapping[str, str]
"""All objects of a list: `namespace/name` → uid."""


class ObjectIndex(Generic[K]):
    """The framework's `Index`, updated with every object that comes and goes."""

    def __init__(self, keys: Callable[[K], Iterable[Hashable]]) -> None:
        self._keys = keys
        self._found: dict[Hashable, dict[str, K]] = {}

    def at(self, key: Hashable) -> Sequence[K]:
        found = self._found.get(key)
        return list(found.values()) if found else ()

    def put(self, item: K) -> None:
        for key in self._keys_of(item):
            self._found.setdefault(key, {})[item.key] = item

    def take(self, item: K) -> None:
        for key in self._keys_of(item):
            if found := self._found.get(key):
                found.pop(item.key, None)
                if not found:
                    del self._found[key]

    def _keys_of(self, item: K) -> list[Hashable]:
        """Runs a plugin's own code: if it fails for one object, the others must still be indexed."""
        try:
            keys = list(self._keys(item))
            hash(tuple(keys))
            return keys
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            name = f"{self._keys.__module__}.{getattr(self._keys, '__qualname__', self._keys)}"
            _log.error(
                "Failed to compute the index keys of an object; it is not in the index",
                index=name,
                object=item.key,
                err=error,
            )
            return []


class IndexedStore(Generic[K]):
    """All objects of a kind by `namespace/name`, their indexes, and a number that changes with them."""

    def __init__(self) -> None:
        self._objects: dict[str, K] = {}
        self._indexes: WeakSet[ObjectIndex[K]] = WeakSet()
        """Each as long as a plugin references it: plugins are built and stopped while the scheduler runs."""
        self.version = 0

    def get(self, name: str, namespace: str | None = None) -> K | None:
        return self._objects.get(f"{namespace}/{name}" if namespace else name)

    def all(self) -> Iterable[K]:
        return list(self._objects.values())

    def indexed(self, keys: Callable[[K], Iterable[Hashable]]) -> ObjectIndex[K]:
        index = ObjectIndex(keys)
        for item in self._objects.values():
            index.put(item)
        self._indexes.add(index)
        return index

    def put(self, item: K) -> K | None:
        """Add it, or replace the one of that name, which is returned."""
        old = self._objects.get(item.key)
        self._objects[item.key] = item
        self.version += 1
        for index in self._indexes:
            if old is not None:
                index.take(old)
            index.put(item)
        return old

    def discard(self, key: str) -> K | None:
        """Remove the one of this `namespace/name`, which is returned."""
        old = self._objects.pop(key, None)
        if old is not None:
            self.version += 1
            for index in self._indexes:
                index.take(old)
        return old

    def keys(self) -> set[str]:
        return set(self._objects)

    def __iter__(self) -> Any:
        raise TypeError("the objects of a kind are read by .all(), .get(name, namespace) or an index")


class WatchedStore(IndexedStore[K]):
    """An `IndexedStore` that a watch fills: it is the feed of a `Reflector`.

    What we have written ourselves can be shown before the watch brings it; what the watch brings from before that
    write is dropped.
    """

    def __init__(self) -> None:
        super().__init__()
        self._assumed: dict[str, int] = {}
        """Resource versions of what we have written, until the watch has come as far."""

    def emit(self, old: K | None, new: K | None) -> None:
        """Called after an object was added (`old` is None), replaced, or removed (`new` is None)."""

    def found(self, found: K, /) -> None:
        self.changed(found)

    def listed(self, present: Present, /) -> None:
        for key in self.keys() - present.keys():
            self._remove(key)

    def changed(self, found: K, /) -> None:
        if self._assumed and (version := self._assumed.get(found.key)) is not None:
            if _version(found) < version:
                return
            del self._assumed[found.key]
        self._put(found)

    def deleted(self, found: K, /) -> None:
        self._remove(found.key)

    def is_outdated(self, written: K) -> bool:
        """Whether the store has a later version of this object."""
        known = self._objects.get(written.key)
        return known is not None and known.uid == written.uid and _version(written) < _version(known)

    def _assume(self, written: K) -> None:
        self._assumed[written.key] = _version(written)

    def _put(self, found: K) -> None:
        self.emit(self.put(found), found)

    def _remove(self, key: str) -> None:
        self._assumed.pop(key, None)
        if (old := self.discard(key)) is not None:
            self.emit(old, None)


def _version(item: KubeObject) -> int:
    """Resource versions of one kind are numbers that grow; since 1.35 clients may rely on it."""
    return int(item.metadata.resource_version or 0)
