"""Pods in a line: a heap from which members may also leave in the middle.

Who leaves is only crossed out and skipped when it comes to the head. A line is ordered by window (the backoff's; one
for all where there is no backoff), then by turn, which comes from a plugin. Turns that cannot be compared with each
other make the line fall back to the order of arrival; it loses nobody.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Iterator
from typing import Any

from mooring.base.log import Log
from mooring.queue.waiting import Waiting

Turn = tuple[Any, ...]
_Entry = tuple[int, Turn, int, Waiting]
_CROSSED_OUT_BEFORE_TIDYING = 64


class Line:
    """Members by their pods' UIDs, least window and turn first; among equals, who came first.

    `on_fault` is told when turns cannot be compared, and tells whose they are.
    """

    def __init__(self, log: Log, on_fault: Callable[[], str] = lambda: "") -> None:
        self._log = log
        self._on_fault = on_fault
        self._arrivals = itertools.count()
        self._heap: list[_Entry] = []
        self._members: dict[str, _Entry] = {}

    def __len__(self) -> int:
        return len(self._members)

    def __iter__(self) -> Iterator[Waiting]:
        return (waiting for _, _, _, waiting in self._members.values())

    def __contains__(self, uid: str) -> bool:
        return uid in self._members

    def put(self, waiting: Waiting, turn: Turn = (), window: int = 0) -> None:
        """Enter, or take another turn if already here."""
        entry = (window, turn, next(self._arrivals), waiting)
        self._members[waiting.pod.uid] = entry
        try:
            heapq.heappush(self._heap, entry)
        except KeyboardInterrupt:
            raise
        except BaseException as cause:
            self._line_up_by_arrival(cause)
        if len(self._heap) > 2 * len(self._members) + _CROSSED_OUT_BEFORE_TIDYING:
            self._tidy()

    def remove(self, uid: str) -> None:
        self._members.pop(uid, None)

    def head(self) -> tuple[int, Waiting] | None:
        """The least member with its window."""
        while self._heap:
            entry = self._heap[0]
            if self._members.get(entry[3].pod.uid) is entry:
                return entry[0], entry[3]
            try:
                heapq.heappop(self._heap)
            except KeyboardInterrupt:
                raise
            except BaseException as cause:
                self._line_up_by_arrival(cause)
        return None

    def take(self) -> Waiting | None:
        """Take the head out of the line."""
        head = self.head()
        if head is None:
            return None
        self.remove(head[1].pod.uid)
        return head[1]

    def _tidy(self) -> None:
        self._heap = list(self._members.values())
        try:
            heapq.heapify(self._heap)
        except KeyboardInterrupt:
            raise
        except BaseException as cause:
            self._line_up_by_arrival(cause)

    def _line_up_by_arrival(self, cause: BaseException) -> None:
        self._log.error(
            "Sort keys cannot be compared; the waiting pods are tried in order of arrival",
            plugin=self._on_fault(),
            err=cause,
        )
        # The empty turn is less than every other, so that later arrivals compare well with these.
        self._members = {
            uid: (window, (), arrival, waiting) for uid, (window, _, arrival, waiting) in self._members.items()
        }
        self._heap = sorted(self._members.values(), key=lambda entry: (entry[0], entry[2]))
