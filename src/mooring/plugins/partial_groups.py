"""Groups of which some members are bound and too few: a crash between their bindings leaves such.

The remaining members are placed beside them if they fit. If they do not, the bound ones hold their nodes for nothing:
after a time-out they are evicted, so that their owner creates new ones and the group is tried as a whole. A group that
was complete once is left alone: its owner decides what the loss of a member means.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from mooring.base.clock import parse_timestamp
from mooring.framework import Clock, PlacedPod, Pod

NONE: frozenset[str] = frozenset()
MOST_KEPT = 10_000
RECENT_SECONDS = 600.0
"""Members that run for longer, when their group is first seen in part, are not those of a crash between bindings."""
SKEW_SECONDS = 60.0
"""Members that start later than that in the future show a clock that their ages cannot be measured by."""
EVICTED_AGAIN_SECONDS = 30.0
"""So long after an eviction, members that it has failed for are evicted again."""
MOST_DOUBLINGS = 8


class _Seen(NamedTuple):
    """A group that was seen in part."""

    members: frozenset[str]
    """The uids of those that were bound then. Once none of them is any more, the group is judged again."""
    until: float | None
    """When they are evicted. None: never; the group was complete before, as its members show."""
    is_evicted: bool = False


class PartialGroups:
    """Which groups are partial, since when, and which were complete. Groups are known by their uid."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._seen: dict[str, _Seen] = {}
        self._evictions: dict[str, int] = {}
        """How often a group was evicted. Each doubles its time-out: where another client keeps binding its pods in
        part, evictions become rare."""
        self._were_complete: dict[str, None] = {}

    def complete(self, uid: str) -> None:
        """All members that the group needs may be bound now."""
        self._seen.pop(uid, None)
        self._evictions.pop(uid, None)
        if uid not in self._were_complete:
            _make_room(self._were_complete)
            self._were_complete[uid] = None

    def seconds_left(
        self,
        uid: str,
        least: int,
        bound: Sequence[PlacedPod],
        pending: Callable[[], Sequence[Pod]],
        timeout_seconds: float,
    ) -> float | None:
        """The group needs `least` members, and the pending ones do not fit: for how long the bound ones stay.

        None: for as long as they run.
        """
        if not bound or len(bound) >= least or uid in self._were_complete:
            return None
        seen = self._seen.get(uid)
        if seen is None or not any(pod.uid in seen.members for pod in bound):
            _make_room(self._seen)
            until = None
            if not self._run_for_long(bound) and not _are_replacements(pending(), bound, least):
                doublings = min(self._evictions.get(uid, 0), MOST_DOUBLINGS)
                until = self._clock.monotonic() + timeout_seconds * 2**doublings
            self._seen[uid] = _Seen(frozenset(pod.uid for pod in bound), until)
        return self.seconds_known(uid)

    def note_eviction(self, uid: str) -> None:
        """The bound ones are being evicted. Those that stay all the same are evicted again, but not at once."""
        if (seen := self._seen.get(uid)) is None:
            return
        if not seen.is_evicted:
            _make_room(self._evictions)
            self._evictions[uid] = self._evictions.get(uid, 0) + 1
        self._seen[uid] = _Seen(seen.members, self._clock.monotonic() + EVICTED_AGAIN_SECONDS, is_evicted=True)

    def evicted(self, uid: str) -> frozenset[str]:
        """The members, by uid, that were evicted last. They count for nothing while they end."""
        seen = self._seen.get(uid)
        return seen.members if seen is not None and seen.is_evicted else NONE

    def seconds_known(self, uid: str) -> float | None:
        """The last result of `seconds_left`, as of now. None also for a group that has not been judged."""
        seen = self._seen.get(uid)
        return None if seen is None or seen.until is None else max(0.0, seen.until - self._clock.monotonic())

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
