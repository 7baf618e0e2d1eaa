"""Groups of which some members are bound and too few: a crash between their bindings leaves such.

The remaining members are placed beside them if they fit. If they do not, the bound ones hold their nodes for nothing:
after the group's time to wait they are evicted, so that their owner makes new ones and the group is tried as a whole.
A group that was complete once is left alone: its owner decides what the loss of a member means.
"""

from __future__ import annotations

from collections.abc import Sequence

from mooring.framework import Clock, PlacedPod, Plan, PostFilterRefusal
from mooring.plugins.community.coscheduling.pod_groups import CoschedulingGroup

RAN = ("Running", "Finished", "Failed")
MOST_KEPT = 10_000
RECENT_SECONDS = 600.0
"""Members that run for longer, when their group is first seen in part, are not those of a crash between bindings."""


class PartialGroups:
    """Since when groups are known to be partial, and which were complete."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._since: dict[str, float] = {}
        """By uid of the group."""
        self._were_complete: dict[str, None] = {}

    def complete(self, group: CoschedulingGroup) -> None:
        """All of its members may be bound now."""
        self._since.pop(group.uid, None)
        if len(self._were_complete) >= MOST_KEPT:
            del self._were_complete[next(iter(self._were_complete))]
        self._were_complete[group.uid] = None

    def plan(
        self, group: CoschedulingGroup, assigned: Sequence[PlacedPod], seconds: float
    ) -> Plan | PostFilterRefusal | None:
        """A member fits nowhere: evict those that are bound, or try again when their time is up. None: none is."""
        bound = tuple(pod for pod in assigned if pod.assumed_at is None)
        if not bound or self._has_run(group, bound):
            return None
        if len(self._since) >= MOST_KEPT:
            del self._since[next(iter(self._since))]
        now = self._clock.monotonic()
        left = self._since.setdefault(group.uid, now) + seconds - now
        if left > 0:
            return PostFilterRefusal(
                f"PodGroup {group.key} is partly bound ({len(bound)} of {group.spec.min_member})", retry_after=left
            )
        del self._since[group.uid]
        return Plan(evict=bound, message=f"PodGroup {group.key} is released: {len(bound)} members alone are bound")

    def _has_run(self, group: CoschedulingGroup, bound: Sequence[PlacedPod]) -> bool:
        status = group.status
        if group.uid in self._were_complete or status.phase in RAN or status.succeeded > 0 or status.failed > 0:
            return True
        if group.uid in self._since:
            return False
        before = self._clock.now() - RECENT_SECONDS
        return any(pod.started is not None and pod.started < before for pod in bound)
