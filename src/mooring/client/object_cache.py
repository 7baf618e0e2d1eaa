"""The simplest reader of a watch: all objects of one kind, and a call for each that is new."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from mooring.objects import KubeObject
from mooring.objects.object_store import WatchedStore

K = TypeVar("K", bound=KubeObject)


class ObjectCache(WatchedStore[K]):
    """All objects of one kind, as a `Reflector` lists and watches them; `on_add` is called once for each."""

    def __init__(self, on_add: Callable[[K], None]) -> None:
        super().__init__()
        self._on_add = on_add

    def __contains__(self, item: K) -> bool:
        """Whether this object still exists, and not another one of the same name."""
        known = self._objects.get(item.key)
        return known is not None and known.uid == item.uid

    def emit(self, old: K | None, new: K | None) -> None:
        if new is not None and (old is None or old.uid != new.uid):
            self._on_add(new)
