"""Objects as they will be: what the watch shows, with what was decided for a pod put over it.

An assumed object counts as long as the watch shows the very version it was made from. Whatever is newer is right, and
an object that is gone is gone; then the assumption is over, as it is when it is taken back.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Generic, TypeVar

from mooring.base.errors import Fault
from mooring.framework import Objects
from mooring.framework.services import Index
from mooring.objects.meta import KubeObject

K = TypeVar("K", bound=KubeObject)


class AssumedObjects(Generic[K]):
    """All objects of a kind, the assumed ones in the place of the real ones."""

    def __init__(self, shown: Objects[K]) -> None:
        self.shown = shown
        self._assumed: dict[str, K] = {}
        self._looked_at = shown.version

    def get(self, name: str, namespace: str | None = None) -> K | None:
        item = self.shown.get(name, namespace)
        if item is None or not self._assumed:
            return item
        assumed = self._assumed.get(item.key)
        return assumed if assumed is not None and _same_version(assumed, item) else item

    def assume(self, item: K) -> None:
        """Take it for what the object of this name is; it must be made from the version that is shown."""
        shown = self._shown(item)
        if shown is None:
            raise Fault(f'{item.KIND.plural} "{item.key}" not found')
        if not _same_version(shown, item):
            raise Fault(
                f'"{item.key}" is out of sync (stored: {shown.metadata.resource_version},'
                f" assume: {item.metadata.resource_version})"
            )
        self._forget_overtaken()
        self._assumed[item.key] = item

    def take_back(self, item: K) -> None:
        """The assumption is over, unless it is of another version by now."""
        assumed = self._assumed.get(item.key)
        if assumed is not None and _same_version(assumed, item):
            del self._assumed[item.key]

    @property
    def assumed(self) -> Mapping[str, K]:
        """What is assumed and not yet overtaken by the watch, by key."""
        self._forget_overtaken()
        return self._assumed

    def _forget_overtaken(self) -> None:
        if not self._assumed or self._looked_at == self.shown.version:
            return
        self._looked_at = self.shown.version
        for item in list(self._assumed.values()):
            shown = self._shown(item)
            if shown is None or not _same_version(shown, item):
                del self._assumed[item.key]

    def _shown(self, item: K) -> K | None:
        return self.shown.get(item.name, item.namespace or None)

    def indexed(self, keys: Callable[[K], Iterable[Hashable]]) -> AssumedIndex[K]:
        return AssumedIndex(self, self.shown.indexed(keys), keys)


class AssumedIndex(Generic[K]):
    """The framework's `Index`, with assumed objects under the keys that they will have."""

    def __init__(self, objects: AssumedObjects[K], shown: Index[K], keys: Callable[[K], Iterable[Hashable]]) -> None:
        self._objects = objects
        self._shown = shown
        self._keys = keys

    def at(self, key: Hashable) -> Sequence[K]:
        shown, assumed = self._shown.at(key), self._objects.assumed
        if not assumed:
            return shown
        found = [item for item in shown if item.key not in assumed]
        found += [item for item in assumed.values() if key in self._keys(item)]
        return found


def _same_version(one: KubeObject, other: KubeObject) -> bool:
    return one.metadata.resource_version == other.metadata.resource_version
