"""Groups of which some members are bound and too few: a crash between their bindings leaves such.

The remaining members are placed beside them if they fit. If they do not, the bound ones hold their nodes for nothing:
after a time-out they are evicted, so that their owner creates new ones and the group is tried as a whole. A group that
was complete once is left alone: its owner decides what the loss of a member means.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from mooring.base.clock import parse_timestamp
from mooring.framework import Clock, PlacedPod, Pod

MOST_KEPT = 10_000
RECENT_SECONDS = 600.0
"""Members that run for longer, when their group is first seen in part, are not those of a crash between bindings."""
SKEW_SECONDS = 60.0
"""Members that start later than that in the future show a clock that their ages cannot be measured by."""
EVICTED_AGAIN_SECONDS = 30.0
"""So long after an eviction, members that it has failed for are evicted again."""


class _Seen(NamedTuple):
    """A group that was seen in part."""

    members: frozenset[str]
    """The uids of those that were bound then. Once none of them is any more, the group is judged again."""
    since: float | None
    """None: it was complete before, as its members show."""


class PartialGroups:
    """Which groups are partial, since when, and which were complete. Groups are known by their uid."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._seen: dict[str, _Seen] = {}
        self._were_complete: dict[str, None] = {}

    def complete(self, uid: str) -> None:
        """All members that the group needs may be bound now."""
        self._seen.pop(uid, None)
        if uid not in self._were_complete:
            _make_room(self._were_complete)
            self._were_complete[uid] = None

    def seconds_left(
        self, uid: str, least: int, bound: Sequence[PlacedPod], pending: Sequence[Pod], timeout_seconds: float
    ) -> float | None:
        """The group needs `least` members, and the pending ones do not fit: for how long the bound ones stay.

        None: for as long as they run.
        """
        if not bound or len(bound) >= least or uid in self._were_complete:
            return None
        seen = self._seen.get(uid)
        if seen is None or not any(pod.uid in seen.members for pod in bound):
            _make_room(self._seen)
            was_complete = self._run_for_long(bound) or _are_replacements(pending, bound, least)
            seen = _Seen(frozenset(pod.uid for pod in bound), None if was_complete else self._clock.monotonic())
            self._seen[uid] = seen
        return self.seconds_known(uid, timeout_seconds)

    def note_eviction(self, uid: str, timeout_seconds: float) -> None:
        """The bound ones are being evicted. Those that stay all the same are evicted again, but not at once."""
        if (seen := self._seen.get(uid)) is not None:
            since = self._clock.monotonic() - timeout_seconds + EVICTED_AGAIN_SECONDS
            self._seen[uid] = seen._replace(since=since)

    def seconds_known(self, uid: str, timeout_seconds: float) -> float | None:
        """The last result of `seconds_left`, as of now. None also for a group that has not been judged."""
        seen = self._seen.get(uid)
        if seen is None or seen.since is None:
            return None
        return max(0.0, seen.since + timeout_seconds - self._clock.monotonic())

    def _run_for_long(self, bound: Sequence[PlacedPod]) -> bool:
        """Whether one has, or may have: in a simulation, pods of a snapshot start after the clock does."""
        now = self._clock.now()
        return any(
            pod.started is not None and not now - RECENT_SECONDS <= pod.started <= now + SKEW_SECONDS for pod in bound
        )


def members_bound(scheduled: Sequence[PlacedPod]) -> tuple[PlacedPod, ...]:
    """Those of the members on nodes that are bound there and not being deleted."""
    return tuple(pod for pod in scheduled if pod.is_bound and not pod.is_terminating)


def why_evicted(group: str, bound: int, least: int) -> str:
    """What the condition and the event of an evicted member report."""
    return f"pod group {group} cannot be completed: {bound} of {least} pods bound"


def time_left(bound: int, least: int, seconds: float) -> str:
    """What `explain` shows of a partial group."""
    return f"{bound} of {least} pods bound; evicted in {seconds:.0f} s unless the others fit by then"


def _are_replacements(pending: Sequence[Pod], bound: Sequence[PlacedPod], least: int) -> bool:
    """Whether pending members replace others that were bound.

    All members that a group needs exist before the first one is bound. Where too few of today's are as old as that,
    others existed then. A pod without a time of creation is one that a simulation makes: for a pod that is drained.
    """
    started = min((pod.started for pod in bound if pod.started is not None), default=None)
    if started is None:
        return False
    created = (at for pod in pending if (at := pod.metadata.creation_timestamp))
    return len(bound) + sum(parse_timestamp(at) <= started for at in created) < least


def _make_room(kept: dict[str, Any]) -> None:
    if len(kept) >= MOST_KEPT:
        del kept[next(iter(kept))]
