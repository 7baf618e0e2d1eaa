"""Simulations: a scheduler on virtual time, with the code that runs in production.

`scenario` is what is simulated, `simulation` runs it, `outcome` is the result. `virtual_time` and `simulated_client`
replace the clock and the API server; `manifests` and `traces` read workloads from files.
"""

from mooring.simulator.outcome import PodOutcome, SimulationResult
from mooring.simulator.scenario import Arrival, Cluster, Workload
from mooring.simulator.simulation import simulate

__all__ = ["Arrival", "Cluster", "PodOutcome", "SimulationResult", "Workload", "simulate"]
