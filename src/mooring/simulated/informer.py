"""One watched kind, kept, and shared by everybody here who needs it: one watch however many readers.

Readers ask for what is known and are told what moved. What we have just written ourselves can be put in ahead of the
watch (`expect`), so that a controller does not make a second pod because it has not yet seen its first.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

from mooring.client import ApiClient, Reflector
from mooring.objects.meta import KubeObject
from mooring.simulated.records import controller_of

T = TypeVar("T", bound=KubeObject)

_REMEMBERED_DELETIONS = 10_000


class Informer(Generic[T]):
    """All objects of one kind, by key and by the controller that owns them."""

    def __init__(self, client: ApiClient, type_: type[T]) -> None:
        self.type = type_
        self.reflector: Reflector[T] = Reflector(client, type_, self)
        self._objects: dict[str, T] = {}
        self._owned: defaultdict[str, dict[str, T]] = defaultdict(dict)
        self._gone: OrderedDict[str, None] = OrderedDict()
        self._on_change: list[Callable[[T], None]] = []
        self._on_delete: list[Callable[[T], None]] = []

    def subscribe(
        self, *, changed: Callable[[T], None] | None = None, deleted: Callable[[T], None] | None = None
    ) -> None:
        """Tell what moves from now on. A reader that subscribes before the watch runs misses nothing."""
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

    def expect(self, ours: T) -> None:
        """Count what the server has just confirmed to us, unless the watch already knows better."""
        if ours.uid not in self._gone and not self._knows_later(ours):
            self._put(ours)

    # The feed's side.

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
        elif self._knows_later(object):
            return  # the watch is on its way to what we have expected
        self._put(object)
        for tell in self._on_change:
            tell(object)

    def deleted(self, object: T, /) -> None:
        self._gone[object.uid] = None
        if len(self._gone) > _REMEMBERED_DELETIONS:
            self._gone.popitem(last=False)
        known = self._objects.get(object.key)
        if known is not None and known.uid == object.uid:
            del self._objects[object.key]
            self._disown(known)
        for tell in self._on_delete:
            tell(object)

    def _knows_later(self, object: T) -> bool:
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
    """Resource versions of one kind are numbers that grow; since 1.35 clients may rely on it."""
    text = object.metadata.resource_version
    return int(text) if text.isdecimal() else 0
