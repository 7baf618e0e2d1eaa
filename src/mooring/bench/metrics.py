"""What metrics cost an attempt: the calls alone, beside the CPU that an attempt takes.

The calls are those that the loop, the queue and the binding make for a pod that is placed at once; they are repeated
with what a real decision wrote down. An attempt is what a scheduler's process spends on a pod from the queue to its
binding, with an embedded API server in a process of its own; for comparison, the decision alone.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import uvloop

from mooring.base.clock import SystemClock
from mooring.base.memory import keep_collector_calm
from mooring.bench.apiserver import ServerAddress, server
from mooring.bench.decide import default_profile, fill
from mooring.bench.workloads import WORKLOADS
from mooring.client import ApiClient, Connection
from mooring.config import load_configuration
from mooring.engine import Decision, DecisionCache, Permitted, Profile, decide
from mooring.engine.extension_point import ExtensionPoint
from mooring.engine.plugin_call import calling
from mooring.framework import FeatureGates, Plugin, Point
from mooring.objects import KubeObject
from mooring.plugins.catalogue import catalogue
from mooring.scheduler import build_scheduler
from mooring.scheduler.metrics import AttemptResult, SchedulerMetrics
from mooring.testing import Services

ROUNDS = 9
EVENTS_PER_POD = 2
"""What the watch shows of a pod until it is bound: that it is there, and that it has its node."""
WARM_UP = 50
PATIENCE_SECONDS = 120.0
POLL_SECONDS = 0.02
AT_ONCE = 64
_CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: false}
"""


@dataclass(frozen=True)
class MetricsCost:
    """In millionths of a second of CPU."""

    metric_micros: float
    decide_micros: float
    attempt_micros: float
    nodes: int
    plugin_calls: int

    @property
    def share_of_attempt(self) -> float:
        return self.metric_micros / self.attempt_micros


def measure(nodes: int, pods: int) -> MetricsCost:
    """On this machine, best of a few rounds: whatever else runs here only adds."""
    services, workload = Services(), WORKLOADS["basic"]
    profile = default_profile(services)
    fill(services, workload, nodes, 0)
    keep_collector_calm()
    waiting = [workload.incoming(number) for number in range(WARM_UP)]
    cache = DecisionCache()
    deciding = _best(
        lambda number: decide(profile, waiting[number % WARM_UP], services.state, seed=number, cache=cache), WARM_UP
    )
    metrics = SchedulerMetrics(FeatureGates(), SystemClock())
    decision = decide(profile, waiting[0], services.state, cache=cache, watch=metrics.attempts.begin())
    calls = _Calls(metrics, profile, decision)
    alone = _best(calls.of_an_attempt, 1000) - _best(calls.without_metrics, 1000)
    return MetricsCost(alone, deciding, _attempt_micros(nodes, pods), nodes, calls.count)


def _best(call: Callable[[int], object], times: int) -> float:
    """The least CPU that a call took, in millionths of a second."""
    found = []
    for _ in range(ROUNDS):
        began = time.process_time_ns()
        for number in range(times):
            call(number)
        found.append((time.process_time_ns() - began) / times / 1000)
    return min(found)


class _Calls:
    """The calls of one attempt."""

    def __init__(self, metrics: SchedulerMetrics, profile: Profile, decision: Decision) -> None:
        watch = decision.cycle.watch
        assert watch is not None, "the decision was not timed"
        by_name = {plugin.name: plugin for plugin in profile.plugins}
        self._runs = [(run.point, [by_name[name] for name in run.plugins]) for run in watch.runs]
        self._metrics, self._profile, self._decision = metrics, profile, decision
        self._binders = profile.at(Point.BIND)
        self.count = sum(len(plugins) for _, plugins in self._runs)

    def of_an_attempt(self, _number: int) -> None:
        metrics, profile, decision = self._metrics, self._profile, self._decision
        for _ in range(EVENTS_PER_POD):
            began = metrics.now()
            metrics.handled("AssignedPodAdd", metrics.now() - began)
        began = metrics.now()
        metrics.gated(profile.name, "Success", metrics.now() - began)
        metrics.entered("active", "UnschedulablePodAdd")
        decision.cycle.watch = metrics.attempts.begin()
        self._run_plugins()
        metrics.attempts.decided(profile, decision)
        metrics.attempts.placed(profile, decision, Permitted({}))
        metrics.attempts.over(decision)
        self._turn(ExtensionPoint.BIND, self._binders)
        metrics.requests.responded("POST", "127.0.0.1:6443", "201", 0.001, 200)
        metrics.requests.received("POST", "127.0.0.1:6443", 100)
        metrics.attempted(AttemptResult.SCHEDULED, profile.name, began)
        metrics.bound(1, began, after_flush=False)
        metrics.attempts.ended(decision)

    def without_metrics(self, _number: int) -> None:
        """What of it there would be in any case."""
        self._decision.cycle.watch = None
        self._run_plugins()
        self._turn(ExtensionPoint.BIND, self._binders)

    def _run_plugins(self) -> None:
        for point, plugins in self._runs:
            self._turn(point, plugins)

    def _turn(self, point: ExtensionPoint, plugins: Iterable[Plugin]) -> None:
        with calling(self._decision.cycle, None, point) as call:
            for plugin in plugins:
                call.switch_to(plugin)


def _attempt_micros(nodes: int, pods: int) -> float:
    """The CPU that a scheduler spends on a pod, from the queue to its node."""
    with server() as (address, _):
        return uvloop.run(_bind_all(address, nodes, pods))


async def _bind_all(address: ServerAddress, nodes: int, pods: int) -> float:
    registry = catalogue()
    configuration = load_configuration(_CONFIG, source="the benchmark", registry=registry).configuration
    connection = Connection(
        server=address.url, source="the benchmark", ca_data=address.ca_pem.encode(), token=address.token
    )
    workload, all_there = WORKLOADS["basic"], asyncio.Event()

    async def may_schedule() -> None:
        await all_there.wait()

    async with ApiClient(connection) as client, asyncio.TaskGroup() as tasks:
        await _create(client, [workload.node(number) for number in range(nodes)])
        await _create(client, [workload.incoming(number) for number in range(pods)])
        scheduler = build_scheduler(client, configuration, registry, may_schedule=may_schedule)
        tasks.create_task(scheduler.run())
        await scheduler.ready.wait()
        keep_collector_calm()
        began = time.process_time()
        all_there.set()
        async with asyncio.timeout(PATIENCE_SECONDS):
            while scheduler.state.pod_counts() != (0, pods):  # noqa: ASYNC110  # an event would cost each pod something
                await asyncio.sleep(POLL_SECONDS)
        took = time.process_time() - began
        scheduler.stop()
    return took / pods * 1e6


async def _create(client: ApiClient, objects: Sequence[KubeObject]) -> None:
    for start in range(0, len(objects), AT_ONCE):
        await asyncio.gather(*(client.create(each.KIND, _document(each)) for each in objects[start : start + AT_ONCE]))


def _document(found: KubeObject) -> dict[str, Any]:
    """Without what only a server gives."""
    document: dict[str, Any] = msgspec.to_builtins(found)
    for field in ("uid", "resourceVersion"):
        document["metadata"].pop(field, None)
    return document
