"""Simulations: a scheduler on virtual time, with the code that runs in production.

`scenario` is what is simulated, `configurations` by which scheduler; `simulation` runs it, `outcome` is the result,
`comparison` several of them side by side.
`virtual_time` and `simulated_client` replace the clock and the API server; `cluster_files`, `workload_files`,
`manifests` and `traces` read files, `importers` published traces; `generated_workload` needs none. `sweeps` simulates
many times, `planning` finds by simulations what there is room for.
"""

from mooring.simulator.comparison import SimulationComparison, compare, simulate_each
from mooring.simulator.configurations import profile
from mooring.simulator.outcome import PodOutcome, SimulationResult
from mooring.simulator.planning.capacity import CapacityPlan, CapacityResult, capacity
from mooring.simulator.planning.drain import DrainResult, drain_check
from mooring.simulator.planning.fit import FitResult, fit
from mooring.simulator.scenario import Arrival, Cluster, Workload
from mooring.simulator.simulation import simulate
from mooring.simulator.sweeps import Labelled, SweepProgress, SweepResult, WorkerProcesses, sweep

__all__ = [
    "Arrival",
    "CapacityPlan",
    "CapacityResult",
    "Cluster",
    "DrainResult",
    "FitResult",
    "Labelled",
    "PodOutcome",
    "SimulationComparison",
    "SimulationResult",
    "SweepProgress",
    "SweepResult",
    "WorkerProcesses",
    "Workload",
    "capacity",
    "compare",
    "drain_check",
    "fit",
    "profile",
    "simulate",
    "simulate_each",
    "sweep",
]
