"""Runs in turn: for each workload a cluster, in each round every contender once.

A control plane serves all runs of a workload: after a run its pods and events are deleted, the nodes stay. Contenders
alternate, so that what changes on the machine meanwhile meets all of them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path

from mooring.bench.e2e.cluster import BenchCluster, given_cluster, own_cluster
from mooring.bench.e2e.contenders import Contender
from mooring.bench.e2e.measurement import Run
from mooring.bench.e2e.scenario import Scenario, Task

Report = Callable[[str], None]


@dataclass(frozen=True)
class BenchmarkPlan:
    """All runs. With a kubeconfig they use that cluster, otherwise a control plane of their own."""

    scenario: Scenario
    tasks: Sequence[Task]
    contenders: Sequence[Contender]
    rounds: int
    kubeconfig: Path | None = None

    @property
    def run_count(self) -> int:
        return len(self.tasks) * len(self.contenders) * self.rounds


async def measure(plan: BenchmarkPlan, runs: list[Run], report: Report) -> None:
    """Append each run when it is over: what was measured is kept when the rest is cancelled."""
    progress = Progress(plan.run_count, report)
    for task in plan.tasks:
        report(f"{task.name}: {task.nodes:,} nodes and {task.running:,} running pods are created …")
        async with _cluster(plan, task) as cluster:
            await cluster.fill(task.workload, task.nodes, task.running)
            for number in range(1, plan.rounds + 1):
                for contender in plan.contenders:
                    progress.begins(f"{task.name}, round {number} of {plan.rounds}: {contender.name}")
                    run = await plan.scenario.run(cluster, contender, task, number)
                    runs.append(run)
                    await cluster.reset(task.workload, task.nodes, task.running)
                    progress.ends(run)


def _cluster(plan: BenchmarkPlan, task: Task) -> AbstractAsyncContextManager[BenchCluster]:
    return own_cluster(task.workload.gates) if plan.kubeconfig is None else given_cluster(plan.kubeconfig)


class Progress:
    """Reports each run, and how long the others will take if they take as long."""

    def __init__(self, runs: int, report: Report, now: Callable[[], float] = time.monotonic) -> None:
        self._runs, self._report, self._now = runs, report, now
        self._done = 0
        self._began = now()
        self._what = ""

    def begins(self, what: str) -> None:
        if self._done == 0:
            self._began = self._now()
        self._what = what

    def ends(self, run: Run) -> None:
        self._done += 1
        left = self._runs - self._done
        rest = (self._now() - self._began) / self._done * left
        found = _found(run)
        missing = f", {run.pods - run.bound:,} pods without a node" if run.bound < run.pods else ""
        remaining = f"; about {_duration(rest)} left" if left else ""
        self._report(f"[{self._done}/{self._runs}] {self._what}: {found}{missing}{remaining}")
        if run.trouble:
            self._report(f"  {run.contender}: {run.trouble}")


def _found(run: Run) -> str:
    if run.arrivals_per_second is not None and run.latency is not None:
        return f"p50 {run.latency.p50 * 1000:.0f} ms, p99 {run.latency.p99 * 1000:.0f} ms"
    return f"{run.pods_per_second:,.0f} pods/s" if run.pods_per_second is not None else "nothing to measure"


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"
