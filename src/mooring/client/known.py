"""The simplest feed: what there is of one kind, kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from mooring.objects import KubeObject

K = TypeVar("K", bound=KubeObject)


class Known(dict[str, K]):
    """What there is of one kind, by uid, as a `Reflector` tells it; `on_new` hears of each object once."""

    def __init__(self, on_new: Callable[[K], None]) -> None:
        super().__init__()
        self._on_new = on_new

    def listed(self, objects: list[K]) -> None:
        for gone in self.keys() - {one.uid for one in objects}:
            del self[gone]
        for one in objects:
            self.changed(one)

    def changed(self, one: K) -> None:
        is_new = one.uid not in self
        self[one.uid] = one
        if is_new:
            self._on_new(one)

    def deleted(self, one: K) -> None:
        self.pop(one.uid, None)
