"""Amounts of capacities and counters, as whole numbers of billionths: exact, and fast to add."""

from __future__ import annotations

from functools import lru_cache

from mooring.objects.quantity import QuantityText, exact

_ONE = 10**9


@lru_cache(maxsize=65_536)
def billionths(text: QuantityText) -> int:
    """No quantity is finer than that."""
    return int(exact(text) * _ONE)
