"""How much of a machine a sweep uses: simulations over workloads and seeds, on all cores."""

from __future__ import annotations

import resource
import time
from dataclasses import dataclass

from mooring.base.errors import Fault
from mooring.bench.workloads import WORKLOADS
from mooring.simulator import Arrival, Cluster, Workload, sweep
from mooring.simulator.sweeps.worker_processes import core_count

POD_SECONDS, RUN_SECONDS = 0.1, 100.0
"""Between two arrivals, and how long a pod runs."""


@dataclass(frozen=True)
class SweepCost:
    """One sweep, from its call until it has returned."""

    runs: int
    workers: int
    seconds: float
    cpu_seconds: float
    """Of this process and its workers."""

    @property
    def used_share(self) -> float:
        """Of the cores that work on it."""
        return self.cpu_seconds / (self.seconds * self.workers)

    @property
    def runs_per_second(self) -> float:
        return self.runs / self.seconds


def measure(workload: str, nodes: int, pods: int, runs: int, workers: int | None) -> SweepCost:
    """So many runs with a seed each; by default on every core."""
    wanted = WORKLOADS[workload]
    cluster = Cluster([wanted.node(number) for number in range(nodes)], objects=list(wanted.objects()))
    arrivals = [Arrival(number * POD_SECONDS, wanted.incoming(number), RUN_SECONDS) for number in range(pods)]
    count = min(runs, workers or core_count())
    cpu, began = _cpu_seconds(), time.monotonic()
    result = sweep({"cluster": cluster, "workload": Workload(arrivals), "seed": range(runs)}, workers=count)
    seconds = time.monotonic() - began
    if result.failed:
        raise Fault(str(result))
    return SweepCost(runs, count, seconds, _cpu_seconds() - cpu)


def _cpu_seconds() -> float:
    """Of this process, and of children that have ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)
