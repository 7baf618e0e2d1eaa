"""A shared informer: one list/watch of a kind, its cache, and any number of event handlers.

Objects that we have just written can be put into the cache ahead of the watch (`cache_write`), as with client-go's
MutationCache, so that a controller does not create a second pod because the watch has not delivered the first.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

from mooring.client import ApiClient, Reflector
from mooring.objects.meta import KubeObject
from mooring.simulated.records import controller_of

T = TypeVar("T", bound=KubeObject)

_MAX_DELETED_UIDS = 10_000


class Informer(Generic[T]):
    """The cached objects of one kind, by key and by the uid of their controller."""

    def __init__(self, client: ApiClient, type_: type[T]) -> None:
        self.type = type_
        self.reflector: Reflector[T] = Reflector(client, type_, self)
        self._objects: dict[str, T] = {}
        self._owned: defaultdict[str, dict[str, T]] = defaultdict(dict)
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

    def get(self, key: str) -> T | None:
        return self._objects.get(key)

    def all(self) -> Iterable[T]:
        return self._objects.values()

    def owned_by(self, uid: str) -> list[T]:
        """The objects whose controller has this uid."""
        return list(self._owned[uid].values()) if uid in self._owned else []

    def cache_write(self, written: T) -> None:
        """Cache an object that the server returned for our write, unless the watch has delivered a later version."""
        if written.uid not in self._deleted_uids and not self._has_later(written):
            self._put(written)

    # Called by the reflector.

    def listed(self, objects: list[T], /) -> None:
        present = {each.uid for each in objects}
        for known in list(self._objects.values()):
            if known.uid not in present:
                self.deleted(known)
        for each in objects:
            self.changed(each)

    def changed(self, object: T, /) -> None:
        before = self._objects.get(object.key)
        if before is not None and before.uid != object.uid:
            self.deleted(before)
        elif self._has_later(object):
            return  # the watch lags behind a write of ours
        self._put(object)
        for handle in self._on_change:
            handle(object)

    def deleted(self, object: T, /) -> None:
        self._deleted_uids[object.uid] = None
        if len(self._deleted_uids) > _MAX_DELETED_UIDS:
            self._deleted_uids.popitem(last=False)
        known = self._objects.get(object.key)
        if known is not None and known.uid == object.uid:
            del self._objects[object.key]
            self._disown(known)
        for handle in self._on_delete:
            handle(object)

    def _has_later(self, object: T) -> bool:
        known = self._objects.get(object.key)
        if known is None or known.uid != object.uid:
            return False
        return _version(known) > _version(object)

    def _put(self, object: T) -> None:
        if (before := self._objects.get(object.key)) is not None:
            self._disown(before)
        self._objects[object.key] = object
        if (controller := controller_of(object)) is not None:
            self._owned[controller[2]][object.key] = object

    def _disown(self, object: T) -> None:
        controller = controller_of(object)
        if controller is not None and (siblings := self._owned.get(controller[2])) is not None:
            siblings.pop(object.key, None)
            if not siblings:
                del self._owned[controller[2]]


def _version(object: KubeObject) -> int:
    """The resourceVersion as a number; since 1.35 clients may compare those of one kind."""
    text = object.metadata.resource_version
    return int(text) if text.isdecimal() else 0
