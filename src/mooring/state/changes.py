"""Change logs: which rows changed since a generation, for caches of values per row."""

from __future__ import annotations

from collections.abc import Sequence


class ChangeLog:
    """The rows that changed, in order; a generation is a place in it."""

    __slots__ = ("_dropped", "_keep", "_rows", "generation", "paused")

    def __init__(self, keep: int = 65_536) -> None:
        self._rows: list[int] = []
        self._dropped = 0
        self._keep = keep
        self.generation = 0
        self.paused = False
        """A what-if is undone exactly, so no cache needs to see it."""

    def record(self, row: int) -> None:
        if self.paused:
            return
        self._rows.append(row)
        self.generation += 1
        if len(self._rows) > self._keep:
            half = len(self._rows) // 2
            del self._rows[:half]
            self._dropped += half

    def since(self, generation: int) -> Sequence[int] | None:
        """The rows that changed after this generation, each once. None: too long ago; read all of them."""
        if generation < self._dropped:
            return None
        return list(dict.fromkeys(self._rows[generation - self._dropped :]))
