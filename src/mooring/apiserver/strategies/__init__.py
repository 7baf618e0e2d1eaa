"""Per kind: defaulting, admission and validation. `strategy_for` is the table that names them."""

from __future__ import annotations

from mooring.apiserver.strategies.base import Strategy, World
from mooring.apiserver.strategies.namespace import NamespaceStrategy

__all__ = ["Strategy", "World", "strategy_for"]

_GENERIC = Strategy()
_STRATEGIES: dict[str, Strategy] = {
    "namespaces": NamespaceStrategy(),
}


def strategy_for(storage: str) -> Strategy:
    """The strategy of a built-in storage key."""
    return _STRATEGIES.get(storage, _GENERIC)
