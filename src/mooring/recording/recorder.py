"""What the scheduler's own thread does for a recording: it puts what it saw and decided into a buffer.

Nothing is encoded, compressed or written here. The buffer is bounded: when the writer falls behind, decisions are
dropped and counted, and of each object only its last change is kept, so that the recorded state is right again after
the gap.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from enum import IntEnum
from typing import Any, TypeAlias

from mooring.base.clock import Clock
from mooring.engine.evidence import EvidenceRecord
from mooring.objects.meta import KubeObject
from mooring.objects.object_store import Present

MOST_ITEMS = 50_000
"""Of the buffer: some seconds of a busy cluster."""
WAKE_ITEMS = 1_000
"""So many wake the writer before its time."""


class What(IntEnum):
    SET, DELETED, LISTED, ASSUMED, FORGOTTEN, NOMINATED, DECIDED, HELD, NOTED, CONFIGURED, GAP = range(11)


Item: TypeAlias = tuple[What, float, Any, Any]


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
        self.is_on = True
        self.wake = threading.Event()

    def use_clock(self, clock: Clock) -> None:
        """From now on, rows have the times of the scheduler's clock."""
        self.now = clock.now

    # Changes

    def set(self, object: KubeObject) -> None:
        self._add((What.SET, self.now(), object, None))

    def deleted(self, kind: type[KubeObject], key: str, uid: str = "") -> None:
        self._add((What.DELETED, self.now(), kind, (key, uid)))

    def listed(self, kind: type[KubeObject], present: Present) -> None:
        """A list is complete: what is not among it is gone."""
        self._add((What.LISTED, self.now(), kind, frozenset(present)))

    def assumed(self, uid: str, node: str) -> None:
        self._add((What.ASSUMED, self.now(), uid, node))

    def forgotten(self, uid: str) -> None:
        self._add((What.FORGOTTEN, self.now(), uid, None))

    def nominated(self, uid: str, node: str) -> None:
        self._add((What.NOMINATED, self.now(), uid, node))

    def configured(self, configuration: dict[str, Any], profiles: Iterable[str], kinds: Iterable[str]) -> None:
        self._add((What.CONFIGURED, self.now(), configuration, (sorted(profiles), sorted(kinds))))

    # Decisions

    def decided(self, evidence: EvidenceRecord, is_extended: bool = False) -> None:
        self._add((What.DECIDED, self.now(), evidence, is_extended))

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
                case What.FORGOTTEN:
                    place = (What.ASSUMED, subject)
                case What.CONFIGURED:
                    place = (What.CONFIGURED, None)
                case _:
                    place = (what, subject)
            self._late.pop(place, None)
            self._late[place] = item

    def take(self, most: int) -> list[Item]:
        """Up to so many items, in order. The late ones come at once, behind a gap, when the buffer is empty."""
        taken: list[Item] = []
        items = self._items
        while items and len(taken) < most:
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
