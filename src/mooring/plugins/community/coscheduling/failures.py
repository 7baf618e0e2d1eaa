"""What is remembered of groups that could not be placed: when they failed, and how long they back off.

Bounded: what belongs to groups that are gone is dropped.
"""

from __future__ import annotations

from collections.abc import Callable

from mooring.framework import Clock

FIRST_BACKOFF_SECONDS, LONGEST_BACKOFF_SECONDS = 1.0, 10.0
MOST_KEPT = 10_000


class ExpiringKeys:
    """Keys that are there for a while."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._until: dict[str, float] = {}

    def add(self, key: str, seconds: float) -> None:
        if len(self._until) >= MOST_KEPT:
            now = self._clock.monotonic()
            self._until = {each: until for each, until in self._until.items() if until > now}
        self._until[key] = self._clock.monotonic() + seconds

    def left(self, key: str) -> float:
        """For how many seconds it is still there; 0: it is not."""
        until = self._until.get(key)
        if until is None:
            return 0.0
        left = until - self._clock.monotonic()
        if left <= 0:
            del self._until[key]
            return 0.0
        return left

    def discard(self, key: str) -> None:
        self._until.pop(key, None)


class GroupFailures:
    """By group (namespace/name), since it was last placed."""

    def __init__(self, clock: Clock, exists: Callable[[str], bool]) -> None:
        self._clock, self._exists = clock, exists
        self._failed: dict[str, float] = {}
        self._rows: dict[str, int] = {}
        self._backoff = ExpiringKeys(clock)

    def failed_at(self, group: str) -> float | None:
        """When it failed last (seconds since the epoch)."""
        return self._failed.get(group)

    def note(self, group: str) -> None:
        """It failed now."""
        if len(self._failed) >= MOST_KEPT:
            self._failed = {each: at for each, at in self._failed.items() if self._exists(each)}
            self._rows = {each: count for each, count in self._rows.items() if each in self._failed}
        self._failed[group] = self._clock.now()

    def back_off(self, group: str, seconds: float) -> None:
        """Do not try it for so long."""
        self._backoff.add(group, seconds)

    def back_off_longer(self, group: str) -> None:
        """Do not try it for a while: longer after each failure in a row, as the queue does with pods."""
        if self._backoff.left(group):
            return  # the members of one attempt fail one after the other
        row = self._rows[group] = self._rows.get(group, 0) + 1
        self.back_off(group, min(LONGEST_BACKOFF_SECONDS, FIRST_BACKOFF_SECONDS * 2 ** min(row - 1, 10)))

    def seconds_left(self, group: str) -> float:
        """Of its backoff."""
        return self._backoff.left(group)

    def clear(self, group: str) -> None:
        """It was placed. A backoff lasts as long as it was to."""
        self._failed.pop(group, None)
        self._rows.pop(group, None)
