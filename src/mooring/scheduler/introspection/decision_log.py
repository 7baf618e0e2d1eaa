"""The last decision about each pod, as plain data: what `mooring explain` shows.

Bounded in number and in bytes: the pods that were decided longest ago are forgotten first. A decision is kept as bytes,
because one that names a reason for every node has thousands of small parts; it is spelled out when it is read.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import msgspec

from mooring.base.clock import Clock, timestamp
from mooring.engine.evidence import EvidenceRecord
from mooring.objects.core import Pod

REMEMBERED = 10_000
REMEMBERED_BYTES = 32 * 1024 * 1024


class _Entry(msgspec.Struct, gc=False):
    uid: str
    time: float
    evidence: bytes
    notes: dict[str, Any] | None = None


def _plain(value: object) -> object:
    """A number of NumPy's, from a plugin's score; anything else as its text."""
    return value.item() if hasattr(value, "item") else str(value)


_encode = msgspec.msgpack.Encoder(enc_hook=_plain).encode
_decode = msgspec.msgpack.Decoder(EvidenceRecord | dict[str, Any]).decode


class DecisionLog:
    """Pod key → its last decision's evidence."""

    def __init__(self, clock: Clock, remembered: int = REMEMBERED, remembered_bytes: int = REMEMBERED_BYTES) -> None:
        self._clock = clock
        self._remembered = remembered
        self._remembered_bytes = remembered_bytes
        self._bytes = 0
        self._entries: OrderedDict[str, _Entry] = OrderedDict()

    def write(self, pod: Pod, evidence: EvidenceRecord | dict[str, Any]) -> None:
        """Keep this as the pod's last decision."""
        entries, key, encoded = self._entries, pod.key, _encode(evidence)
        self._drop(entries.pop(key, None))
        entries[key] = _Entry(pod.uid, self._clock.now(), encoded)
        self._bytes += len(encoded)
        while len(entries) > self._remembered or (self._bytes > self._remembered_bytes and len(entries) > 1):
            self._drop(entries.popitem(last=False)[1])

    def note(self, pod: Pod, **more: Any) -> None:
        """Add what became known after the decision (bound, or why not)."""
        entry = self._entries.get(pod.key)
        if entry is not None and entry.uid == pod.uid:
            entry.notes = more if entry.notes is None else entry.notes | more

    def read(self, key: str) -> dict[str, Any] | None:
        """What is known, as a copy of the reader's own."""
        entry = self._entries.get(key)
        if entry is None:
            return None
        kept = _decode(entry.evidence)
        evidence = kept.document() if isinstance(kept, EvidenceRecord) else kept
        return {"uid": entry.uid, "time": timestamp(entry.time), **evidence, **(entry.notes or {})}

    def _drop(self, entry: _Entry | None) -> None:
        if entry is not None:
            self._bytes -= len(entry.evidence)
