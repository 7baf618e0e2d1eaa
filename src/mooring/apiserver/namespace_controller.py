"""The namespace controller: deletes the content of terminating namespaces, then finalizes them.

It also creates the `default` service account of new namespaces, as the service account controller does.
"""

from __future__ import annotations

from collections.abc import Callable

from mooring.apiserver.documents import Document
from mooring.apiserver.options import DeleteOptions
from mooring.apiserver.registry import ResourceRegistry
from mooring.apiserver.storage import ObjectKey

NAMESPACES = "namespaces"


class NamespaceController:
    """Syncs namespaces, by key, when they or their content change."""

    def __init__(self, registry: ResourceRegistry, enqueue: Callable[[ObjectKey], None]) -> None:
        self._registry = registry
        self._enqueue = enqueue

    def observe(self, key: ObjectKey, document: Document) -> None:
        if key.storage == NAMESPACES:
            self._enqueue(key)

    def observe_deleted(self, key: ObjectKey) -> None:
        """The last object of a terminating namespace may be gone."""
        namespace = self._registry.store.get(NAMESPACES, "", key.namespace)
        if namespace is not None and namespace["metadata"].get("deletionTimestamp"):
            self._enqueue(ObjectKey(NAMESPACES, "", key.namespace))

    def sync(self, key: ObjectKey) -> None:
        if key.storage != NAMESPACES:
            return
        namespace = self._registry.store.get(*key)
        if namespace is None:
            return
        if not namespace["metadata"].get("deletionTimestamp"):
            if self._registry.store.get("serviceaccounts", key.name, "default") is None:
                self._create_default_service_account(key.name)
        elif self._delete_content(key.name):
            self._registry.finalize_namespace(key.name, [])

    def _delete_content(self, namespace: str) -> bool:
        """Delete every object of the namespace; False while finalizers or grace periods keep some of them."""
        store, is_empty = self._registry.store, True
        for row in {row.storage: row for row in self._registry.table if row.namespaced}.values():
            for (_, name), stored in list(store.scan(row.storage, namespace)):
                if not stored.document["metadata"].get("deletionTimestamp"):
                    self._registry.delete(row, namespace, name, DeleteOptions(propagation="Background"))
            is_empty = is_empty and next(store.scan(row.storage, namespace), None) is None
        return is_empty

    def _create_default_service_account(self, namespace: str) -> None:
        row = self._registry.table.find("", "v1", "serviceaccounts")
        assert row is not None
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}
        self._registry.create(row, namespace, account)
