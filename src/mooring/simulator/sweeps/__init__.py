"""Sweeps over configurations, workloads, seeds or anything else.

`sweep` is the loop. `parameters` are its runs, `simulated_run` what they do by default; `worker` computes one in any
process, `worker_processes` are those that are used by default, `shipping` is how values reach them. `results_file`
keeps what was computed, and `fingerprints` whether it still holds.
"""

from mooring.simulator.sweeps.parameters import Labelled
from mooring.simulator.sweeps.progress import SweepProgress
from mooring.simulator.sweeps.result import SweepResult
from mooring.simulator.sweeps.sweep import sweep
from mooring.simulator.sweeps.worker_processes import WorkerProcesses

__all__ = ["Labelled", "SweepProgress", "SweepResult", "WorkerProcesses", "sweep"]
