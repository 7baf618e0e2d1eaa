"""What the scheduler's own thread does for a recording: it puts what it saw and decided into a buffer.

Nothing is encoded, compressed or written here. The buffer is bounded: when the writer falls behind, decisions are
dropped and counted, and of each object only its last change is kept, so that the recorded state is right again after
the gap.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import IntEnum
from typing import Any, TypeAlias

import msgspec

from mooring.base.clock import Clock
from mooring.engine.evidence import EvidenceRecord
from mooring.framework import FeatureGates
from mooring.objects import Pod
from mooring.objects.meta import KubeObject
from mooring.objects.object_store import Present

MOST_ITEMS = 50_000
"""Of the buffer: some seconds of a busy cluster."""
WAKE_ITEMS = 1_000
"""So many wake the writer before its time."""


class What(IntEnum):
    SET, DELETED, LISTED, CONFIRMED, ASSUMED, FORGOTTEN, MOVED, NOMINATED, DECIDED, HELD, NOTED, CONFIGURED, GAP = (
        range(13)
    )


Item: TypeAlias = tuple[What, float, Any, Any] | list[Any]
"""What, when, subject, detail. That of a decision is a list: that its pod was assumed is added to it."""
EXTENDED, ASSUMED, LIMITED, WITHDRAWN = 1, 2, 4, 8
"""Details of a decision, added up."""


class Recorder:
    """Called by the scheduler. `take` is the writer's, on another thread."""

    def __init__(self, most_items: int = MOST_ITEMS) -> None:
        self.now: Callable[[], float] = time.time
        self._most = most_items
        self._items: deque[Item] = deque()
        self._late: dict[tuple[What, Any], Item] = {}
        """While the buffer is full: the last change of each object."""
        self._lock = threading.Lock()
        """Held while there are late items."""
        self._is_late = False
        self._dropped_now = 0
        self.dropped = 0
        """Decisions that are missing, in all."""
        self._gates: dict[str, bool] = {}
        self._tried: frozenset[str] = frozenset()
        """The uids of pods that are being tried."""
        self.is_on = True
        self.wake = threading.Event()

    def use(self, clock: Clock, gates: FeatureGates) -> None:
        """From now on, rows have the times of the scheduler's clock, and configurations its feature gates."""
        self.now = clock.now
        self._gates = gates.changed()

    # Changes

    def set(self, object: KubeObject) -> None:
        self._add((What.SET, self.now(), object, None))

    def confirmed(self, pod: Pod, labels: Mapping[str, str] | None) -> None:
        """The watch shows an assumed pod on its node; nothing else of it is new but status, and `labels` if given."""
        self._add((What.CONFIRMED, self.now(), pod, labels))

    def deleted(self, kind: type[KubeObject], key: str, uid: str = "") -> None:
        self._add((What.DELETED, self.now(), kind, (key, uid)))

    def listed(self, kind: type[KubeObject], present: Present) -> None:
        """A list is complete: what is not among it is gone."""
        self._add((What.LISTED, self.now(), kind, frozenset(present)))

    def assumed(self, uid: str, node: str) -> None:
        """Most pods are assumed right after their decision, which then has this too: no row of its own."""
        if uid in self._tried:
            return
        if not self._is_late:
            with contextlib.suppress(IndexError):
                last = self._items[-1]
                if last[0] is What.DECIDED and last[2].uid == uid and last[2].node == node:
                    last[3] |= ASSUMED  # type: ignore[index]
                    return
        self._add((What.ASSUMED, self.now(), uid, node))

    def forgotten(self, uid: str) -> None:
        if uid not in self._tried:
            self._add((What.FORGOTTEN, self.now(), uid, None))

    def moved(self, uid: str) -> None:
        """The state put a pod behind the others of its node."""
        self._add((What.MOVED, self.now(), uid, None))

    def nominated(self, uid: str, node: str) -> None:
        if uid not in self._tried:
            self._add((What.NOMINATED, self.now(), uid, node))

    @contextlib.contextmanager
    def trial(self, uids: Iterable[str]) -> Iterator[None]:
        """While inside, these pods are tried on nodes, and all of it is undone: no change of theirs is recorded."""
        self._tried = frozenset(uids)
        try:
            yield
        finally:
            self._tried = frozenset()

    def configured(self, configuration: dict[str, Any], profiles: Iterable[str], kinds: Iterable[str]) -> None:
        self._add((What.CONFIGURED, self.now(), configuration, (sorted(profiles), sorted(kinds), self._gates)))

    # Decisions

    def decided(self, evidence: EvidenceRecord, *, is_extended: bool = False) -> None:
        self._add([What.DECIDED, self.now(), evidence, EXTENDED * is_extended])

    def member_decided(self, evidence: EvidenceRecord, *, is_limited: bool, withdrawn: str = "") -> None:
        """About a member of a pod group; `is_limited`: only the nodes of a placement were candidates.

        With `withdrawn`, a message, it is not bound: the group does not fit.
        """
        details = LIMITED * is_limited
        if withdrawn and evidence.node is not None:
            evidence, details = msgspec.structs.replace(evidence, message=withdrawn), details + WITHDRAWN
        self._add([What.DECIDED, self.now(), evidence, details])

    def held(self, pod: str, uid: str, evidence: dict[str, Any]) -> None:
        self._add((What.HELD, self.now(), evidence, (pod, uid)))

    def noted(self, uid: str, notes: dict[str, Any]) -> None:
        self._add((What.NOTED, self.now(), uid, notes))

    # The buffer

    def _add(self, item: Item) -> None:
        items = self._items
        if self._is_late or len(items) >= self._most:
            self._add_late(item)
            return
        items.append(item)
        if len(items) == WAKE_ITEMS:
            self.wake.set()

    def _add_late(self, item: Item) -> None:
        if not self.is_on:
            return
        with self._lock:
            self._is_late = True
            what, _, subject, detail = item
            place: tuple[What, Any]
            match what:
                case What.DECIDED | What.HELD | What.NOTED:
                    self._dropped_now += what is not What.NOTED
                    return
                case What.SET:
                    place = (What.SET, (type(subject), subject.key))
                case What.DELETED:
                    place = (What.SET, (subject, detail[0]))
                case What.CONFIRMED:
                    place = (What.CONFIRMED, subject.uid)
                case What.FORGOTTEN:
                    place = (What.ASSUMED, subject)
                case What.CONFIGURED:
                    place = (What.CONFIGURED, None)
                case _:
                    place = (what, subject)
            self._late.pop(place, None)
            self._late[place] = item

    def take(self, most: int, *, is_last: bool = False) -> list[Item]:
        """Up to so many items, in order. The late ones come at once, behind a gap, when the buffer is empty.

        A decision for a node stays until it is known whether its pod is assumed: until it is, until the next item, or
        until the last call.
        """
        taken: list[Item] = []
        items = self._items
        while len(items) > 1 and len(taken) < most:
            taken.append(items.popleft())
        if len(items) == 1 and len(taken) < most and (is_last or self._is_late or not _is_open(items[0])):
            taken.append(items.popleft())
        if not items and self._is_late:
            with self._lock:
                late = list(self._late.values())
                self._late.clear()
                missing, self._dropped_now = self._dropped_now, 0
                self.dropped += missing
                taken.append((What.GAP, self.now(), missing, None))
                taken += late
                self._is_late = False
        return taken

    def stop(self) -> None:
        """Nothing is recorded any more."""
        self.is_on = False
        self._most = 0
        self._items.clear()
        with self._lock:
            self._late.clear()


def _is_open(item: Item) -> bool:
    """Whether an item may still change: that its pod is assumed follows a decision at once, unless it fails."""
    return item[0] is What.DECIDED and item[2].node is not None and not item[3] & ASSUMED
