"""A whole scheduler with the gates of pod groups, against a client that records its writes."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from mooring.base.clock import ManualClock
from mooring.config import load_configuration
from mooring.framework.gates import read_gates
from mooring.objects import Node, Pod
from mooring.objects.pod_groups import PodGroup
from mooring.plugins.catalogue import catalogue
from mooring.queue import Place
from mooring.scheduler.watching.feeds import NodeFeed
from mooring.scheduler.wiring import build_core, cluster_executor, complete
from mooring_conformance.pod_groups import ConditionReporter, RecordingClient, settle

GANGS = ("GenericWorkload", "GangScheduling")
TOPOLOGY = (*GANGS, "TopologyAwareWorkloadScheduling")
PREEMPTION = (*GANGS, "WorkloadAwarePreemption")
WAIT = (
    "pod group is unschedulable, waiting for minCount pods from a gang to be scheduled, "
    "one or more plugins asked to wait and no plugin rejected pod"
)
CONFIGURATION = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles: [{schedulerName: default-scheduler}, {schedulerName: other}]
"""


class Scene:
    """Objects come by `add`; `run` schedules until no pod is active."""

    def __init__(self, gates: Iterable[str] = GANGS) -> None:
        self.clock = ManualClock()
        self.client = RecordingClient(self.clock)
        on = read_gates(f"{gate}=true" for gate in gates).gates
        registry = catalogue()
        configuration = load_configuration(CONFIGURATION, source="test", registry=registry, gates=on).configuration
        reporter = ConditionReporter(self.client, self.clock, ["default-scheduler", "other"])
        self.core = build_core(self.client, configuration, registry, clock=self.clock, gates=on, reporter=reporter)
        self.client.core = self.core
        self.scheduler = complete(self.core, cluster_executor(self.core), is_explained=False)
        self.core.informers.preload(lambda _kind: [])
        self._nodes = NodeFeed(self.core.state, self.core.queue)
        self.cycles = 0
        self.has_placements = on.on("TopologyAwareWorkloadScheduling")

    def add(self, *objects: Node | PodGroup | Pod) -> None:
        for each in objects:
            if isinstance(each, Node):
                self._nodes.found(each)
            elif isinstance(each, PodGroup):
                self.core.informers.store(PodGroup).changed(each)
            else:
                self.core.pods.changed(each)

    async def run(self) -> None:
        while self.core.queue.counts()["active"]:
            queued = self.core.queue.pop()
            assert queued is not None
            await self.scheduler.cycle.schedule_one(queued)
            self.cycles += 1
            await settle()

    def where(self, pod: Pod) -> str:
        return self.core.queue.where(pod)

    def gated(self) -> list[str]:
        return sorted(each.pod.name for each in self.core.queue.pending() if each.place is Place.GATED)

    def bound(self) -> dict[str, str]:
        return {key.partition("/")[2]: node for key, node in self.client.bound.items()}

    def message(self, pod: Pod) -> str:
        found: str = self.client.failed[pod.key]["message"]
        return found

    def condition(self, group: PodGroup) -> tuple[str, str, str]:
        found = self.client.groups[group.key]
        return found["status"], found["reason"], found["message"]

    async def close(self) -> None:
        self.core.room.close()
        await asyncio.sleep(0)
        await self.scheduler.shutdown.run()
