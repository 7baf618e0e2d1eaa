"""The last decision about each pod, as plain data: what `mooring explain` shows.

Bounded in number and in bytes: the pods that were decided longest ago are forgotten first. A decision is kept as JSON,
because one that names a reason for every node has thousands of small parts.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Any

import msgspec

from mooring.base.clock import Clock, timestamp
from mooring.objects.core import Pod

REMEMBERED = 10_000
REMEMBERED_BYTES = 32 * 1024 * 1024


@dataclass(slots=True)
class _Entry:
    uid: str
    evidence: bytes
    notes: dict[str, Any] = field(default_factory=dict)


def _plain(value: object) -> object:
    """A number of NumPy's, from a plugin's score; anything else as its text."""
    return value.item() if hasattr(value, "item") else str(value)


_encode = msgspec.json.Encoder(enc_hook=_plain).encode


class DecisionLog:
    """Pod key → its last decision's evidence."""

    def __init__(self, clock: Clock, remembered: int = REMEMBERED, remembered_bytes: int = REMEMBERED_BYTES) -> None:
        self._clock = clock
        self._remembered = remembered
        self._remembered_bytes = remembered_bytes
        self._bytes = 0
        self._entries: OrderedDict[str, _Entry] = OrderedDict()

    def write(self, pod: Pod, evidence: dict[str, Any]) -> None:
        """Keep this as the pod's last decision."""
        self._drop(self._entries.pop(pod.key, None))
        entry = _Entry(pod.uid, _encode({"uid": pod.uid, "time": timestamp(self._clock.now()), **evidence}))
        self._entries[pod.key] = entry
        self._bytes += len(entry.evidence)
        while len(self._entries) > self._remembered or (
            self._bytes > self._remembered_bytes and len(self._entries) > 1
        ):
            self._drop(self._entries.popitem(last=False)[1])

    def note(self, pod: Pod, **more: Any) -> None:
        """Add what became known after the decision (bound, or why not)."""
        entry = self._entries.get(pod.key)
        if entry is not None and entry.uid == pod.uid:
            entry.notes.update(more)

    def read(self, key: str) -> dict[str, Any] | None:
        """What is known, as a copy of the reader's own."""
        entry = self._entries.get(key)
        if entry is None:
            return None
        evidence: dict[str, Any] = msgspec.json.decode(entry.evidence)
        return evidence | entry.notes

    def _drop(self, entry: _Entry | None) -> None:
        if entry is not None:
            self._bytes -= len(entry.evidence)
