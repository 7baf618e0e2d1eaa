"""A shared informer: one list/watch of a kind, its cache, and any number of event handlers.

Objects that we have just written can be put into the cache ahead of the watch (`cache_write`), as with client-go's
MutationCache, so that a controller does not create a second pod because the watch has not delivered the first.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import TypeVar

from mooring.client.api import ApiClient
from mooring.client.reflector import Reflector
from mooring.objects.meta import KubeObject
from mooring.objects.object_store import WatchedStore

T = TypeVar("T", bound=KubeObject)

_MAX_DELETED_UIDS = 10_000


class Informer(WatchedStore[T]):
    """The cached objects of one kind, by key and by the uid of their controller."""

    def __init__(self, client: ApiClient, type_: type[T]) -> None:
        super().__init__()
        self.type = type_
        self.reflector: Reflector[T] = Reflector(client, type_, self)
        self._by_owner = self.indexed(_owner)
        self._deleted_uids: OrderedDict[str, None] = OrderedDict()
        self._on_change: list[Callable[[T], None]] = []
        self._on_delete: list[Callable[[T], None]] = []

    def subscribe(
        self, *, changed: Callable[[T], None] | None = None, deleted: Callable[[T], None] | None = None
    ) -> None:
        """Add event handlers. Handlers added before the reflector runs miss nothing."""
        if changed is not None:
            self._on_change.append(changed)
        if deleted is not None:
            self._on_delete.append(deleted)

    def owned_by(self, uid: str) -> list[T]:
        """The objects whose controller has this uid."""
        return list(self._by_owner.at(uid))

    def has_deleted(self, uid: str) -> bool:
        """Whether the watch delivered the deletion of this object, one of the latest thousands."""
        return uid in self._deleted_uids

    def cache_write(self, written: T) -> None:
        """Cache an object that the server returned for our write, unless the watch has delivered a later version."""
        if written.uid not in self._deleted_uids and not self.is_outdated(written):
            self._assume(written)
            self.put(written)

    def deleted(self, found: T, /) -> None:
        known = self._objects.get(found.key)
        if known is not None and known.uid == found.uid:
            self._remove(found.key)
        else:
            self._handle_deletion(found)

    def emit(self, old: T | None, new: T | None) -> None:
        if old is not None and (new is None or new.uid != old.uid):
            self._handle_deletion(old)
        if new is not None:
            for handle in self._on_change:
                handle(new)

    def _handle_deletion(self, old: T) -> None:
        self._deleted_uids[old.uid] = None
        if len(self._deleted_uids) > _MAX_DELETED_UIDS:
            self._deleted_uids.popitem(last=False)
        for handle in self._on_delete:
            handle(old)


def _owner(item: KubeObject) -> list[str]:
    return [owner.uid for owner in item.metadata.owner_references if owner.controller][:1]
