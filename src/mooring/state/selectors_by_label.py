"""Which selectors match a pod, without evaluating every one of them.

Each selector is indexed under one thing that a matching pod must have: a label with a value (of its first `In`
requirement), and the namespace where it names any. Looking a pod up then costs a few dictionary reads.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Generic, TypeVar

from mooring.framework import PodsWhere

T = TypeVar("T")

_Place = tuple[str | None, str | None, str | None]
"""Namespace (None: any), label key and value (None: no label can be named)."""
_MOST_PLACES = 64


class SelectorsByLabel(Generic[T]):
    """Entries indexed by the pods they select."""

    def __init__(self) -> None:
        self._at: dict[_Place, dict[int, T]] = {}

    def __bool__(self) -> bool:
        """Whether anything is filed."""
        return bool(self._at)

    def add(self, where: PodsWhere, thing: T) -> None:
        for place in _places(where):
            self._at.setdefault(place, {})[id(thing)] = thing

    def remove(self, where: PodsWhere, thing: T) -> None:
        for place in _places(where):
            filed = self._at[place]
            del filed[id(thing)]
            if not filed:
                del self._at[place]

    def candidates(self, namespace: str, labels: Mapping[str, str]) -> Iterator[T]:
        """Each thing that may select a pod like this, once; the caller checks the whole selector."""
        at = self._at
        if not at:
            return
        for home in (namespace, None):
            if filed := at.get((home, None, None)):
                yield from filed.values()
            for key, value in labels.items():
                if filed := at.get((home, key, value)):
                    yield from filed.values()


def _places(where: PodsWhere) -> list[_Place]:
    homes: list[str | None] = [None] if where.namespaces is None else list(where.namespaces)
    required = where.some_label()
    labels: list[tuple[str | None, str | None]] = [(None, None)] if required is None else [*required]
    if len(homes) * len(labels) > _MOST_PLACES:
        homes = [None]
    return [(home, key, value) for home in homes for key, value in labels]
