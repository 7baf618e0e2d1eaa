"""The last decision about each pod, as plain data, and in short those before it: what `mooring explain` shows.

Bounded in number and in bytes: the pods that were decided longest ago are forgotten first. A decision is kept as bytes,
because one that names a reason for every node has thousands of small parts; it is spelled out when it is read.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import msgspec

from mooring.base.clock import Clock, timestamp
from mooring.engine.evidence import EvidenceRecord
from mooring.objects.core import Pod
from mooring.recording import Recorder

REMEMBERED = 10_000
REMEMBERED_BYTES = 32 * 1024 * 1024
EARLIER = 10
"""How many earlier attempts of a pod are known; those in a row that ended alike count as one."""
EVENTS = 5
"""How many labels of events are kept of them."""
EARLIER_BYTES = 400
"""About what one takes in memory, besides its message."""


class _Earlier(msgspec.Struct, gc=False):
    """Attempts in a row that ended alike."""

    first_time: float
    last_time: float
    attempts: int
    outcome: str
    started_by: dict[str, int]
    """Event label → how many of them it started."""

    def document(self) -> dict[str, Any]:
        found: dict[str, Any] = {
            "time": timestamp(self.first_time),
            "lastTime": timestamp(self.last_time),
            "attempts": self.attempts,
            "message": self.outcome,
        }
        return found | ({"startedBy": self.started_by} if self.started_by else {})

    def count(self, event: str) -> None:
        if event and (event in self.started_by or len(self.started_by) < EVENTS):
            self.started_by[event] = self.started_by.get(event, 0) + 1


class _Entry(msgspec.Struct, gc=False):
    uid: str
    time: float
    evidence: bytes
    outcome: str
    """Of this attempt: the message, or the node."""
    started_by: str = ""
    """The label of the event that requeued the pod for it."""
    notes: dict[str, Any] | None = None
    earlier: list[_Earlier] | None = None
    """None for a pod that was decided once: most are."""
    earlier_bytes: int = 0


def _plain(value: object) -> object:
    """A number of NumPy's, from a plugin's score; anything else as its text."""
    return value.item() if hasattr(value, "item") else str(value)


_encode = msgspec.msgpack.Encoder(enc_hook=_plain).encode
_decode = msgspec.msgpack.Decoder(EvidenceRecord | dict[str, Any]).decode


class DecisionLog:
    """Pod key → its last decision's evidence."""

    def __init__(
        self,
        clock: Clock,
        remembered: int = REMEMBERED,
        remembered_bytes: int = REMEMBERED_BYTES,
        recorder: Recorder | None = None,
        started_by: Callable[[str], str] = lambda _uid: "",
    ) -> None:
        """`started_by` returns what requeued a pod for its attempt under way."""
        self._clock = clock
        self._started_by = started_by
        self._recorder = recorder
        self._remembered = remembered
        self._remembered_bytes = remembered_bytes
        self._bytes = 0
        self._entries: OrderedDict[str, _Entry] = OrderedDict()

    def write(self, pod: Pod, evidence: EvidenceRecord | dict[str, Any]) -> None:
        """Keep this as the pod's last decision."""
        entries, key, encoded = self._entries, pod.key, _encode(evidence)
        if self._recorder is not None and isinstance(evidence, dict):
            self._recorder.held(key, pod.uid, evidence)
        before = entries.pop(key, None)
        entries[key] = entry = _Entry(
            pod.uid, self._clock.now(), encoded, _outcome(evidence), self._started_by(pod.uid)
        )
        if before is not None:
            self._bytes -= len(before.evidence) + before.earlier_bytes
            if before.uid == pod.uid:
                _inherit(entry, before)
        self._bytes += len(encoded) + entry.earlier_bytes
        while len(entries) > self._remembered or (self._bytes > self._remembered_bytes and len(entries) > 1):
            dropped = entries.popitem(last=False)[1]
            self._bytes -= len(dropped.evidence) + dropped.earlier_bytes

    def note(self, pod: Pod, **more: Any) -> None:
        """Add what became known after the decision (bound, or why not)."""
        if self._recorder is not None and not more.get("bound"):  # that, the watch shows
            self._recorder.noted(pod.uid, more)
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
        found = {"uid": entry.uid, "time": timestamp(entry.time), **evidence, **(entry.notes or {})}
        if entry.started_by:
            found["startedBy"] = entry.started_by
        if entry.earlier:
            found["earlier"] = [each.document() for each in entry.earlier]
        return found


def _outcome(evidence: EvidenceRecord | dict[str, Any]) -> str:
    if isinstance(evidence, EvidenceRecord):
        return evidence.node or evidence.message
    return str(evidence.get("node") or evidence.get("message") or "")


def _inherit(entry: _Entry, before: _Entry) -> None:
    """The attempts of the entry that is replaced, its own last."""
    earlier = before.earlier or []
    outcome = before.outcome if before.notes is None else str(before.notes.get("error") or before.outcome)
    entry.earlier, entry.earlier_bytes = earlier, before.earlier_bytes
    if earlier and earlier[-1].outcome == outcome:
        earlier[-1].last_time = before.time
        earlier[-1].attempts += 1
        earlier[-1].count(before.started_by)
        return
    earlier.append(_Earlier(before.time, before.time, 1, outcome, {}))
    earlier[-1].count(before.started_by)
    del earlier[:-EARLIER]
    entry.earlier_bytes = sum(EARLIER_BYTES + len(each.outcome) for each in earlier)
