"""What one evaluation may do: its cost as cel-go counts it, the steps that the cost leaves out, and the time.

The cost of some calls is far below their work: a short pattern can have a large program, a list that holds another
one twice is cheap to make and expensive to compare. Functions whose work can exceed their cost charge steps, of about
ten nanoseconds each, before they begin. Costs are upstream's; the limit of steps is ours.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from mooring.cel.errors import CostLimitExceeded, StepLimitExceeded

Check = Callable[[], object]
"""Raises what ends the evaluation (no CelError) when its time is over."""

MOST_STEPS = 50_000_000
"""About half a second."""
PER_CHARACTER, PER_ELEMENT, PER_COMPARISON, PER_CALL = 10, 10, 30, 200
"""Steps: a character or element that is made, two values that are compared, a list that is walked through."""
_COST_BETWEEN_CHECKS = 10_000
_STEPS_BETWEEN_CHECKS = 1_000_000
_NO_LIMIT = 2**64


class Meter:
    """Counts, up to limits."""

    __slots__ = ("_check", "_cost_to_look", "_limit", "_steps_to_look", "cost", "steps")

    def __init__(self, limit: int | None, check: Check | None = None) -> None:
        self.cost = self.steps = 0
        self._limit = _NO_LIMIT if limit is None else limit
        self._check = check
        self._cost_to_look = min(_COST_BETWEEN_CHECKS, self._limit)
        self._steps_to_look = _STEPS_BETWEEN_CHECKS

    def add(self, cost: int) -> None:
        self.cost += cost
        if self.cost > self._cost_to_look:
            if self.cost > self._limit:
                raise CostLimitExceeded
            self._cost_to_look = min(self.cost + _COST_BETWEEN_CHECKS, self._limit)
            if self._check is not None:
                self._check()

    def spend(self, steps: int) -> None:
        self.steps += steps
        if self.steps > self._steps_to_look:
            if self.steps > MOST_STEPS:
                raise StepLimitExceeded
            self._steps_to_look = self.steps + _STEPS_BETWEEN_CHECKS
            if self._check is not None:
                self._check()


class _Current(threading.local):
    meter: Meter | None = None


_current = _Current()


def spend(steps: int) -> None:
    """Charge steps to the evaluation that runs, if it is metered."""
    if (meter := _current.meter) is not None:
        meter.spend(steps)


def on_meter(meter: Meter, evaluate: Callable[[list[Any]], Any], frame: list[Any]) -> Any:
    """The value of the evaluation, whose steps this meter counts."""
    try:
        _current.meter = meter
        return evaluate(frame)
    finally:
        _current.meter = None
