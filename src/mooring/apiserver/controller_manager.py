"""The controllers inside the embedded API server: garbage collector and namespace controller.

In a real cluster kube-controller-manager runs them. They observe the store's writes, enqueue keys, and sync those in
the background, so that no request waits for them.
"""

from __future__ import annotations

import asyncio

from mooring.apiserver.garbage_collector import GarbageCollector
from mooring.apiserver.namespace_controller import NamespaceController
from mooring.apiserver.registry import ResourceRegistry
from mooring.apiserver.status import StatusError
from mooring.apiserver.storage import Event, ObjectKey
from mooring.base.log import Log

# Requests are served in between.
SYNC_BATCH = 100


class ControllerManager:
    """One work queue for both controllers; `run()` syncs keys as they are enqueued, `sync()` at once."""

    def __init__(self, registry: ResourceRegistry, log: Log) -> None:
        self._log = log
        # Insertion-ordered; a key that is enqueued twice is synced once.
        self._queue: dict[ObjectKey, None] = {}
        self._wake = asyncio.Event()
        self._namespaces = NamespaceController(registry, self._enqueue)
        self._collector = GarbageCollector(registry, self._enqueue)
        for storage in {row.storage for row in registry.table}:
            for (namespace, name), stored in registry.store.scan(storage):
                key = ObjectKey(storage, namespace, name)
                self._namespaces.observe(key, stored.document)
                self._collector.observe(key, stored.document)
        registry.store.subscribe(self._on_event)

    def retain_restored(self) -> None:
        """Keep restored objects whose owners are absent: the owners exist in the cluster that was dumped."""
        self._collector.retain_restored()

    def _on_event(self, storage: str, event: Event) -> None:
        document = event.stored.document
        key = ObjectKey(storage, document["metadata"].get("namespace", ""), document["metadata"]["name"])
        if event.type == "DELETED":
            self._collector.observe_deleted(key, document)
            self._namespaces.observe_deleted(key)
            return
        self._collector.observe(key, document, event.previous.document if event.previous is not None else None)
        self._namespaces.observe(key, document)

    def _enqueue(self, key: ObjectKey) -> None:
        self._queue[key] = None
        self._wake.set()

    async def run(self) -> None:
        """Sync until cancelled."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._queue:
                self.sync(limit=SYNC_BATCH)
                await asyncio.sleep(0)

    def sync(self, limit: int | None = None) -> None:
        """Sync the enqueued keys, and those that a sync enqueues; at most `limit` of them."""
        while self._queue and limit != 0:
            key = next(iter(self._queue))
            del self._queue[key]
            limit = None if limit is None else limit - 1
            try:
                self._namespaces.sync(key)
                self._collector.sync(key)
            except StatusError as error:
                self._log.warning("Failed to sync object", object="/".join(key), err=error.message)
            except Exception as fault:
                # One object that cannot be collected must not end the collection of all others.
                self._log.error("Failed to sync object", object="/".join(key), err=repr(fault))
