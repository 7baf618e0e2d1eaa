"""The garbage collector: deletes dependents whose owners are gone, and completes foreground and orphaning deletions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any

from mooring.apiserver.documents import Document, items_of
from mooring.apiserver.options import DeleteOptions
from mooring.apiserver.registry import ResourceRegistry
from mooring.apiserver.storage import ObjectKey

FOREGROUND, ORPHAN = "foregroundDeletion", "orphan"


class GarbageCollector:
    """Keeps the graph of owners and dependents, and syncs objects, by key, when their owners or dependents change."""

    def __init__(self, registry: ResourceRegistry, enqueue: Callable[[ObjectKey], None]) -> None:
        self._registry = registry
        self._enqueue = enqueue
        self._dependents: dict[str, set[ObjectKey]] = defaultdict(set)
        """By the owner's uid."""
        self._keys: dict[str, ObjectKey] = {}
        """Of every object, by its uid."""
        self._absent_owners: set[str] = set()
        """Uids of owners that restored objects name and that were not restored themselves."""

    def retain_restored(self) -> None:
        """Collect nothing for an owner that is absent now: it exists where the objects were restored from."""
        self._absent_owners.update(uid for uid in self._dependents if uid not in self._keys)

    def observe(self, key: ObjectKey, document: Document, previous: Document | None = None) -> None:
        """Add a created or updated object to the graph."""
        if previous is not None and previous["metadata"].get("ownerReferences"):
            self._remove_dependent(key, previous)
        metadata = document["metadata"]
        self._keys[metadata["uid"]] = key
        for owner in items_of(metadata, "ownerReferences"):
            self._dependents[owner["uid"]].add(key)
            if owner["uid"] not in self._keys:
                self._enqueue(key)
        if metadata.get("deletionTimestamp"):
            self._enqueue(key)

    def observe_deleted(self, key: ObjectKey, document: Document) -> None:
        """Remove a deleted object from the graph."""
        metadata = document["metadata"]
        self._keys.pop(metadata["uid"], None)
        self._remove_dependent(key, document)
        for dependent in sorted(self._dependents.get(metadata["uid"], ())):
            self._enqueue(dependent)
        for owner in items_of(metadata, "ownerReferences"):
            # A foreground deletion waits for the last dependent.
            if owner["uid"] in self._keys and not self._dependents.get(owner["uid"]):
                self._enqueue(self._keys[owner["uid"]])

    def _remove_dependent(self, key: ObjectKey, document: Document) -> None:
        for owner in items_of(document["metadata"], "ownerReferences"):
            dependents = self._dependents.get(owner["uid"])
            if dependents is not None:
                dependents.discard(key)
                if not dependents:
                    del self._dependents[owner["uid"]]

    def sync(self, key: ObjectKey) -> None:
        document = self._registry.store.get(*key)
        if document is None:
            return
        metadata = document["metadata"]
        owners = [owner["uid"] for owner in items_of(metadata, "ownerReferences")]
        if owners and not any(uid in self._keys or uid in self._absent_owners for uid in owners):
            self._delete(key)
            return
        finalizers = items_of(metadata, "finalizers")
        if metadata.get("deletionTimestamp") and FOREGROUND in finalizers:
            if dependents := self._dependents.get(metadata["uid"]):
                for dependent in sorted(dependents):
                    self._delete(dependent, "Foreground")
            else:
                self._remove_finalizer(key, FOREGROUND)
        elif metadata.get("deletionTimestamp") and ORPHAN in finalizers:
            for dependent in sorted(self._dependents.get(metadata["uid"], ())):
                self._remove_owner_reference(dependent, metadata["uid"])
            self._remove_finalizer(key, ORPHAN)

    def _delete(self, key: ObjectKey, propagation: str = "Background") -> None:
        rows = self._registry.table.stored_as(key.storage)
        document = self._registry.store.get(*key)
        if rows and document is not None and not document["metadata"].get("deletionTimestamp"):
            self._registry.delete(rows[0], key.namespace, key.name, DeleteOptions(propagation=propagation))

    def _remove_finalizer(self, key: ObjectKey, finalizer: str) -> None:
        self._filter_metadata(key, "finalizers", lambda each: each != finalizer)

    def _remove_owner_reference(self, key: ObjectKey, uid: str) -> None:
        self._filter_metadata(key, "ownerReferences", lambda each: each["uid"] != uid)

    def _filter_metadata(self, key: ObjectKey, field: str, keeps: Callable[[Any], bool]) -> None:
        row = self._registry.table.stored_as(key.storage)[0]

        def change(document: Document) -> Document:
            metadata = dict(document["metadata"])
            metadata[field] = [each for each in items_of(metadata, field) if keeps(each)]
            return {**document, "metadata": metadata}

        self._registry.update(row, key.namespace, key.name, change)
