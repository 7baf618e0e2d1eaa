"""Runs a scheduler on virtual time: the real queue, cycles, plugins and preemption, against a cluster in memory.

Requests take no time, and a bound pod runs at once. Backoff, permit, retries and the order of pods are those of the
scheduler.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from operator import attrgetter

from mooring.base.errors import OperatorMistake
from mooring.config import Configuration
from mooring.engine import Decision
from mooring.framework import FeatureGates, Pod
from mooring.framework.registry import Registry
from mooring.queue import Place
from mooring.scheduler.cycle.scheduling_cycle import ClusterExecutor
from mooring.scheduler.shadow.wiring import SilentReporter
from mooring.scheduler.watching.feeds import NodeFeed
from mooring.scheduler.wiring import Core, build_core, cluster_executor, complete
from mooring.simulator.outcome import PodOutcome, ResourceUse, SimulationResult
from mooring.simulator.scenario import Arrival, Cluster, Workload
from mooring.simulator.simulated_client import SimulatedClient
from mooring.simulator.usage import Usage
from mooring.simulator.virtual_time import SimulatedClock, VirtualTimeLoop

START = 1_700_000_000.0
"""When simulations begin, in seconds since the epoch."""
SETTLE_SECONDS = 600.0
"""So long after the last change, pods that are still retried (their attempts end by errors) are left pending."""

LOOK_SECONDS, LONG_LOOK_SECONDS = 1.0, 60.0
"""How often it is checked whether the simulation is over; the latter while pods arrive or end."""

Progress = Callable[[int, float], None]
"""Called now and then with the number of pods that have arrived and the simulated seconds."""


def simulate(
    cluster: Cluster,
    workload: Workload,
    configuration: Configuration,
    registry: Registry,
    *,
    gates: FeatureGates | None = None,
    progress: Progress | None = None,
) -> SimulationResult:
    """Let the workload arrive at the cluster, until no pod arrives, ends or is retried any more.

    Ctrl-C ends it earlier, with what was computed so far.
    """
    _check_names(cluster, workload)
    loop = VirtualTimeLoop()
    simulation = _Simulation(loop, cluster, workload, progress)
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        return runner.run(simulation.run(configuration, registry, gates))


def _check_names(cluster: Cluster, workload: Workload) -> None:
    """A second pod of a name would replace the first."""
    seen = {pod.key for pod in cluster.pods}
    for arrival in workload:
        if arrival.pod.key in seen:
            raise OperatorMistake(
                f"There are two pods {arrival.pod.key}: names in the cluster and the workload must differ."
            )
        seen.add(arrival.pod.key)


class _Simulation:
    def __init__(self, loop: VirtualTimeLoop, cluster: Cluster, workload: Workload, progress: Progress | None) -> None:
        self._loop = loop
        self._clock = SimulatedClock(loop, START)
        self._client = SimulatedClient(self._clock)
        self._cluster = cluster
        self._arrivals = iter(sorted(workload, key=attrgetter("at")))
        self._next: Arrival | None = None
        self._outcomes: dict[str, PodOutcome] = {}
        """By uid, in the order of arrival."""
        self._durations: dict[str, float] = {}
        self._departures = 0
        """How many pods run that will end."""
        self._usage = Usage(cluster.nodes)
        self._changed_at = 0.0
        self._attempts = self._preemptions = 0
        self._progress = progress
        self._core: Core

    async def run(
        self, configuration: Configuration, registry: Registry, gates: FeatureGates | None
    ) -> SimulationResult:
        names = [profile.scheduler_name for profile in configuration.profiles]
        reporter = _Reporter(self._client, names, self._failed)
        self._core = core = build_core(
            self._client, configuration, registry, clock=self._clock, reporter=reporter, gates=gates
        )
        executor = _Executor.of(cluster_executor(core), self._decided)
        scheduler = complete(core, executor, is_explained=False)
        self._client.on_bound, self._client.on_deleted = self._bound, self._deleted
        self._load()
        loop, is_interrupted = asyncio.create_task(scheduler.schedule_forever()), False
        try:
            for instance in core.assembly.current.instances.values():
                await scheduler.lifecycle.start(instance)
            self._arrive()
            await self._settled(loop)
        except asyncio.CancelledError:
            is_interrupted = True
        finally:
            loop.cancel()
            await asyncio.wait([loop])
            await scheduler.shutdown.run()
        return self._outcome(is_interrupted=is_interrupted)

    def _load(self) -> None:
        core = self._core
        nodes = NodeFeed(core.state, core.queue)
        for node in self._cluster.nodes:
            nodes.found(node)
        core.informers.preload(self._cluster.objects_of)
        for pod in self._cluster.pods:
            self._client.pods[pod.key] = pod
            core.pods.found(pod)
            if pod.spec.node_name:
                self._usage.add(0.0, pod.requests.amounts, was_pending=False)
            else:
                self._arrived(pod)

    # Arrivals and departures

    def _arrive(self) -> None:
        """Create the pods whose time has come, and set a timer for the next one."""
        now = self._loop.time()
        for arrival in self._due(now):
            pod = arrival.pod
            self._client.pods[pod.key] = pod
            if arrival.duration is not None:
                self._durations[pod.uid] = arrival.duration
            self._arrived(pod)
            self._core.pods.changed(pod)
        if self._next is not None:
            self._loop.call_at(self._next.at, self._arrive)
        if self._progress is not None:
            self._progress(len(self._outcomes), now)

    def _due(self, now: float) -> Iterator[Arrival]:
        while True:
            self._next = arrival = self._next or next(self._arrivals, None)
            if arrival is None or arrival.at > now:
                return
            self._next = None
            yield arrival

    def _arrived(self, pod: Pod) -> None:
        self._outcomes[pod.uid] = PodOutcome(pod.namespace, pod.name, self._loop.time())
        self._usage.arrive(self._loop.time())
        self._changed_at = self._loop.time()

    def _bound(self, pod: Pod) -> None:
        now = self._loop.time()
        self._core.pods.changed(pod)
        self._changed_at = now
        self._usage.add(now, pod.requests.amounts)
        if (outcome := self._outcomes.get(pod.uid)) is not None:
            outcome.bound_at, outcome.node, outcome.message = now, pod.spec.node_name, ""
        if (duration := self._durations.pop(pod.uid, None)) is not None:
            self._departures += 1
            self._loop.call_later(duration, self._depart, pod)

    def _depart(self, pod: Pod) -> None:
        self._departures -= 1
        if self._client.pods.get(pod.key) is pod:
            del self._client.pods[pod.key]
            self._gone(pod)

    def _deleted(self, pod: Pod) -> None:
        """By the scheduler: it was preempted."""
        self._preemptions += 1
        if (outcome := self._outcomes.get(pod.uid)) is not None:
            outcome.is_preempted = True
        self._gone(pod)

    def _gone(self, pod: Pod) -> None:
        now = self._loop.time()
        self._core.pods.deleted(pod)
        self._changed_at = now
        self._usage.remove(now, pod.requests.amounts)
        if (outcome := self._outcomes.get(pod.uid)) is not None:
            outcome.ended_at = now

    # What the scheduler decides, and the end

    def _decided(self, pod: Pod, decision: Decision) -> None:
        self._attempts += 1
        if (outcome := self._outcomes.get(pod.uid)) is not None:
            outcome.attempts += 1

    def _failed(self, pod: Pod, message: str) -> None:
        if (outcome := self._outcomes.get(pod.uid)) is not None:
            outcome.message = message

    async def _settled(self, loop: asyncio.Task[None]) -> None:
        """Until no pod arrives, ends or is retried any more."""
        while True:
            # Time passes only when all work of the moment is done.
            is_moving = self._next is not None or self._departures > 0
            await asyncio.sleep(LONG_LOOK_SECONDS if is_moving else LOOK_SECONDS)
            if loop.done():
                loop.result()
            if is_moving or self._is_busy():
                continue
            backoff = self._core.queue.counts()[Place.BACKOFF.value]
            if not backoff or self._loop.time() - self._changed_at > SETTLE_SECONDS:
                return

    def _is_busy(self) -> bool:
        core = self._core
        return bool(core.queue.counts()[Place.ACTIVE.value] or len(core.bindings) or len(core.preemption))

    def _outcome(self, *, is_interrupted: bool) -> SimulationResult:
        usage = self._usage
        usage.finish(self._changed_at)
        return SimulationResult(
            list(self._outcomes.values()),
            self._changed_at,
            self._attempts,
            self._preemptions,
            {resource: ResourceUse(usage.mean(resource), usage.peak(resource)) for resource in usage.resources},
            usage.timeline,
            is_interrupted,
        )


class _Reporter(SilentReporter):
    """Passes why an attempt failed to the simulation, instead of writing it as an event and a condition."""

    def __init__(self, client: SimulatedClient, profiles: list[str], on_failed: Callable[[Pod, str], None]) -> None:
        super().__init__(client, profiles)
        self._on_failed = on_failed

    def failed(self, pod: Pod, message: str) -> None:
        self._on_failed(pod, message)


class _Executor(ClusterExecutor):
    """Carries out decisions as the scheduler does, and passes them to the simulation instead of `mooring explain`."""

    on_decided: Callable[[Pod, Decision], None]

    @classmethod
    def of(cls, executor: ClusterExecutor, on_decided: Callable[[Pod, Decision], None]) -> _Executor:
        fields = {name: getattr(executor, name) for name in executor.__struct_fields__}
        return cls(**fields, on_decided=on_decided)

    def record(self, pod: Pod, decision: Decision) -> None:
        self.on_decided(pod, decision)
