"""The kinds that plugins asked for, each kept up to date by one watch, whichever plugin or profile reads it.

Built-in and custom kinds are one mechanism. A kind that the server lacks or forbids does not stop anything but the
profiles whose plugins need it: `missing` names it for their pods' messages.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Any, Generic, TypeVar

from mooring.client import ApiClient, Reflector
from mooring.framework.events import Action, ClusterEvent, resource_name
from mooring.objects.meta import KubeObject

K = TypeVar("K", bound=KubeObject)
Publish = Callable[[ClusterEvent, Any, Any], None]


class ObjectStore(Generic[K]):
    """All objects of a kind: the `Objects[K]` that plugins read, and the feed that a watch fills."""

    def __init__(self, kind: type[K], publish: Publish, on_synced: Callable[[], None]) -> None:
        self.kind = kind
        self._objects: dict[str, K] = {}
        self._publish = publish
        self._on_synced = on_synced
        self._resource = resource_name(kind)
        self.synced = False

    def get(self, name: str, namespace: str | None = None) -> K | None:
        return self._objects.get(f"{namespace}/{name}" if namespace else name)

    def all(self) -> Iterable[K]:
        return list(self._objects.values())

    def listed(self, objects: list[K]) -> None:
        gone = self._objects.keys() - {found.key for found in objects}
        for key in gone:
            self.deleted(self._objects[key])
        for found in objects:
            self.changed(found)
        self.synced = True
        self._on_synced()

    def changed(self, found: K) -> None:
        old = self._objects.get(found.key)
        if old is not None and old.metadata.resource_version == found.metadata.resource_version:
            return
        self._objects[found.key] = found
        action = Action.ADD if old is None else Action.UPDATE
        self._publish(ClusterEvent(self._resource, action), old, found)

    def deleted(self, found: K) -> None:
        old = self._objects.pop(found.key, None)
        if old is not None:
            self._publish(ClusterEvent(self._resource, Action.DELETE), old, None)


class Informers:
    """One store and one watch per kind that was asked for."""

    def __init__(self, client: ApiClient, publish: Publish, on_synced: Callable[[type[KubeObject]], None]) -> None:
        self._client = client
        self._publish = publish
        self._on_synced = on_synced
        self._stores: dict[type[KubeObject], ObjectStore[Any]] = {}
        self._reflectors: dict[type[KubeObject], Reflector[Any]] = {}

    def store(self, kind: type[K]) -> ObjectStore[K]:
        """The objects of a kind; asking for it is what makes it watched."""
        if kind not in self._stores:
            store = ObjectStore(kind, self._publish, lambda: self._on_synced(kind))
            self._stores[kind] = store
            self._reflectors[kind] = Reflector(self._client, kind, store)
        return self._stores[kind]

    def start(self, tasks: asyncio.TaskGroup) -> list[asyncio.Task[None]]:
        return [
            tasks.create_task(reflector.run(), name=f"watch {kind.KIND.name}")
            for kind, reflector in self._reflectors.items()
        ]

    async def settled(self, at_most_seconds: float) -> None:
        """Until every kind has been listed or has a problem to tell; a start looks better without false alarms."""
        try:
            async with asyncio.timeout(at_most_seconds):
                for reflector in self._reflectors.values():
                    await reflector.settled.wait()
        except TimeoutError:
            return

    def missing(self, kinds: Iterable[type[KubeObject]]) -> list[tuple[type[KubeObject], str]]:
        """Which of these kinds have not been listed (or are gone), each with a sentence that says why."""
        return [
            (kind, self._reflectors[kind].problem or f"the first list of {kind.KIND.name} has not come yet")
            for kind in kinds
            if not self._reflectors[kind].is_listed
        ]
