"""A whole scheduler with the gates of pod groups, against a client that records its writes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any

from mooring.base.clock import ManualClock
from mooring.client import ApiClient, EventRecorder
from mooring.client.api import Document, PatchForm
from mooring.client.recorder import ControllerEvents, EventType
from mooring.config import load_configuration
from mooring.framework import Plugin
from mooring.framework.gates import read_gates
from mooring.objects import Kind, Node, Pod
from mooring.objects.core import ObjectReference
from mooring.objects.pod_groups import GANG_COMPLETED, PodGroup
from mooring.plugins.catalogue import catalogue
from mooring.queue import Place
from mooring.scheduler.cycle.reporting import Reporter
from mooring.scheduler.watching.feeds import NodeFeed
from mooring.scheduler.wiring import build_core, cluster_executor, complete
from mooring.testing import a_pod
from mooring_conformance.pod_groups import RecordingClient, settle

GANGS = ("GenericWorkload", "GangScheduling")
TOPOLOGY = (*GANGS, "TopologyAwareWorkloadScheduling")
PREEMPTION = (*GANGS, "WorkloadAwarePreemption")
WAIT = (
    "pod group is unschedulable, waiting for minCount pods from a gang to be scheduled, "
    "one or more plugins asked to wait and no plugin rejected pod"
)
SCHEDULERS = ("default-scheduler", "other")


class SceneClient(RecordingClient):
    """Records victims' conditions, too; deletions can be held back."""

    def __init__(self, clock: ManualClock) -> None:
        super().__init__(clock)
        self.disrupted: dict[str, tuple[str, str]] = {}
        """The reason and the message of each pod's DisruptionTarget condition."""
        self.completed: list[str] = []
        """The groups that were reported to have been bound whole, at each report."""
        self.may_delete = asyncio.Event()
        self.may_delete.set()

    async def patch(
        self,
        kind: Kind,
        name: str,
        namespace: str | None,
        body: Any,
        *,
        subresource: str | None = None,
        form: PatchForm = "strategic",
    ) -> Document:
        for condition in body["status"].get("conditions", ()):
            if condition["type"] == "DisruptionTarget":
                self.disrupted[name] = condition["reason"], condition["message"]
            elif condition["type"] == GANG_COMPLETED:
                self.completed.append(name)
        return await super().patch(kind, name, namespace, body, subresource=subresource, form=form)

    async def delete(
        self,
        kind: Kind,
        name: str,
        namespace: str | None = None,
        *,
        grace_seconds: int | None = None,
        uid: str | None = None,
    ) -> None:
        await self.may_delete.wait()
        await super().delete(kind, name, namespace, grace_seconds=grace_seconds, uid=uid)


class EventLog(EventRecorder):
    """Keeps events: kind and name of the object, reason, action, note."""

    def __init__(self, client: ApiClient, clock: ManualClock) -> None:
        super().__init__(client, controller="test", clock=clock)
        self.events: list[tuple[str, str, str, str, str]] = []

    def add(
        self,
        source: ControllerEvents,
        regarding: ObjectReference,
        type: EventType,
        reason: str,
        action: str,
        note: str,
        related: ObjectReference | None,
    ) -> None:
        self.events.append((regarding.kind, regarding.name, reason, action, note))


class LoggingReporter(Reporter):
    """Writes conditions, and keeps events."""

    def __init__(self, client: ApiClient, clock: ManualClock) -> None:
        super().__init__(client, clock, ())
        self.recorder = self.log = EventLog(client, clock)
        self.adopt(SCHEDULERS)


def configuration_of(plugins: Iterable[type[Plugin]], disabled: Iterable[str], args: Document) -> str:
    multi_point = {
        "enabled": [{"name": plugin.name} for plugin in plugins],
        "disabled": [{"name": name} for name in disabled],
    }
    plugin_config = [{"name": name, "args": each} for name, each in args.items()]
    profile = {"plugins": {"multiPoint": multi_point}, "pluginConfig": plugin_config}
    return json.dumps(
        {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "profiles": [{"schedulerName": name, **profile} for name in SCHEDULERS],
        }
    )


