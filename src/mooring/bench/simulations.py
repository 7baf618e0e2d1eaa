"""What a simulation costs: pods of a workload arrive at a cluster, run for a while and end, on virtual time."""

from __future__ import annotations

import resource
import sys
import time
from dataclasses import dataclass

from mooring.bench.workloads import WORKLOADS
from mooring.framework import FeatureGates
from mooring.simulator import Arrival, Cluster, Workload, simulate


@dataclass(frozen=True)
class SimulationCost:
    """One simulation, in this process."""

    workload: str
    nodes: int
    pods: int
    bound: int
    simulated_seconds: float
    making_cpu_seconds: float
    """For the objects of cluster and workload."""
    cpu_seconds: float
    """For the simulation itself."""
    peak_megabytes: float
    """Of the process, at any time until then."""

    @property
    def pods_per_second(self) -> float:
        return self.pods / self.cpu_seconds


def measure(workload: str, nodes: int, pods: int, rate: float, run_seconds: float | None) -> SimulationCost:
    """`rate`: so many pods arrive in a simulated second. `run_seconds`: so long each runs; None: for ever."""
    began, wanted = time.process_time(), WORKLOADS[workload]
    cluster = Cluster(
        [wanted.node(number) for number in range(nodes)], objects=[*wanted.objects(), *wanted.groups(pods)]
    )
    arrivals = [Arrival(number / rate, wanted.incoming(number), run_seconds) for number in range(pods)]
    made = time.process_time()
    result = simulate(cluster, Workload(arrivals), gates=FeatureGates(dict.fromkeys(wanted.gates, True)))
    return SimulationCost(
        workload,
        nodes,
        pods,
        len(result.bound),
        result.ended_at,
        made - began,
        time.process_time() - made,
        _peak_megabytes(),
    )


def _peak_megabytes() -> float:
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6
