"""The kinds that plugins read, each kept up to date by one watch, whichever plugin or profile reads it.

Built-in and custom kinds are one mechanism. A kind that the server lacks or forbids does not stop anything but the
profiles whose plugins need it: `missing` names it for their pods' messages.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, TypeVar

from mooring.client import ApiClient, Reflector
from mooring.framework.events import Action, ClusterEvent, resource_name
from mooring.objects import Node, Pod
from mooring.objects.meta import KubeObject
from mooring.objects.object_store import Present, WatchedStore

K = TypeVar("K", bound=KubeObject)
Publish = Callable[[ClusterEvent, Any, Any], None]


class ObjectStore(WatchedStore[K]):
    """All objects of a kind: the `Objects[K]` that plugins read. Each change is a cluster event."""

    def __init__(self, kind: type[K], publish: Publish, on_synced: Callable[[], None]) -> None:
        super().__init__()
        self.kind = kind
        self._publish = publish
        self._is_published_elsewhere = kind.KIND in (Pod.KIND, Node.KIND)
        """A plugin's own view of pods or nodes: hints expect the objects of the feeds, and each event once."""
        self._on_synced = on_synced
        self._resource = resource_name(kind)
        self.synced = False

    def listed(self, present: Present, /) -> None:
        super().listed(present)
        self.synced = True
        self._on_synced()

    def assume(self, written: K) -> bool:
        """Show what the API server returned for our write; the watch will bring it too. False: it is outdated.

        Only for what the watch has shown before: it alone knows what has been deleted since.
        """
        known = self._objects.get(written.key)
        if known is None or known.uid != written.uid or self.is_outdated(written):
            return False
        self._assume(written)
        self._put(written)
        return True

    def _put(self, found: K) -> None:
        old = self._objects.get(found.key)
        if old is None or old.metadata.resource_version != found.metadata.resource_version:
            super()._put(found)

    def emit(self, old: K | None, new: K | None) -> None:
        if self._is_published_elsewhere:
            return
        action = Action.ADD if old is None else Action.DELETE if new is None else Action.UPDATE
        self._publish(ClusterEvent(self._resource, action), old, new)


class Informers:
    """One store and one watch per kind that plugins read."""

    def __init__(self, client: ApiClient, publish: Publish, on_synced: Callable[[type[KubeObject]], None]) -> None:
        self._client = client
        self._publish = publish
        self._on_synced = on_synced
        self._stores: dict[type[KubeObject], ObjectStore[Any]] = {}
        self._reflectors: dict[type[KubeObject], Reflector[Any]] = {}
        self._watches: dict[type[KubeObject], asyncio.Task[None]] = {}
        self._tasks: asyncio.TaskGroup | None = None

    def store(self, kind: type[K]) -> ObjectStore[K]:
        """The objects of a kind, which is watched from now on."""
        if kind not in self._stores:
            store = ObjectStore(kind, self._publish, lambda: self._on_synced(kind))
            self._stores[kind] = store
            self._reflectors[kind] = Reflector(self._client, kind, store)
        return self._stores[kind]

    @property
    def stores(self) -> Mapping[type[KubeObject], ObjectStore[Any]]:
        """By kind, all that plugins read."""
        return self._stores

    def assume(self, written: KubeObject) -> None:
        """Show what we have written before the watch does, if its kind is watched."""
        if (store := self._stores.get(type(written))) is not None:
            store.assume(written)

    def preload(self, objects_of: Callable[[type[KubeObject]], Iterable[KubeObject]]) -> None:
        """For simulations: all objects of each kind that plugins read. Nothing is watched."""
        for kind, store in self._stores.items():
            present: dict[str, str] = {}
            for found in objects_of(kind):
                store.found(found)
                present[found.key] = found.uid
            store.listed(present)
            self._reflectors[kind].is_listed = True

    def start(self, tasks: asyncio.TaskGroup) -> None:
        """Watch, among these tasks, every kind with a store."""
        self._tasks = tasks
        self.follow()

    def follow(self) -> None:
        """Watch the kinds that got a store meanwhile."""
        assert self._tasks is not None
        for kind, reflector in self._reflectors.items():
            if kind not in self._watches:
                self._watches[kind] = self._tasks.create_task(reflector.run(), name=f"watch {kind.KIND.name}")

    def keep_only(self, kinds: Collection[type[KubeObject]]) -> None:
        """Stop the informers of all other kinds: no plugin reads them any more."""
        for kind in self._stores.keys() - set(kinds):
            del self._stores[kind], self._reflectors[kind]
            if (watch := self._watches.pop(kind, None)) is not None:
                watch.cancel()

    def stop(self) -> None:
        for watch in self._watches.values():
            watch.cancel()

    async def settled(self, at_most_seconds: float) -> None:
        """Until every kind has been listed or has a problem: so that a start logs no false alarms."""
        try:
            async with asyncio.timeout(at_most_seconds):
                for reflector in list(self._reflectors.values()):
                    await reflector.settled.wait()
        except TimeoutError:
            return

    def missing(self, kinds: Iterable[type[KubeObject]]) -> list[tuple[type[KubeObject], str]]:
        """Which of these kinds have not been listed (or are gone), each with the reason in a sentence."""
        return [
            (kind, self._reflectors[kind].problem or f"the first list of {kind.KIND.name} has not come yet")
            for kind in kinds
            if not self._reflectors[kind].is_listed
        ]

    def is_unserved(self, kind: type[KubeObject]) -> bool:
        """Whether the server does not have the kind, as far as is known."""
        return self._reflectors[kind].is_unserved
