"""Interrupted at any line of any default plugin, a decision leaves nothing behind: the next one is unaffected."""

from __future__ import annotations

import gc
import random
import sys
from types import FrameType
from typing import Any

import pytest

from mooring.base.errors import BudgetExceeded
from mooring.bench.decide import default_profile, fill
from mooring.bench.workloads import WORKLOADS
from mooring.engine import Decision, decide
from mooring.engine.time_budget import AttemptTimeout, TimeBudget, is_interruptible
from mooring.framework import Pod
from mooring.testing import Services

NODES, RUNNING, PODS, INTERRUPTIONS = 12, 48, 6, 12
KINDS = ("mixed", "spread", "antiaffinity", "preferaffinity", "newvolumes", "preemption")


class Lines:
    """Counts the lines at which a plugin could be interrupted, and interrupts it at one of them."""

    def __init__(self, interrupt_at: int | None = None) -> None:
        self.count = 0
        self._interrupt_at = interrupt_at

    def __enter__(self) -> Lines:
        self._before = sys.gettrace()
        gc.disable()  # hypothesis counts collections in a callback, whose lines are not the plugin's
        sys.settrace(self._trace)
        return self

    def __exit__(self, *exception: object) -> None:
        sys.settrace(self._before)
        gc.enable()

    def _trace(self, frame: FrameType, event: str, _: Any) -> Any:
        if event == "line" and is_interruptible(frame):
            self.count += 1
            if self.count == self._interrupt_at:
                raise AttemptTimeout
        return self._trace


class Twin:
    """A cluster of a workload of the benchmark, and its scheduler."""

    def __init__(self, workload: str) -> None:
        services = Services()
        self.profile, self.state = default_profile(services), services.state
        fill(services, WORKLOADS[workload], NODES, RUNNING)

    def decide(self, pod: Pod) -> Decision:
        return decide(self.profile, pod, self.state, budget=TimeBudget(1e9))

    def schedule(self, pod: Pod) -> tuple[str | None, str, object, object]:
        decision = self.decide(pod).keep()
        columns = decision.columns()
        totals = dict(zip(columns.nodes, columns.total.tolist(), strict=True)) if columns is not None else None
        plan = decision.plan
        evicted = sorted(victim.name for victim in plan.evict) if plan is not None else None
        if decision.node is not None:
            self.state.assume(pod, decision.node, 0.0)
        return decision.node, decision.message, evicted, totals


@pytest.mark.parametrize("workload", KINDS)
def test_an_interrupted_decision_changes_no_later_one(workload):
    disturbed, undisturbed = Twin(workload), Twin(workload)
    dice = random.Random(workload)
    interrupted = 0
    for number in range(PODS):
        pod = WORKLOADS[workload].incoming(number)
        with Lines(interrupt_at=dice.randint(1, 300)):
            disturbed.decide(pod)
        disturbed.decide(pod)  # what it keeps for the next one makes that shorter
        with Lines() as lines:
            disturbed.decide(pod)
        for _ in range(INTERRUPTIONS):
            with Lines(interrupt_at=dice.randint(1, lines.count)):
                interrupted += isinstance(disturbed.decide(pod).fault, BudgetExceeded)
        assert disturbed.schedule(pod) == undisturbed.schedule(pod)
    assert interrupted > PODS * INTERRUPTIONS // 2
