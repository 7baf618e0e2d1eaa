"""How far a sweep is."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import msgspec

SHOWN_SECONDS = 5.0


class SweepProgress(msgspec.Struct, frozen=True):
    """After each run that finished."""

    total: int
    restored: int
    """Runs that an earlier call had finished."""
    done: int
    """Runs that this call has finished, failed ones included."""
    failed: int
    seconds: float
    """Since this call began."""

    @property
    def rate(self) -> float:
        """Runs a second."""
        return self.done / self.seconds if self.seconds else 0.0

    @property
    def remaining_seconds(self) -> float | None:
        """None: no run has finished yet."""
        left = self.total - self.restored - self.done
        return left / self.rate if self.rate else None

    def __str__(self) -> str:
        text = f"{self.restored + self.done:,} of {self.total:,} runs"
        if self.failed:
            text += f" ({self.failed:,} failed)"
        if self.remaining_seconds is not None:
            rate = f"{self.rate:,.1f} runs/s" if self.rate >= 1 else f"{1 / self.rate:,.1f} s a run"
            text += f", {rate}, about {_duration(self.remaining_seconds)} left"
        return text


OnProgress = Callable[[SweepProgress], None]


class ProgressLines:
    """A line on standard error every five seconds; a short sweep prints none."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._shown = now()

    def __call__(self, progress: SweepProgress) -> None:
        if self._now() >= self._shown + SHOWN_SECONDS:
            self._shown = self._now()
            print(f"sweep: {progress}", file=sys.stderr, flush=True)


def _duration(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"
