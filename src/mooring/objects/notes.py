"""Notes: what was read of an object, kept beside it by its reader. The key is the reader's own."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any


class Notes:
    """Of one object, as long as it lives."""

    __slots__ = ("_kept",)

    def __init__(self) -> None:
        self._kept: dict[Hashable, Any] = {}

    def get(self, key: Hashable) -> Any:
        """None where nothing was kept under the key."""
        return self._kept.get(key)

    def keep(self, key: Hashable, value: Any) -> None:
        self._kept[key] = value
