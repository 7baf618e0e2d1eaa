"""What is remembered of groups that could not be placed: when they failed, and how long they back off.

Bounded: what belongs to groups that are gone is dropped.
"""

from __future__ import annotations

from collections.abc import Callable

from mooring.framework import Clock
from mooring.plugins.community.coscheduling.pod_groups import CoschedulingGroup

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
    """By group (namespace/name), since it was last placed.

    `outlasts_edits`: a group backs off to the end even if its spec is changed meanwhile.
    """

    def __init__(self, clock: Clock, exists: Callable[[str], bool], *, outlasts_edits: bool) -> None:
        self._clock, self._exists, self._outlasts_edits = clock, exists, outlasts_edits
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

    def back_off(self, group: CoschedulingGroup, seconds: float) -> None:
        """Do not try it for so long."""
        self._backoff.add(self._backoff_key(group), seconds)

    def end_backoff(self, group: CoschedulingGroup) -> None:
        self._backoff.discard(self._backoff_key(group))

    def back_off_longer(self, group: CoschedulingGroup) -> None:
        """Do not try it for a while: longer after each failure in a row, as the queue does with pods."""
        if self.seconds_left(group):
            return  # the members of one attempt fail one after the other
        row = self._rows[group.key] = self._rows.get(group.key, 0) + 1
        self.back_off(group, min(LONGEST_BACKOFF_SECONDS, FIRST_BACKOFF_SECONDS * 2 ** min(row - 1, 10)))

    def seconds_left(self, group: CoschedulingGroup) -> float:
        """Of its backoff."""
        return self._backoff.left(self._backoff_key(group))

    def _backoff_key(self, group: CoschedulingGroup) -> str:
        """With the generation: a group whose spec was changed is another one, which has not failed yet."""
        return group.key if self._outlasts_edits else f"{group.key}@{group.metadata.generation}"

    def clear(self, group: str) -> None:
        """It was placed. A backoff lasts as long as it was to."""
        self._failed.pop(group, None)
        self._rows.pop(group, None)
