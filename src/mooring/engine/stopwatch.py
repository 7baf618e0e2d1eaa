"""When plugins ran. A decision has no clock of its own; a caller that wants times passes a stopwatch.

It only records moments. What they mean is computed afterwards, and only where it is needed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from mooring.engine.extension_point import ExtensionPoint

Turn = tuple[str, float]
"""A plugin, and when its call began. A plain tuple: a decision makes dozens of them."""


class Run(NamedTuple):
    """Plugins that ran at one extension point, one after the other; at least one."""

    point: ExtensionPoint
    turns: list[Turn]
    ended: float

    @property
    def began(self) -> float:
        return self.turns[0][1]


class Stopwatch:
    """The moments of one attempt."""

    __slots__ = ("began", "is_sampled", "now", "runs", "seen")

    def __init__(self, now: Callable[[], float], *, is_sampled: bool = False) -> None:
        self.now = now
        self.is_sampled = is_sampled
        """Whether the time of every plugin is reported, not only that of every point."""
        self.runs: list[Run] = []
        self.seen = 0
        """How many of the runs have been read."""
        self.began = now()

    def restart(self) -> None:
        """All runs have been read: record the next part of the attempt."""
        self.runs.clear()
        self.seen = 0
        self.began = self.now()
