"""Runs a scheduler on virtual time: the real queue, cycles, plugins and preemption, against a cluster in memory.

Requests take no time, and a bound pod runs at once. Backoff, permit, retries and the order of pods are those of the
scheduler.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import math
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Literal, TypeAlias

import msgspec

from mooring.base.errors import OperatorMistake
from mooring.base.log import configure, settings
from mooring.config import Configuration
from mooring.engine import Decision
from mooring.framework import FeatureGates, Pod
from mooring.framework.registry import Registry
from mooring.objects.quantity import BadQuantity
from mooring.objects.requests import requests_of
from mooring.queue import Place
from mooring.recording import Recorder
from mooring.scheduler.cycle.executor import ClusterExecutor
from mooring.scheduler.plugin_runtime.assembly import assemble
from mooring.scheduler.plugin_runtime.plugin_errors import counted_errors
from mooring.scheduler.shadow.wiring import SilentReporter
from mooring.scheduler.watching.feeds import NodeFeed
from mooring.scheduler.wiring import ATTEMPT_TIMEOUT_SECONDS, Core, build_core, cluster_executor, complete
from mooring.simulator.configurations import AnyConfiguration, PluginSource, configured, registry_of
from mooring.simulator.event_loops import in_own_loop
from mooring.simulator.influence import InfluenceCounts
from mooring.simulator.move_explainer import Baseline, MoveExplainer
from mooring.simulator.outcome import PluginFaults, PodOutcome, ResourceUse, SimulatedEviction, SimulationResult
from mooring.simulator.outside_data import OutsideData
from mooring.simulator.scenario import Arrival, Cluster, Workload, check_cluster
from mooring.simulator.serving_profiles import (
    for_one_moment,
    for_simulation,
    profile_names,
    schedulers_of,
    unserved_note,
    unserved_reason,
)
from mooring.simulator.simulated_client import SimulatedClient
from mooring.simulator.simulated_storage import SimulatedStorage
from mooring.simulator.spread import Spread, owner_of
from mooring.simulator.usage import Usage, typical_pods
from mooring.simulator.virtual_time import START, SimulatedClock, VirtualTimeLoop

SETTLE_SECONDS = 600.0
"""So long after the last change, pods that are still retried (their attempts end by errors) are left pending."""

LONGEST_WAIT_SECONDS = 3600.0
"""No binding takes longer: plugins wait on permit for 15 minutes at most, for volumes for ten by default."""
MOST_AT_A_MOMENT, REPEATED_SECONDS, REPEATED_SHARE = 10, 0.1, 0.1
"""So often a pod is tried at one moment. Then so many seconds pass, or this share of the time since the last change."""
LOOK_SECONDS, LONG_LOOK_SECONDS = 1.0, 60.0
"""How often it is checked whether the simulation is over; the latter while pods arrive or end."""

Progress = Callable[[int, float], None]
"""Called after each decision with the number of pods that were tried so far and the simulated seconds."""

OnDecided = Callable[[Pod, Decision, float], None]
"""The pod, the decision about it, and the simulated seconds. Its scores can be read until the next decision."""

OnPod = Callable[[Pod, float], None]
"""The pod as the API server has it, with what plugins wrote to it, and the simulated seconds."""

Ties: TypeAlias = int | Literal["first"] | None
"""Which of several best nodes is chosen. None: one after the other, as the scheduler does; an int: at random, by this
seed; "first": the one that the cluster lists first."""


def simulate(
    cluster: Cluster,
    workload: Sequence[Arrival] | Iterator[Arrival],
    configuration: AnyConfiguration = None,
    *,
    plugins: Sequence[PluginSource] = (),
    registry: Registry | None = None,
    gates: FeatureGates | None = None,
    ties: Ties = None,
    influence: bool = True,
    attempt_timeout: float = ATTEMPT_TIMEOUT_SECONDS,
    time_limit: float = math.inf,
    outside_data: OutsideData | None = None,
    baseline: Baseline | None = None,
    progress: Progress | None = None,
    on_decided: OnDecided | None = None,
    on_bound: OnPod | None = None,
    on_ended: OnPod | None = None,
    recorder: Recorder | None = None,
) -> SimulationResult:
    """Let the workload arrive at the cluster, until no pod arrives, ends or is retried any more.

    `plugins` can be named by the configuration; without a configuration, classes among them join the default profile.
    `registry` has the plugins of a configuration that is loaded already. `influence`: whether it is counted how often
    each plugin made a difference. `attempt_timeout` is how many seconds of real time plugins may compute about one pod;
    0: any time. With a `baseline`, the result explains which pods go elsewhere than there.
    With `outside_data`, plugins that fetch data by HTTP decide by what they fetched before; without it, pods of their
    profiles cannot be simulated, because time passes.
    After `time_limit` seconds of real time it ends as by Ctrl-C, with what was computed so far.
    `on_decided` is called after every decision, before it is carried out; `on_bound` once a pod is on its node,
    `on_ended` once it is gone from there. A `recorder` gets what `mooring replay` reads.
    Ctrl-C ends the simulation earlier, with what was computed so far.

    An iterator yields pods in the order of time, under names of their own. Its next one is read when the one before has
    arrived: so pods can arrive until one is refused.
    """
    check_cluster(cluster, "simulate(cluster, workload)")
    if isinstance(workload, Workload):
        cluster = cluster.with_documents(workload.documents)
    _check_pods(cluster, [] if isinstance(workload, Iterator) else workload)
    registry = registry if registry is not None else registry_of(plugins, configuration)
    loaded = configured(configuration, registry, plugins, gates)
    notes: list[str] = []
    schedulers = None if isinstance(workload, Iterator) else schedulers_of(cluster, (each.pod for each in workload))
    if outside_data is None:
        loaded = for_simulation(loaded, registry, schedulers)
    else:
        loaded, notes = for_one_moment(loaded, registry, schedulers)

    def run() -> SimulationResult:
        loop = VirtualTimeLoop()
        counts = InfluenceCounts() if influence else None
        callbacks = _Callbacks(progress, on_decided, on_bound, on_ended)
        simulation = _Simulation(
            loop, cluster, workload, callbacks, counts, baseline, attempt_timeout, time_limit, outside_data, notes
        )
        with _quiet(), asyncio.Runner(loop_factory=lambda: loop) as runner:
            return runner.run(simulation.run(loaded, registry, gates, _seeds(ties), recorder))

    return in_own_loop(run)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """What the scheduler logs about each attempt is counted in the result; with -v=1 it is logged as well."""
    before = settings().verbosity
    if before == 0:
        configure(verbosity=-1)
    try:
        yield
    finally:
        configure(verbosity=before)


def _seeds(ties: Ties) -> Iterator[int]:
    """A seed for each decision."""
    if ties is None:
        return itertools.count(1)
    if ties == "first":
        return itertools.repeat(0)
    generator = random.Random(ties)
    return iter(lambda: generator.getrandbits(32), None)


def _check_pods(cluster: Cluster, workload: Sequence[Arrival]) -> None:
    """A second pod of a name would replace the first."""
    seen: set[str] = set()
    for pod in itertools.chain(cluster.pods, (arrival.pod for arrival in workload)):
        if pod.key in seen:
            raise OperatorMistake(f"There are two pods {pod.key}: names in the cluster and the workload must differ.")
        seen.add(pod.key)
        try:
            requests_of(pod)
        except BadQuantity as error:
            raise OperatorMistake(f"The requests of pod {pod.key} cannot be read: {error}.") from error


class _Callbacks(msgspec.Struct, frozen=True):
    """What the caller of `simulate` observes."""

    progress: Progress | None
    on_decided: OnDecided | None
    on_bound: OnPod | None
    on_ended: OnPod | None


class _Simulation:
    def __init__(
        self,
        loop: VirtualTimeLoop,
        cluster: Cluster,
        workload: Sequence[Arrival] | Iterator[Arrival],
        callbacks: _Callbacks,
        influence: InfluenceCounts | None,
        baseline: Baseline | None,
        attempt_timeout: float,
        time_limit: float,
        outside_data: OutsideData | None,
        notes: list[str],
    ) -> None:
        self._deadline = time.monotonic() + time_limit
        self._task: asyncio.Task[SimulationResult] | None = None
        self._loop = loop
        self._outside_data, self._notes = outside_data, notes
        # What was fetched keeps its age.
        self._clock = SimulatedClock(loop, (outside_data.at if outside_data is not None else None) or START)
        self._client = SimulatedClient(self._clock)
        self._cluster = cluster
        # Of pods that are made as they arrive, nothing is known before.
        known = [] if isinstance(workload, Iterator) else sorted(workload, key=attrgetter("at"))
        self._arrivals = workload if isinstance(workload, Iterator) else iter(known)
        self._next: Arrival | None = None
        self._outcomes: dict[str, PodOutcome] = {}
        """By uid, in the order of arrival."""
        self._unserved: list[str] = []
        """The schedulerNames that no profile has, of each pod."""
        self._durations: dict[str, float] = {}
        self._departures = 0
        """How many pods run that will end."""
        self._usage = Usage(cluster.nodes, _typical(cluster, known))
        self._spread = Spread(cluster.nodes)
        self._preemptors: dict[str, str] = {}
        """The pod that a victim makes room for, by the victim's uid."""
        self._evictions: list[SimulatedEviction] = []
        self._changed_at = 0.0
        self._attempts = self._tried = self._preemptions = 0
        self._moment = 0.0
        self._at_the_moment: Counter[str] = Counter()
        """How often each pod was tried, by uid."""
        self._call = callbacks
        self._influence = influence
        self._baseline = baseline
        self._attempt_timeout = attempt_timeout
        self._moves: MoveExplainer | None = None
        self._fault_examples: dict[tuple[str, str], str] = {}
        """The first message, by plugin and point."""
        self._core: Core
        self._configuration: Configuration

    async def run(
        self,
        configuration: Configuration,
        registry: Registry,
        gates: FeatureGates | None,
        seeds: Iterator[int],
        recorder: Recorder | None,
    ) -> SimulationResult:
        self._task = asyncio.current_task()
        self._configuration, names = configuration, profile_names(configuration)
        reporter = _Reporter(self._client, names, self._failed)
        self._core = core = build_core(
            self._client,
            configuration,
            registry,
            clock=self._clock,
            reporter=reporter,
            gates=gates,
            attempt_timeout_seconds=self._attempt_timeout,
            recorder=recorder,
        )
        if self._outside_data is not None:
            core.services.http.is_offline = True
            self._notes += self._outside_data.publish(core.assembly.current)
        executor = _Executor.of(cluster_executor(core), self._decided)
        scheduler = complete(core, executor, is_explained=False, seeds=seeds)
        self._client.on_bound, self._client.on_deleted = self._bound, self._deleted
        instances = dict(core.assembly.current.instances)
        if (baseline := self._baseline) is not None:
            theirs = assemble(baseline.configuration, baseline.registry, core.services, kept=instances)
            self._moves = MoveExplainer(baseline, theirs.profiles, self._attempt_timeout)
            instances |= theirs.instances
        self._load()
        loop, is_interrupted = asyncio.create_task(scheduler.schedule_forever()), False
        try:
            for instance in instances.values():
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
        storage = SimulatedStorage(core.informers, self._client.next_version)
        core.informers.preload(self._cluster.lasting_objects_of)
        self._client.attach(storage)
        storage.bind_immediate()
        for pod in self._cluster.pods:
            self._client.pods[pod.key] = pod
            core.pods.found(pod)
            if pod.spec.node_name:
                self._usage.add(0.0, pod.spec.node_name, pod.requests.amounts, was_pending=False)
                self._spread.add(owner_of(pod), pod.spec.node_name)
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

    def _due(self, now: float) -> Iterator[Arrival]:
        while True:
            self._next = arrival = self._next or next(self._arrivals, None)
            if arrival is None or arrival.at > now:
                return
            self._next = None
            yield arrival

    def _arrived(self, pod: Pod) -> None:
        outcome = PodOutcome(pod.namespace, pod.name, self._loop.time(), owner=owner_of(pod))
        self._outcomes[pod.uid] = outcome
        if (name := pod.spec.scheduler_name) not in profile_names(self._configuration):
            outcome.message = unserved_reason(pod)
            self._unserved.append(name)
        self._usage.arrive(self._loop.time())
        self._changed_at = self._loop.time()

    def _bound(self, pod: Pod) -> None:
        now, node = self._loop.time(), pod.spec.node_name or ""
        self._core.pods.changed(pod)
        self._changed_at = now
        self._usage.add(now, node, pod.requests.amounts)
        self._spread.add(owner_of(pod), node)
        if (outcome := self._outcomes.get(pod.uid)) is not None:
            outcome.bound_at, outcome.node, outcome.message = now, pod.spec.node_name, ""
        if (duration := self._durations.pop(pod.uid, None)) is not None:
            self._departures += 1
            self._loop.call_later(duration, self._depart, pod)
        if self._call.on_bound is not None:
            self._call.on_bound(pod, now)

    def _depart(self, pod: Pod) -> None:
        self._departures -= 1
        if self._client.pods.get(pod.key) is pod:
            del self._client.pods[pod.key]
            self._gone(pod)

    def _deleted(self, pod: Pod) -> None:
        """By the scheduler: it was preempted."""
        self._preemptions += 1
        preemptor = self._preemptors.pop(pod.uid, "")
        self._evictions.append(SimulatedEviction(self._loop.time(), pod.key, preemptor, pod.spec.node_name or ""))
        if (outcome := self._outcomes.get(pod.uid)) is not None:
            outcome.is_preempted, outcome.preempted_by = True, preemptor
        self._gone(pod)

    def _gone(self, pod: Pod) -> None:
        now = self._loop.time()
        self._core.pods.deleted(pod)
        self._changed_at = now
        if node := pod.spec.node_name:
            self._usage.remove(now, node, pod.requests.amounts)
            self._spread.remove(owner_of(pod), node)
        else:
            self._usage.withdraw(now)
        if (outcome := self._outcomes.get(pod.uid)) is not None:
            outcome.ended_at = now
        if self._call.on_ended is not None:
            self._call.on_ended(pod, now)

    # What the scheduler decides, and the end

    def _decided(self, pod: Pod, decision: Decision) -> None:
        self._attempts += 1
        self._let_time_pass(pod)
        if (outcome := self._outcomes.get(pod.uid)) is not None:
            outcome.attempts += 1
            self._tried += outcome.attempts == 1
        if time.monotonic() > self._deadline and self._task is not None:
            self._task.cancel()
        if self._call.progress is not None:
            self._call.progress(self._tried, self._loop.time())
        if self._influence is not None:
            self._influence.add(decision)
        if (fault := decision.fault) is not None:
            self._fault_examples.setdefault((fault.plugin, fault.point), str(fault))
        if decision.node is None and (plan := decision.plan) is not None:
            self._preemptors.update((victim.uid, pod.key) for victim in plan.evict)
        if self._moves is not None:
            self._moves.add(pod, decision, self._loop.time())
        if self._call.on_decided is not None:
            self._call.on_decided(pod, decision, self._loop.time())

    def _let_time_pass(self, pod: Pod) -> None:
        """Pods may wake each other at once, for ever: in a cluster each attempt takes some time, here none."""
        if (now := self._loop.time()) != self._moment:
            self._moment = now
            self._at_the_moment.clear()
        self._at_the_moment[pod.uid] += 1
        if self._at_the_moment[pod.uid] > MOST_AT_A_MOMENT:
            self._loop.advance(max(REPEATED_SECONDS, REPEATED_SHARE * (now - self._changed_at)))

    def _failed(self, pod: Pod, message: str) -> None:
        if (outcome := self._outcomes.get(pod.uid)) is not None:
            outcome.message = message

    async def _settled(self, loop: asyncio.Task[None]) -> None:
        """Until no pod arrives, ends or is retried any more."""
        while True:
            # Time passes only when all work of the moment is done.
            await asyncio.sleep(LONG_LOOK_SECONDS if self._is_moving() else LOOK_SECONDS)
            if loop.done():
                loop.result()
            if self._is_moving():  # of pods that were bound meanwhile, some may end
                continue
            core, quiet = self._core, self._loop.time() - self._changed_at
            counts = core.queue.counts()
            is_tried = bool(counts[Place.ACTIVE.value] or counts[Place.BACKOFF.value])
            if len(core.bindings) or len(core.preemption):
                if quiet > LONGEST_WAIT_SECONDS:
                    return
            elif not (is_tried or core.queue.has_retries) or quiet > SETTLE_SECONDS:
                return

    def _is_moving(self) -> bool:
        return self._next is not None or self._departures > 0

    def _outcome(self, *, is_interrupted: bool) -> SimulationResult:
        usage, pods = self._usage, list(self._outcomes.values())
        for uid, outcome in self._outcomes.items():
            if outcome.bound_at is None and not outcome.message:
                outcome.message = self._gating(uid)
        usage.finish(self._changed_at)
        return SimulationResult(
            pods,
            self._changed_at,
            self._attempts,
            self._preemptions,
            {resource: self._use(resource) for resource in usage.resources},
            usage.timeline,
            is_interrupted,
            self._evictions,
            self._spread.owners(),
            self._influence.plugins() if self._influence is not None else [],
            self._faults(),
            self._moves.moves(pods) if self._moves is not None else [],
            self._notes + ([unserved_note(self._unserved, self._configuration)] if self._unserved else []),
        )

    def _gating(self, uid: str) -> str:
        """Why a PreEnqueue plugin keeps the pod out of the queue, if one does."""
        queued = self._core.queue.find(uid)
        return "; ".join(queued.gating.reasons) if queued is not None and queued.gating is not None else ""

    def _faults(self) -> list[PluginFaults]:
        counted = counted_errors(self._core.metrics.plugins)
        return [PluginFaults(*key, count, self._fault_examples.get(key, "")) for key, count in counted.items()]

    def _use(self, resource: str) -> ResourceUse:
        usage, last = self._usage, self._usage.timeline[-1]
        return ResourceUse(
            usage.mean(resource),
            usage.peak(resource),
            usage.mean_fragmentation(resource),
            last.fragmentation.get(resource),
            usage.mean_imbalance(resource),
            last.imbalance.get(resource),
        )


def _typical(cluster: Cluster, workload: Sequence[Arrival]) -> dict[str, Mapping[str, int]]:
    """Of the pods that are to be scheduled, or else of those that are running."""
    arriving = [arrival.pod for arrival in workload]
    waiting = [pod for pod in cluster.pods if not pod.spec.node_name]
    return typical_pods(requests_of(pod).amounts for pod in [*arriving, *waiting] or cluster.pods)


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
