"""Who was asked when. A decision has no clock of its own: whoever wants to know hands it a stopwatch.

Without one nothing is measured. With one, moments are written down and nothing else; what they mean is worked out
afterwards, and only where somebody asks.
"""

from __future__ import annotations

from collections.abc import Callable

Run = tuple[str, list[tuple[str, float]], float]
"""Plugins asked at a point, one after the other: the words that ask, each plugin with the moment its turn came, and the
moment when the last turn ended. There is at least one."""


class Stopwatch:
    """The moments of one attempt."""

    __slots__ = ("began", "is_sampled", "now", "runs", "seen")

    def __init__(self, now: Callable[[], float], *, is_sampled: bool = False) -> None:
        self.now = now
        self.is_sampled = is_sampled
        """Whether every plugin's time is to be told, not only every point's."""
        self.runs: list[Run] = []
        self.seen = 0
        """How many of the runs have been read."""
        self.began = now()

    def restart(self) -> None:
        """All has been read; what comes now is another story."""
        self.runs.clear()
        self.seen = 0
        self.began = self.now()
