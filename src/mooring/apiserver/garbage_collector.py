"""What kube-controller-manager would do so that deletions end: garbage collection and emptying of namespaces.

Dependents go when their last owner has gone. A namespace that is being deleted is emptied and, once empty, goes
too. New namespaces get their `default` service account. It follows the store's events and works in the
background, so that no request waits for it.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable
from typing import Any

from mooring.apiserver.documents import Document, items_of
from mooring.apiserver.registry import Deletion, Registry
from mooring.apiserver.status import Refused
from mooring.apiserver.storage import Event
from mooring.base.log import Log

Place = tuple[str, str, str]
# Requests are answered in between.
AT_ONCE = 100
FOREGROUND, ORPHAN = "foregroundDeletion", "orphan"


class Housekeeper:
    """One per server; `tidy()` does what is due, `run()` does so whenever something is."""

    def __init__(self, registry: Registry, log: Log) -> None:
        self._registry = registry
        self._log = log
        self._dependents: dict[str, set[Place]] = defaultdict(set)
        self._places: dict[str, Place] = {}
        # Owners of restored objects that were not restored themselves.
        self._absent: set[str] = set()
        # Insertion-ordered; what is due twice is done once.
        self._due: dict[Place, None] = {}
        self._wake = asyncio.Event()
        for storage in {row.storage for row in registry.table}:
            for (namespace, name), stored in registry.store.scan(storage):
                self._remember((storage, namespace, name), stored.document)
        registry.store.listeners.append(self._on_event)

    def keep_restored(self) -> None:
        """Collect nothing for an owner that is missing now: it exists where the objects were restored from."""
        self._absent.update(uid for uid in self._dependents if uid not in self._places)

    def _on_event(self, storage: str, event: Event) -> None:
        metadata = event.stored.document["metadata"]
        place = (storage, metadata.get("namespace", ""), metadata["name"])
        if event.type == "DELETED":
            self._forget(place, event.stored.document)
        else:
            if event.previous is not None and event.previous.document["metadata"].get("ownerReferences"):
                self._forget_owners(place, event.previous.document)
            self._remember(place, event.stored.document)

    def _remember(self, place: Place, document: Document) -> None:
        metadata = document["metadata"]
        self._places[metadata["uid"]] = place
        for owner in items_of(metadata, "ownerReferences"):
            self._dependents[owner["uid"]].add(place)
            if owner["uid"] not in self._places:
                self._plan(place)
        if metadata.get("deletionTimestamp") or place[0] == "namespaces":
            self._plan(place)

    def _forget_owners(self, place: Place, document: Document) -> None:
        for owner in items_of(document["metadata"], "ownerReferences"):
            left = self._dependents.get(owner["uid"])
            if left is not None:
                left.discard(place)
                if not left:
                    del self._dependents[owner["uid"]]

    def _forget(self, place: Place, document: Document) -> None:
        metadata = document["metadata"]
        self._places.pop(metadata["uid"], None)
        self._forget_owners(place, document)
        for dependent in sorted(self._dependents.get(metadata["uid"], ())):
            self._plan(dependent)
        for owner in items_of(metadata, "ownerReferences"):
            # A foreground deletion waits for the last dependent.
            if owner["uid"] in self._places and not self._dependents.get(owner["uid"]):
                self._plan(self._places[owner["uid"]])
        namespace = self._registry.store.get("namespaces", "", place[1])
        if namespace is not None and namespace["metadata"].get("deletionTimestamp"):
            self._plan(("namespaces", "", place[1]))

    def _plan(self, place: Place) -> None:
        self._due[place] = None
        self._wake.set()

    async def run(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._due:
                self.tidy(most=AT_ONCE)
                await asyncio.sleep(0)

    def tidy(self, most: int | None = None) -> None:
        """Do what is due, and what becomes due by it; at most so much of it."""
        while self._due and most != 0:
            place = next(iter(self._due))
            del self._due[place]
            most = None if most is None else most - 1
            try:
                self._look_at(place)
            except Refused as refused:
                self._log.warning("Could not tidy up", what="/".join(place), err=refused.message)
            except Exception as fault:
                # One object that cannot be collected must not end the collection of all others.
                self._log.error("Could not tidy up", what="/".join(place), err=repr(fault))

    def _look_at(self, place: Place) -> None:
        storage, namespace, name = place
        stored = self._registry.store.stored(storage, namespace, name)
        if stored is None:
            return
        metadata = stored.document["metadata"]
        if storage == "namespaces":
            self._look_at_namespace(name, stored.document)
        owners = items_of(metadata, "ownerReferences")
        if owners and not any(owner["uid"] in self._places or owner["uid"] in self._absent for owner in owners):
            self._delete(place)
            return
        finalizers = items_of(metadata, "finalizers")
        if metadata.get("deletionTimestamp") and FOREGROUND in finalizers:
            dependents = self._dependents.get(metadata["uid"])
            if dependents:
                for dependent in sorted(dependents):
                    self._delete(dependent, "Foreground")
            else:
                self._drop_finalizer(place, FOREGROUND)
        elif metadata.get("deletionTimestamp") and ORPHAN in finalizers:
            for dependent in sorted(self._dependents.get(metadata["uid"], ())):
                self._drop_owner(dependent, metadata["uid"])
            self._drop_finalizer(place, ORPHAN)

    def _look_at_namespace(self, name: str, document: Document) -> None:
        if not document["metadata"].get("deletionTimestamp"):
            if self._registry.store.get("serviceaccounts", name, "default") is None:
                self._create_default_account(name)
            return
        is_empty = True
        for row in {row.storage: row for row in self._registry.table if row.namespaced}.values():
            for key, _ in list(self._registry.store.scan(row.storage, name)):
                self._delete((row.storage, *key))
            is_empty = is_empty and next(self._registry.store.scan(row.storage, name), None) is None
        if is_empty:
            self._registry.finalize_namespace(name, [])

    def _create_default_account(self, namespace: str) -> None:
        row = self._registry.table.find("", "v1", "serviceaccounts")
        assert row is not None
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}
        self._registry.create(row, namespace, account)

    def _delete(self, place: Place, propagation: str = "Background") -> None:
        storage, namespace, name = place
        rows = self._registry.table.stored_as(storage)
        stored = self._registry.store.stored(storage, namespace, name)
        if not rows or stored is None or stored.document["metadata"].get("deletionTimestamp"):
            return
        self._registry.delete(rows[0], namespace, name, Deletion(propagation=propagation))

    def _drop_finalizer(self, place: Place, finalizer: str) -> None:
        self._change_metadata(
            place,
            "finalizers",
            lambda each: each != finalizer,
        )

    def _drop_owner(self, place: Place, uid: str) -> None:
        self._change_metadata(place, "ownerReferences", lambda each: each["uid"] != uid)

    def _change_metadata(self, place: Place, field: str, keeps: Callable[[Any], bool]) -> None:
        storage, namespace, name = place
        row = self._registry.table.stored_as(storage)[0]

        def change(document: Document) -> Document:
            metadata = dict(document["metadata"])
            metadata[field] = [each for each in items_of(metadata, field) if keeps(each)]
            return {**document, "metadata": metadata}

        self._registry.update(row, namespace, name, change)
