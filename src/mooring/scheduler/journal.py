"""The last decision about each pod, as plain data: what `mooring explain` shows.

Bounded: the pods that were decided longest ago are forgotten first.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from mooring.base.clock import Clock, timestamp
from mooring.objects.core import Pod

REMEMBERED = 10_000


class Journal:
    """Pod key → its last decision's evidence."""

    def __init__(self, clock: Clock, remembered: int = REMEMBERED) -> None:
        self._clock = clock
        self._remembered = remembered
        self._entries: OrderedDict[str, dict[str, Any]] = OrderedDict()

    def write(self, pod: Pod, evidence: dict[str, Any]) -> None:
        """Keep this as the pod's last decision."""
        self._entries.pop(pod.key, None)
        self._entries[pod.key] = {"uid": pod.uid, "time": timestamp(self._clock.now()), **evidence}
        if len(self._entries) > self._remembered:
            self._entries.popitem(last=False)

    def note(self, pod: Pod, **more: Any) -> None:
        """Add what became known after the decision (bound, or why not)."""
        entry = self._entries.get(pod.key)
        if entry is not None and entry["uid"] == pod.uid:
            entry.update(more)

    def read(self, key: str) -> dict[str, Any] | None:
        return self._entries.get(key)
