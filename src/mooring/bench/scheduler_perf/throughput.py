"""Scheduling throughput as upstream measures it: pods scheduled in each second, and percentiles of these samples.

The first second with a scheduled pod is left out. A second without one is no sample of its own: the next sample counts
for it too, so that percentiles stay those of seconds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

SAMPLE_SECONDS = 1.0
PERCENTILES = (50, 90, 95, 99)


@dataclass
class ThroughputSamples:
    """Samples that are taken at an interval."""

    rates: list[float] = field(default_factory=list)
    """Pods a second."""
    _counted: int = 0
    _since: float | None = None
    """None until the first scheduled pod."""
    _skipped: int = 0

    def take(self, now: float, scheduled: int) -> None:
        """At this time so many pods have been scheduled since the collection began."""
        if scheduled == 0:
            return
        if self._since is None:
            self._counted, self._since = scheduled, now
            return
        added = scheduled - self._counted
        if added == 0:
            self._skipped += 1
            return
        self.rates += [added / (now - self._since)] * (self._skipped + 1)
        self._counted, self._since, self._skipped = scheduled, now, 0

    def summary(self) -> dict[str, float]:
        """Average and percentiles; nothing where scheduling took less than two samples."""
        if not self.rates:
            return {}
        return {"Average": sum(self.rates) / len(self.rates)} | percentiles(self.rates)


def percentiles(values: Sequence[float]) -> dict[str, float]:
    """By nearest rank."""
    ranked = sorted(values)
    return {f"Perc{each}": ranked[math.ceil(len(ranked) * each / 100) - 1] for each in PERCENTILES}