def played(
    gates: Sequence[str],
    story: Callable[[Scene], Awaitable[None]],
    *plugins: type[Plugin],
    disabled: Iterable[str] = (),
    args: Document | None = None,
) -> None:
    """Run the story in a scene of its own."""

    async def run() -> None:
        scene = Scene(gates, plugins, disabled=disabled, args=args)
        try:
            await story(scene)
        finally:
            await scene.close()

    asyncio.run(run())


def members(count: int, *, group: str = "gang", cpu: str = "1", **more: object) -> list[Pod]:
    """Pods of a group, the first with the highest priority."""
    return [a_pod(f"{group}-{at}", cpu=cpu, group=group, priority=count - at, **more) for at in range(count)]  # type: ignore[arg-type]


class Scene:
    """Objects come by `add`; `run` schedules until no pod is active."""

    def __init__(
        self,
        gates: Iterable[str] = GANGS,
        plugins: Iterable[type[Plugin]] = (),
        *,
        disabled: Iterable[str] = (),
        args: Document | None = None,
    ) -> None:
        """`plugins` come behind the default ones in both profiles; `args`: of plugins by name."""
        self.clock = ManualClock()
        self.client = SceneClient(self.clock)
        on = read_gates(f"{gate}=true" for gate in gates).gates
        registry = catalogue()
        for plugin in plugins:
            registry.add(plugin, "test")
        text = configuration_of(plugins, disabled, args or {})
        configuration = load_configuration(text, source="test", registry=registry, gates=on).configuration
        reporter = LoggingReporter(self.client, self.clock)
        self.events = reporter.log.events
        self.core = build_core(self.client, configuration, registry, clock=self.clock, gates=on, reporter=reporter)
        self.client.core = self.core
        self.scheduler = complete(self.core, cluster_executor(self.core), is_explained=False)
        self.core.informers.preload(lambda _kind: [])
        self._nodes = NodeFeed(self.core.state, self.core.queue)
        self.known: dict[str, Pod] = {}
        """By name, every pod that came."""
        self.cycles = 0
        self.has_placements = on.on("TopologyAwareWorkloadScheduling")

    def add(self, *objects: Node | PodGroup | Pod) -> None:
        for each in objects:
            if isinstance(each, Node):
                self._nodes.found(each)
            elif isinstance(each, PodGroup):
                self.core.informers.store(PodGroup).changed(each)
            else:
                self.known[each.name] = each
                self.core.pods.changed(each)

    def delete(self, *pods: Pod) -> None:
        for pod in pods:
            self.core.pods.deleted(pod)
            self.client.bound.pop(pod.key, None)

    async def run(self) -> None:
        while self.core.queue.counts()["active"]:
            await self.run_one()
            await settle()

    async def run_one(self) -> None:
        """One cycle, and nothing that was started beside it."""
        queued = self.core.queue.pop()
        assert queued is not None
        await self.scheduler.cycle.schedule_one(queued)
        self.cycles += 1

    async def passes(self, seconds: float) -> None:
        """Time passes; what ends by then has its consequences, and pods whose backoff is over are tried."""
        self.clock.advance(seconds)
        await settle()
        self.core.queue.flush()
        await self.run()

    def where(self, pod: Pod) -> str:
        return self.core.queue.where(pod)

    def gated(self) -> list[str]:
        return sorted(each.pod.name for each in self.core.queue.pending() if each.place is Place.GATED)

    def gated_by(self, pod: Pod) -> tuple[str, ...]:
        """Why PreEnqueue holds the pod."""
        [gating] = [each.gating for each in self.core.queue.pending() if each.pod.uid == pod.uid]
        return () if gating is None else gating.reasons

    def waiting(self) -> list[str]:
        """Pods that wait on permit."""
        return sorted(each.pod.name for each in self.core.room)

    def used(self, node: str) -> int:
        """Milli-CPU that pods on the node request."""
        found = self.core.state.node(node)
        assert found is not None
        return int(found.requested("cpu"))

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
