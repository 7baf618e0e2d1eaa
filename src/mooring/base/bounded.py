"""An LRU cache that is bounded by the weight of its values.

A number of entries is no bound where users choose their size: one pod may have thousands of terms.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class BoundedCache(Generic[K, V]):
    """Values by key. What is heavier than the bound alone is not kept at all."""

    __slots__ = ("_held", "_most", "_weight")

    def __init__(self, most: int) -> None:
        """`most`: the weight of all values together, in units of the caller's choice."""
        self._most = most
        self._weight = 0
        self._held: dict[K, tuple[V, int]] = {}

    def __len__(self) -> int:
        return len(self._held)

    @property
    def weight(self) -> int:
        return self._weight

    def get(self, key: K) -> V | None:
        held = self._held.get(key)
        if held is None:
            return None
        if 2 * self._weight > self._most:  # as long as there is room, the order does not matter
            self._held[key] = self._held.pop(key)
        return held[0]

    def put(self, key: K, value: V, weight: int) -> V:
        """Keep the value, and return it."""
        self._forget(key)
        if weight <= self._most:
            self._held[key] = (value, weight)
            self._weight += weight
            while self._weight > self._most:
                self._forget(next(iter(self._held)))
        return value

    def keep(self, is_wanted: Callable[[V], bool]) -> None:
        """Drop the values that do not pass."""
        for key in [key for key, (value, _) in self._held.items() if not is_wanted(value)]:
            self._forget(key)

    def _forget(self, key: K) -> None:
        if key in self._held:
            self._weight -= self._held.pop(key)[1]
