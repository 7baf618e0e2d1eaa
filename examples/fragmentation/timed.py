"""The trace on the clock: pods arrive when they were created, run as long as they did, wait and are retried.

What the paper's simulator leaves out. The published pods are a sample: at their real times they fill less than a
hundredth of the published cluster, and every policy places every pod at once. So the cluster is a random part of the
nodes, so large that the pods want a given share of its GPUs; and each pod may come several times, at other hours.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from mooring.base.clock import timestamp
from mooring.base.errors import OperatorMistake
from mooring.objects import Pod
from mooring.simulator import Arrival, Cluster, Workload, simulate
from mooring.simulator.importers.openb import OpenbNode, OpenbPod
from mooring.simulator.virtual_time import START

from .arrivals import Order, ranked
from .evaluation import configuration
from .go_random import GoRandom
from .policies.devices import WHOLE, demand_of
from .policies.fragmentation import Fragmentation
from .sampling import Ledger
from .trace import PodObjects, Trace, generator_of, models_of, node_objects, read_trace, typical_pods

EARLY_SHARE = 0.01
"""The first pods of the trace come days apart. So large a share of them is there at the beginning."""
APART_SECONDS = 86_400.0
"""Copies of a pod come up to so much later."""
COPIES = 1
COPY = "-copy-"
LARGE = 4


class TimedRun(msgspec.Struct, frozen=True):
    """What a policy made of the trace. Shares are means over the time until the last arrival."""

    policy: str
    seed: int
    load: float
    """What the pods would use until the last arrival if none of them had to wait."""
    nodes: int
    gpus: int
    allocated: float
    """GPU in use."""
    fragmented: float
    idle_while_waiting: float
    """GPU that is idle while pods wait that want GPU, as far as these want it."""
    pods: int
    too_large: int
    """Pods that fit none of the chosen nodes even if it is empty. They are left out."""
    waited: int
    """Pods that were not bound at once."""
    never_bound: int
    mean_wait_seconds: float
    """Of all pods; those that are pending have waited until the last arrival."""
    p95_wait_seconds: float
    p99_wait_seconds: float
    mean_gpu_wait_seconds: float
    """Weighed by the GPU that the pods want."""
    large_wait_seconds: float
    """The mean of pods that want LARGE devices or more."""
    seconds: float
    """Until the last arrival."""
    attempts: int
    timeline: list[tuple[float, float, float]]
    """Seconds, GPU in use, and GPU wanted by waiting pods, as shares of all."""


def run_timed(folder: Path | str, workload: str, policy: str, seed: int, load: float, copies: int = COPIES) -> TimedRun:
    trace = read_trace(folder, workload)
    return run_on_clock(trace, generator_of(folder, seed), policy, seed, load, copies)


def run_on_clock(
    trace: Trace, generator: GoRandom, policy: str, seed: int, load: float, copies: int = COPIES
) -> TimedRun:
    nodes = ranked(trace, Order([], generator.permutation(len(trace.nodes))))
    arrivals = timed_arrivals(trace, copies, generator)
    until = arrivals[-1].at
    nodes = _part(nodes, _gpu_seconds(arrivals, until) / until / load)
    rows = {pod.name: pod for pod in trace.pods}
    fitting = [each for each in arrivals if _fits_some(rows[row_name(each.pod.name)], nodes)]
    too_large, arrivals = len(arrivals) - len(fitting), fitting
    meter = Meter(Ledger(nodes, Fragmentation(typical_pods(trace.pods))), until)
    result = simulate(
        Cluster(node_objects(nodes)),
        Workload(arrivals),
        configuration(policy, trace, seed),
        ties="first",
        on_decided=meter.decided,
        on_bound=meter.bound,
        on_ended=meter.ended,
    )
    meter.finish()
    waits = np.array([(until if pod.bound_at is None else pod.bound_at) - pod.arrived_at for pod in result.pods])
    wants = {arrival.pod.name: demand_of(arrival.pod).total for arrival in arrivals}
    gpu = np.array([wants[pod.name] for pod in result.pods])
    p95, p99 = np.percentile(waits, [95, 99])
    return TimedRun(
        policy=policy,
        seed=seed,
        load=_gpu_seconds(arrivals, until) / (meter.capacity * until),
        nodes=len(nodes),
        gpus=meter.capacity // WHOLE,
        allocated=meter.mean(meter.used),
        fragmented=meter.mean(meter.fragmented),
        idle_while_waiting=meter.mean(meter.idle_while_waiting),
        pods=len(arrivals),
        too_large=too_large,
        waited=int(np.count_nonzero(waits > 0)),
        never_bound=len(result.pending),
        mean_wait_seconds=float(waits.mean()),
        p95_wait_seconds=float(p95),
        p99_wait_seconds=float(p99),
        mean_gpu_wait_seconds=float((waits * gpu).sum() / max(1, gpu.sum())),
        large_wait_seconds=float(waits[gpu >= LARGE * WHOLE].mean()) if (gpu >= LARGE * WHOLE).any() else 0.0,
        seconds=until,
        attempts=result.attempts,
        timeline=meter.timeline,
    )


def timed_arrivals(trace: Trace, copies: int, generator: GoRandom) -> list[Arrival]:
    """By creation time. A pod runs from when it was scheduled to when it was deleted; one that never was, since it was
    created. One that would run beyond the last arrival never ends."""
    missing = [pod.name for pod in trace.pods if pod.creation_time is None or pod.deletion_time is None]
    if missing:
        raise OperatorMistake(
            f"{len(missing):,} pods have no creation or deletion time, {missing[0]} the first; choose a workload whose "
            "file has both."
        )
    created = sorted(pod.creation_time or 0.0 for pod in trace.pods)
    begin = created[int(EARLY_SHARE * len(created))]
    timed = []
    for pod in trace.pods:
        at = max(0.0, (pod.creation_time or 0.0) - begin)
        for copy in range(copies):
            later = APART_SECONDS * generator.below(2**20) / 2**20 if copy and at else 0.0
            timed.append((at + later, f"{pod.name}{COPY}{copy}" if copy else pod.name, pod))
    timed.sort(key=lambda each: each[:2])
    last, objects, arrivals = timed[-1][0], PodObjects(), []
    for at, name, pod in timed:
        seconds = _run_seconds(pod)
        made = objects.pod(pod, name, timestamp(START + at))
        arrivals.append(Arrival(at, made, seconds if at + seconds <= last else None))
    return arrivals


def row_name(name: str) -> str:
    """The name of a pod in the trace, from that of a copy."""
    return name.partition(COPY)[0]


def _fits_some(pod: OpenbPod, nodes: Sequence[OpenbNode]) -> bool:
    """Whether the pod fits one of the nodes if it is empty."""
    models = models_of(pod).split("|") if models_of(pod) else None
    return any(
        node.cpu_milli >= pod.cpu_milli
        and node.memory_mib >= pod.memory_mib
        and node.num_gpu >= pod.num_gpu
        and (models is None or node.model in models)
        for node in nodes
    )


def _gpu_seconds(arrivals: Sequence[Arrival], until: float) -> float:
    """In milli: what the pods use until then if each is bound at once."""
    return sum(
        demand_of(each.pod).total * min(until - each.at, until if each.duration is None else each.duration)
        for each in arrivals
    )


def _part(nodes: Sequence[OpenbNode], milli: float) -> list[OpenbNode]:
    """The first nodes that have so much GPU."""
    part: list[OpenbNode] = []
    capacity = 0
    for node in nodes:
        if capacity >= milli:
            return part
        part.append(node)
        capacity += WHOLE * node.num_gpu
    raise OperatorMistake(f"The pods want {milli / WHOLE:,.0f} GPUs, and all nodes have {capacity // WHOLE:,}.")


def _run_seconds(pod: OpenbPod) -> float:
    start = pod.scheduled_time if pod.scheduled_time is not None else pod.creation_time
    return max(0.0, (pod.deletion_time or 0.0) - (start or 0.0))


class Meter:
    """Integrates over time what is in use, and what pods wait for."""

    MOST_POINTS = 720

    def __init__(self, ledger: Ledger, until: float) -> None:
        self._ledger = ledger
        self.until = max(until, 1.0)
        self.capacity = ledger.capacity
        self.used = self.fragmented = self.idle_while_waiting = 0.0
        self._waiting: dict[str, int] = {}
        """GPU milli that pods want which are not bound, by uid."""
        self._wanted = 0
        self._at = 0.0
        self.timeline: list[tuple[float, float, float]] = []

    def mean(self, integral: float) -> float:
        return integral / (self.until * self.capacity)

    def decided(self, pod: Pod, _: Any, now: float) -> None:
        self._advance(now)
        if pod.uid not in self._waiting:
            self._waiting[pod.uid] = demand_of(pod).total
            self._wanted += self._waiting[pod.uid]

    def bound(self, pod: Pod, now: float) -> None:
        self._advance(now)
        self._wanted -= self._waiting.pop(pod.uid)
        self._ledger.bound(pod)

    def ended(self, pod: Pod, now: float) -> None:
        self._advance(now)
        self._ledger.ended(pod)

    def finish(self) -> None:
        self._advance(self.until)

    def _advance(self, now: float) -> None:
        now = min(now, self.until)
        if now <= self._at:
            return
        seconds, ledger = now - self._at, self._ledger
        self.used += seconds * ledger.used
        self.fragmented += seconds * ledger.fragmented
        self.idle_while_waiting += seconds * min(self.capacity - ledger.used, self._wanted)
        if not self.timeline or self._at >= self.timeline[-1][0] + self.until / self.MOST_POINTS:
            self.timeline.append((self._at, ledger.used / self.capacity, self._wanted / self.capacity))
        self._at = now
