"""In which order another scheduler decided, as far as it can be seen from outside.

A scheduler decides one pod after the other, but binds them concurrently, so its actions appear in any order. It pops
pods in order of arrival, or by priority where they queue up; both are known. So the state on which it decided about a
pod is, most likely, the one in which the pods whose turn was before have their nodes and those after it have not. Pods
that were just deleted may still have counted.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import Any, NamedTuple

from mooring.base.clock import Clock
from mooring.objects.core import Pod
from mooring.objects.placed import PlacedPod
from mooring.state import State

BESIDE_SECONDS = 2.0
"""What appears within this time may have been decided in another order; what appears later was decided later."""

MOST_BESIDE = 256

ViewOfState = Callable[[], AbstractContextManager[None]]


class Turn(NamedTuple):
    """Smaller is earlier."""

    urgency: int
    came: int

    def may_come_before(self, other: Turn) -> bool:
        return any(order(self) < order(other) for order in ORDERS)


ORDERS: tuple[Callable[[Turn], Any], ...] = (lambda turn: turn.came, lambda turn: turn)
"""As they came, where the scheduler keeps up with them; by priority first, where pods queue up."""


class _Bound(NamedTuple):
    at: float
    uid: str
    turn: Turn


class _Gone(NamedTuple):
    at: float
    pod: PlacedPod


class DecisionOrder:
    """Gives pods their turns, and shows the state for a moment as it may have been for one of them."""

    def __init__(self, state: State, clock: Clock) -> None:
        self._state = state
        self._clock = clock
        self._came = 0
        self._bound: deque[_Bound] = deque(maxlen=MOST_BESIDE)
        self._gone: deque[_Gone] = deque(maxlen=MOST_BESIDE)
        self.bindings = 0
        """How many have been seen."""

    def turn_of(self, pod: Pod) -> Turn:
        """The turn of a pod that came just now."""
        self._came += 1
        return Turn(-pod.priority, self._came)

    def bound(self, uid: str, turn: Turn) -> None:
        self.bindings += 1
        self._bound.append(_Bound(self._clock.monotonic(), uid, turn))

    def gone(self, pod: PlacedPod) -> None:
        self._gone.append(_Gone(self._clock.monotonic(), pod))

    def views(self, turn: Turn) -> list[ViewOfState]:
        """Other states than the present one on which a pod with this turn may have been decided; perhaps none."""
        since = self._clock.monotonic() - BESIDE_SECONDS
        recent = [bound for bound in self._bound if bound.at >= since]
        gone = tuple(each.pod for each in self._gone if each.at >= since)
        overtakers = {tuple(bound.uid for bound in recent if order(bound.turn) > order(turn)) for order in ORDERS}
        views: list[ViewOfState] = [partial(self.without, uids) for uids in overtakers if uids]
        if gone:
            views += [partial(self.without, uids, gone) for uids in {(), *overtakers}]
        return views

    @contextmanager
    def without(self, uids: Iterable[str], again: Iterable[PlacedPod] = ()) -> Iterator[None]:
        """For a moment, without an await, these pods are on no node, and those are there again."""
        taken = [pod for uid in uids if (pod := self._state.remove_pod(uid)) is not None]
        returned = [pod for pod in again if self._state.pod(pod.uid) is None]
        for pod in returned:
            self._state.set_pod(pod)
        try:
            yield
        finally:
            for pod in reversed(returned):
                self._state.remove_pod(pod.uid)
            for pod in reversed(taken):
                self._state.set_pod(pod)
