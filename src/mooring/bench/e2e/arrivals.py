"""Pods that arrive at a steady rate while the scheduler runs: how long each waits for its node.

Arrivals do not wait for each other: a scheduler or an API server that falls behind has a queue, as in life. What else
happens meanwhile is a `BackgroundLoad`.
"""

from __future__ import annotations

import asyncio
import time
from typing import Protocol

from mooring.base.errors import Fault
from mooring.bench.e2e.binding_watch import BindingWatch
from mooring.bench.e2e.cluster import BenchCluster
from mooring.bench.e2e.contenders import Contender
from mooring.bench.e2e.measurement import Run, latency_of, rate
from mooring.bench.e2e.observing import START_SECONDS, Observed, observe
from mooring.bench.e2e.running_contender import RunningContender, running
from mooring.bench.e2e.scenario import Task
from mooring.bench.manifests import Document, incoming_manifest, pod_manifest
from mooring.bench.workloads import a_plain_pod

WARM_UP = "0-warm-up"
"""Before all others in the order of names, which is that of a first list: its binding waits for no other pod."""


class BackgroundLoad(Protocol):
    """What happens beside the arrivals."""

    @property
    def name(self) -> str: ...

    async def prepare(self, cluster: BenchCluster) -> None:
        """Before the scheduler starts."""
        ...

    async def settle(self, cluster: BenchCluster) -> None:
        """After its first binding: until it has nothing left to do."""
        ...

    def awaited(self) -> list[str]:
        """Further pods that must be bound until the run is over."""
        ...

    async def act(self, cluster: BenchCluster, task: Task) -> None:
        """During the arrivals; cancelled after the last binding."""
        ...


class Nothing:
    """Arrivals alone."""

    name = ""

    async def prepare(self, cluster: BenchCluster) -> None: ...
    async def settle(self, cluster: BenchCluster) -> None: ...
    async def act(self, cluster: BenchCluster, task: Task) -> None: ...
    def awaited(self) -> list[str]:
        return []


class Arrivals:
    """Start the contender, let it settle, then create so many pods a second."""

    def __init__(self, per_second: float, background: BackgroundLoad) -> None:
        self._per_second, self._background = per_second, background
        self.name = f"{per_second:g}/s" + (f", {background.name}" if background.name else "")

    async def run(self, cluster: BenchCluster, contender: Contender, task: Task, number: int) -> Run:
        manifests = {f"pod-{each:06d}": incoming_manifest(task.workload, each) for each in range(task.pods)}
        await cluster.create_groups(task.workload, task.pods)
        await self._background.prepare(cluster)
        await cluster.create_pods([pod_manifest(a_plain_pod(0), WARM_UP)])
        awaited = [*manifests, *self._background.awaited()]
        async with BindingWatch(cluster.client, awaited) as watch, running(contender, cluster) as process:
            await _first_binding(process, watch)
            await self._background.settle(cluster)
            before = process.usage()
            created_at, observed = await self._arrive(cluster, task, manifests, process, watch)
            after = process.usage()
            trouble = observed.trouble and f"{observed.trouble}\n{process.last_lines()}"
        times = {name: at for name, at in watch.bound_at.items() if name in manifests}
        others = [watch.bound_at[name] for name in self._background.awaited() if name in watch.bound_at]
        first = min(created_at.values(), default=0.0)
        return Run(
            scenario=self.name,
            workload=task.name,
            contender=contender.name,
            round=number,
            nodes=task.nodes,
            running=task.running,
            pods=task.pods,
            bound=len(times),
            pods_per_second=rate(sorted(times.values())),
            arrivals_per_second=rate(sorted(created_at.values())),
            first_binding_seconds=watch.bound_at[WARM_UP] - process.started_at,
            cpu_ms_per_pod=(after.cpu_seconds - before.cpu_seconds) * 1000 / len(times) if times else None,
            start_cpu_seconds=before.cpu_seconds,
            peak_mib=after.peak_mib,
            latency=latency_of([at - created_at[name] for name, at in times.items()]),
            others_bound_seconds=max(others) - first if others else None,
            nodes_used=len({watch.nodes[name] for name in times}),
            trouble=trouble,
        )

    async def _arrive(
        self,
        cluster: BenchCluster,
        task: Task,
        manifests: dict[str, Document],
        process: RunningContender,
        watch: BindingWatch,
    ) -> tuple[dict[str, float], Observed]:
        """Returns when each pod was created. Ends with the last binding."""
        acting = asyncio.create_task(self._background.act(cluster, task))
        created_at: dict[str, float] = {}
        try:
            async with asyncio.TaskGroup() as creating:
                began = time.monotonic()
                for order, (name, manifest) in enumerate(manifests.items()):
                    await asyncio.sleep(began + order / self._per_second - time.monotonic())
                    created_at[name] = time.monotonic()
                    creating.create_task(cluster.create_pods([manifest]))
            observed = await observe(process, watch)
        finally:
            acting.cancel()
            await asyncio.wait([acting])
        if not acting.cancelled() and (error := acting.exception()) is not None:
            raise error
        return created_at, observed


async def _first_binding(process: RunningContender, watch: BindingWatch) -> None:
    deadline = time.monotonic() + START_SECONDS
    while not watch.first.is_set():
        if process.has_ended or time.monotonic() > deadline:
            code = process.exit_code
            why = f"bound no pod in {START_SECONDS:g} s" if code is None else f"ended with exit code {code}"
            raise Fault(f"the scheduler {why}:\n{process.last_lines()}")
        try:
            await asyncio.wait_for(watch.first.wait(), 0.1)
        except TimeoutError:
            continue
