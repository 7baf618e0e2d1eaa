"""The drain test: all pods are pending before the scheduler starts; the rate is from the first binding to the last."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from dataclasses import dataclass

from mooring.base.errors import Fault
from mooring.bench.e2e.binding_watch import BindingWatch
from mooring.bench.e2e.cluster import BenchCluster
from mooring.bench.e2e.contenders import Contender
from mooring.bench.e2e.measurement import Run, latency_of, rate
from mooring.bench.e2e.running_contender import RunningContender, running
from mooring.bench.manifests import incoming_manifest
from mooring.bench.processes import Usage, usage_of
from mooring.bench.workloads import WORKLOADS

LOOK_SECONDS = 0.05
STALL_SECONDS = 60.0
"""Without a binding for so long, the run is over."""
EVENT_LOOK_SECONDS = 0.2
EVENT_STALL_SECONDS = 10.0
"""Without another event for so long, those that are missing are lost."""


@dataclass(frozen=True)
class Task:
    """What is measured in each run."""

    workload: str
    nodes: int
    pods: int
    running: int = 0


async def drain(cluster: BenchCluster, contender: Contender, task: Task, round_number: int) -> Run:
    """Create the pods, start the contender, and observe until all are bound. The cluster is reset by its owner."""
    workload = WORKLOADS[task.workload]
    manifests = [incoming_manifest(workload, number) for number in range(task.pods)]
    names = [each["metadata"]["name"] for each in manifests]
    nodes = [workload.node(number).name for number in range(task.nodes)]
    async with BindingWatch(cluster.client, task.pods) as watch:
        await cluster.create_pods(manifests)
        if watch.first.is_set():
            raise Fault("another scheduler binds the pods of this cluster: stop it, then measure.")
        server = _server_usage(cluster)
        async with running(contender, cluster, names, nodes) as process:
            observed = await _observe(process, watch)
            server_cpu = _server_usage(cluster).cpu_seconds - server.cpu_seconds
            events = None if contender.is_bare else await _events(cluster, len(watch.bound_at))
            usage = observed.usage if process.has_ended else process.usage()
            trouble = observed.trouble and f"{observed.trouble}\n{process.last_lines()}"
    times = sorted(watch.bound_at.values())
    bound = len(times)
    per_node = Counter(watch.nodes.values())
    return Run(
        scenario="drain",
        workload=task.workload,
        contender=contender.name,
        round=round_number,
        nodes=task.nodes,
        running=task.running,
        pods=task.pods,
        bound=bound,
        pods_per_second=rate(times),
        first_binding_seconds=times[0] - process.started_at if times else None,
        cpu_ms_per_pod=usage.cpu_seconds * 1000 / bound if bound else None,
        start_cpu_seconds=observed.start_cpu_seconds,
        peak_mib=usage.peak_mib,
        server_cpu_ms_per_pod=server_cpu * 1000 / bound if bound and cluster.server_pid is not None else None,
        events=events.count if events is not None else None,
        event_lag_seconds=max(0.0, events.last_at - times[-1]) if events is not None and times else None,
        latency=latency_of([each - process.started_at for each in times]),
        nodes_used=len(per_node),
        most_pods_on_a_node=max(per_node.values(), default=0),
        trouble=trouble,
    )


@dataclass(frozen=True)
class _Observed:
    usage: Usage
    start_cpu_seconds: float | None
    trouble: str


async def _observe(process: RunningContender, watch: BindingWatch) -> _Observed:
    """Until all pods are bound, or no more can be expected."""
    usage, start_cpu = Usage(), None
    bound, progressed_at = 0, time.monotonic()
    while not watch.all.is_set():
        if start_cpu is None and watch.first.is_set():
            start_cpu = process.usage().cpu_seconds
        if len(watch.bound_at) > bound:
            bound, progressed_at = len(watch.bound_at), time.monotonic()
        quiet = time.monotonic() - progressed_at
        if process.has_ended and quiet > 1.0:
            return _Observed(usage, start_cpu, f"it ended with exit code {process.exit_code}.")
        if quiet > STALL_SECONDS:
            return _Observed(usage, start_cpu, f"no pod was bound for {STALL_SECONDS:g} s.")
        if not process.has_ended:
            usage = process.usage()
        try:
            await asyncio.wait_for(watch.all.wait(), LOOK_SECONDS)
        except TimeoutError:
            continue
    return _Observed(usage, start_cpu, "")


@dataclass(frozen=True)
class _Events:
    count: int
    last_at: float


async def _events(cluster: BenchCluster, expected: int) -> _Events:
    """Wait for the events that follow the bindings; counted without reading them, so that the wait costs nothing."""
    count, last_at = -1, time.monotonic()
    while count < expected and time.monotonic() - last_at < EVENT_STALL_SECONDS:
        found = await cluster.event_count()
        if found > count:
            count, last_at = found, time.monotonic()
        if count < expected:
            await asyncio.sleep(EVENT_LOOK_SECONDS)
    return _Events(len(await cluster.scheduled_pods()), last_at)


def _server_usage(cluster: BenchCluster) -> Usage:
    return usage_of(cluster.server_pid) if cluster.server_pid is not None else Usage()
