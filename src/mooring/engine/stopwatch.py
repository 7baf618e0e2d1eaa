"""When plugins ran. A decision has no clock of its own; a caller that wants times passes a stopwatch.

It only records moments. What they mean is computed afterwards, and only where it is needed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from operator import sub
from typing import NamedTuple

from mooring.engine.extension_point import ExtensionPoint


class Run(NamedTuple):
    """Plugins that ran at one extension point, one after the other."""

    point: ExtensionPoint
    plugins: list[str]
    """Those that were called, and those whose results were cached."""
    moments: list[float]
    """When each of them began; empty where only points are timed."""
    began: float
    ended: float

    def seconds_by_plugin(self) -> Iterator[tuple[str, float]]:
        """How long each took: until the next one began. Nothing where only points are timed."""
        return zip(self.plugins, map(sub, [*self.moments[1:], self.ended], self.moments), strict=False)


class Stopwatch:
    """The moments of one attempt."""

    __slots__ = ("began", "is_sampled", "now", "runs", "seen", "times_plugins")

    def __init__(self, now: Callable[[], float], *, is_sampled: bool = False, times_plugins: bool = True) -> None:
        self.now = now
        self.times_plugins = times_plugins
        """Whether it records when every plugin began, not only every point: dozens of moments for each decision."""
        self.is_sampled = is_sampled
        """Whether the time of every plugin is reported."""
        self.runs: list[Run] = []
        self.seen = 0
        """How many of the runs have been read."""
        self.began = now()

    def restart(self) -> None:
        """All runs have been read: record the next part of the attempt."""
        self.runs.clear()
        self.seen = 0
        self.began = self.now()
