"""What happens beside arriving pods: pods that fit nowhere while nodes change, or a wave of preemptions."""

from __future__ import annotations

import asyncio
import itertools
import random
import time

from mooring.bench.e2e.cluster import BenchCluster
from mooring.bench.e2e.events import wait_for_events
from mooring.bench.e2e.scenario import Task
from mooring.bench.manifests import PRIORITY_CLASSES, pod_manifest, priority_class
from mooring.bench.workloads import WORKLOADS
from mooring.objects import Node

WAVE_DELAY_SECONDS = 1.0
"""The wave meets arrivals that flow already."""


class Unschedulable:
    """Pods that fit no node, and so many updates of nodes a second. An update changes how much CPU is allocatable, by
    less than a core: a scheduler must consider whether the pods fit now, and none does."""

    def __init__(self, count: int, node_updates_per_second: float) -> None:
        self._count, self._updates = count, node_updates_per_second
        self.name = f"{count:,} unschedulable, {node_updates_per_second:g} node updates/s"

    async def prepare(self, cluster: BenchCluster) -> None:
        refused = WORKLOADS["refused"]
        await cluster.create_pods(
            pod_manifest(refused.incoming(number), f"unschedulable-{number:06d}") for number in range(self._count)
        )

    async def settle(self, cluster: BenchCluster) -> None:
        """Each has been tried once: there is an event about it."""
        await wait_for_events(cluster, self._count)

    def awaited(self) -> list[str]:
        return []

    async def act(self, cluster: BenchCluster, task: Task) -> None:
        began, names = time.monotonic(), [task.workload.node(number).name for number in range(task.nodes)]
        for number, name in enumerate(itertools.cycle(names)):
            await asyncio.sleep(began + number / self._updates - time.monotonic())
            # Another value each time: a patch that changes nothing is no update.
            status = {"status": {"allocatable": {"cpu": f"{random.randint(31_000, 32_000)}m"}}}
            await cluster.client.patch(Node.KIND, name, None, status, subresource="status")


class PreemptionWave:
    """Pods of high priority that come at once to nodes that are full of others: each evicts four."""

    def __init__(self, count: int) -> None:
        self._count = count
        self.name = f"a wave of {count:,} preemptions"

    async def prepare(self, cluster: BenchCluster) -> None:
        await cluster.ensure(PRIORITY_CLASSES, priority_class(WORKLOADS["preemption"].incoming(0).spec.priority or 0))

    async def settle(self, cluster: BenchCluster) -> None: ...

    def awaited(self) -> list[str]:
        return [f"wave-{number:06d}" for number in range(self._count)]

    async def act(self, cluster: BenchCluster, task: Task) -> None:
        await asyncio.sleep(WAVE_DELAY_SECONDS)
        workload = WORKLOADS["preemption"]
        await cluster.create_pods(
            pod_manifest(workload.incoming(number), name) for number, name in enumerate(self.awaited())
        )
