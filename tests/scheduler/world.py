"""Queue, state, feeds, failures and evictions around a server that only records its requests."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, cast

from mooring.base.clock import ManualClock
from mooring.framework import Action, FeatureGates, Hint
from mooring.framework.queued_pod import QueuedPod
from mooring.objects import Pod
from mooring.plugins.default.default_preemption import DefaultPreemption
from mooring.queue import ProfileRules, SchedulingQueue
from mooring.queue.queued_pod_info import QueuedPodInfo
from mooring.scheduler.cycle.binding_cycle import BindingCycles
from mooring.scheduler.cycle.failure_handler import FailureHandler
from mooring.scheduler.cycle.permit import PermitRoom
from mooring.scheduler.cycle.preemption import Preemption, PreemptionsInProgress
from mooring.scheduler.cycle.reporting import Reporter
from mooring.scheduler.introspection.decision_log import DecisionLog
from mooring.scheduler.metrics import SchedulerMetrics
from mooring.scheduler.plugin_runtime.api_binder import ApiBinder
from mooring.scheduler.plugin_runtime.plugin_timeouts import PluginCaller
from mooring.scheduler.watching.feeds import PodFeed
from mooring.state import State
from mooring.testing import Services, a_plugin


class Server:
    """Stands where the client stands, and records its requests."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.requested: list[tuple[str, str]] = []
        self.bodies: list[dict[str, Any]] = []
        self.refusals: dict[tuple[str, str], Exception] = {}
        self.held: dict[tuple[str, str], asyncio.Event] = {}
        """Requests that return when the test sets the event."""

    async def _request(self, verb: str, name: str) -> None:
        self.requested.append((verb, name))
        if (held := self.held.get((verb, name))) is not None:
            await held.wait()
        if (refusal := self.refusals.get((verb, name))) is not None:
            raise refusal

    async def patch(
        self, kind: Any, name: str, namespace: str, body: dict[str, Any], *, subresource: str | None = None
    ) -> dict[str, Any]:
        self.bodies.append(body)
        await self._request("patch", name)
        return {}

    async def delete(self, kind: Any, name: str, namespace: str, *, uid: str | None = None) -> None:
        self.bodies.append({"uid": uid})
        await self._request("delete", name)


class World:
    """Refused by Fit, a pod is woken when a pod goes; DefaultPreemption keeps it out while room is being made."""

    def __init__(self, sort_key: Callable[[QueuedPod], Any] = lambda queued: queued.timestamp) -> None:
        self.server = cast(Any, Server())
        self.state = State()
        self.under_way = PreemptionsInProgress(self.state)
        services = Services()
        services.preemptions = self.under_way  # type: ignore[assignment]
        gate = a_plugin(DefaultPreemption, services)
        rules = ProfileRules(
            hints={"Fit": [Hint(Pod, Action.DELETE)], "DefaultPreemption": list(gate.events())},
            pre_enqueue=[("DefaultPreemption", gate.pre_enqueue)],
        )
        self.queue = SchedulingQueue(self.server.clock, sort_key=sort_key, profiles={"default-scheduler": rules})
        self.reporter = Reporter(self.server, self.server.clock, ["default-scheduler"])
        self.pods = PodFeed(self.state, self.queue, ["default-scheduler"], [self.reporter])
        self.metrics = SchedulerMetrics(FeatureGates(), self.server.clock)
        self.failures = FailureHandler(self.queue, self.pods, self.reporter, self.metrics)
        self.room = PermitRoom(self.server.clock)
        self.bindings = BindingCycles(
            self.state,
            self.queue,
            self.room,
            self.failures,
            self.reporter,
            DecisionLog(self.server.clock),
            self.metrics,
            PluginCaller(self.server.clock),
            ApiBinder(self.server, self.server.clock),
        )
        self.evictions = Preemption(
            self.server,
            self.server.clock,
            self.under_way,
            self.queue,
            self.pods,
            self.state,
            self.room,
            self.bindings,
            self.reporter,
            self.metrics,
        )

    def popped(self, pod: Pod) -> QueuedPodInfo:
        self.pods.changed(pod)
        waiting = self.queue.pop()
        assert waiting is not None
        return waiting

    @property
    def events(self) -> list[tuple[str, str]]:
        return [(series.reason, series.regarding.name) for series in self.reporter.recorder._series.values()]

    @property
    def activated(self) -> bool:
        return self.queue.counts()["active"] == 1

    async def settle(self) -> None:
        for _ in range(12):
            await asyncio.sleep(0)
