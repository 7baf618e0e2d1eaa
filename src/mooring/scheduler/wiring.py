"""Builds a scheduler from its parts, each with all its dependencies in the constructor.

Read from top to bottom it is the order in which one part depends on another. A shadow passes another executor.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any

import msgspec

from mooring.base.clock import Clock, SystemClock
from mooring.client import ApiClient, Feed, Reflector
from mooring.config import Configuration
from mooring.engine import Decide, decide
from mooring.engine.time_budget import TimeBudget
from mooring.framework import FeatureGates, Pod
from mooring.framework.events import ClusterEvent
from mooring.framework.registry import Registry
from mooring.objects.core import Node
from mooring.objects.pod_groups import PodGroup
from mooring.queue import SchedulingQueue
from mooring.recording import Recorder
from mooring.scheduler.cycle.assumed_pods import AssumedPods
from mooring.scheduler.cycle.binding_cycle import BindingCycles
from mooring.scheduler.cycle.executor import ClusterExecutor, Executor
from mooring.scheduler.cycle.failure_handler import FailureHandler
from mooring.scheduler.cycle.overruns import Overruns, Penalties
from mooring.scheduler.cycle.permit import PermitRoom
from mooring.scheduler.cycle.pod_group_conditions import PodGroupConditions
from mooring.scheduler.cycle.pod_group_cycle import PodGroupCycle
from mooring.scheduler.cycle.pod_group_preemption import PodGroupPreemption
from mooring.scheduler.cycle.pre_checks import PreChecks
from mooring.scheduler.cycle.preemption import ClaimReleases, Preemption, PreemptionsInProgress
from mooring.scheduler.cycle.reporting import Reporter
from mooring.scheduler.cycle.scheduling_cycle import SchedulingCycle
from mooring.scheduler.cycle.unlisted_kinds import PodsAwaitingKinds
from mooring.scheduler.cycle.verification import VerifiedDecisions
from mooring.scheduler.extenders import Documents, Extenders
from mooring.scheduler.introspection.cache_comparer import CacheComparer
from mooring.scheduler.introspection.decision_log import DecisionLog
from mooring.scheduler.introspection.explain_socket import ExplainSocket
from mooring.scheduler.introspection.foreign_bindings import ForeignBindings
from mooring.scheduler.introspection.queries import Queries
from mooring.scheduler.introspection.recorded_changes import (
    RecordingPodFeed,
    RecordingState,
    record_configuration,
    recording_publish,
)
from mooring.scheduler.loop import Scheduler
from mooring.scheduler.metrics import SchedulerMetrics
from mooring.scheduler.metrics.pod_resources import PodResources
from mooring.scheduler.plugin_runtime.api_binder import ApiBinder
from mooring.scheduler.plugin_runtime.assembly import CurrentAssembly, PluginServices, assemble
from mooring.scheduler.plugin_runtime.claim_writer import ApiClaimWriter
from mooring.scheduler.plugin_runtime.http_service import HttpFetcher
from mooring.scheduler.plugin_runtime.lifecycle import Lifecycle
from mooring.scheduler.plugin_runtime.plugin_errors import PluginErrors
from mooring.scheduler.plugin_runtime.plugin_timeouts import PluginCaller
from mooring.scheduler.plugin_runtime.problem_writer import ProblemWriter
from mooring.scheduler.plugin_runtime.supervision import Supervisor
from mooring.scheduler.plugin_runtime.watchdog import Watchdog
from mooring.scheduler.reload.versions import Switched, Versions
from mooring.scheduler.shutdown import SHUTDOWN_SECONDS, Shutdown
from mooring.scheduler.watching.feeds import POD_FIELDS, NodeFeed, PodFeed
from mooring.scheduler.watching.informers import Informers
from mooring.scheduler.watching.observed_feed import ObservedFeed
from mooring.state import State, StatePodGroups

ATTEMPT_TIMEOUT_SECONDS = 5.0
"""How long plugins may compute about one pod."""


async def at_once() -> None: ...


class Core(msgspec.Struct, frozen=True):
    """All of a scheduler but its executor, the watches and the loop."""

    client: ApiClient
    configuration: Configuration
    registry: Registry
    clock: Clock
    metrics: SchedulerMetrics
    state: State
    queue: SchedulingQueue
    wake: asyncio.Event
    reporter: Reporter
    decision_log: DecisionLog
    foreign_bindings: ForeignBindings
    informers: Informers
    awaiting_kinds: PodsAwaitingKinds
    services: PluginServices
    assembly: CurrentAssembly
    pods: PodFeed
    documents: Documents | None
    extenders: Extenders | None
    failures: FailureHandler
    room: PermitRoom
    bindings: BindingCycles
    preemption: Preemption
    claim_releases: ClaimReleases
    conditions: PodGroupConditions
    budget: TimeBudget | None
    decide: Decide
    overruns: Overruns
    on_plugin_fault: Callable[[str, str], None]
    recorder: Recorder | None = None


def build_scheduler(
    client: ApiClient,
    configuration: Configuration,
    registry: Registry,
    *,
    shutdown_seconds: float = SHUTDOWN_SECONDS,
    may_schedule: Callable[[], Awaitable[None]] = at_once,
    **options: Any,
) -> Scheduler:
    """A scheduler with these profiles, against this API server. `options` are those of `build_core`.

    `may_schedule` is awaited when everything is ready: of several replicas, one leads.
    """
    core = build_core(client, configuration, registry, **options)
    return complete(core, cluster_executor(core), shutdown_seconds=shutdown_seconds, may_schedule=may_schedule)


def build_core(
    client: ApiClient,
    configuration: Configuration,
    registry: Registry,
    *,
    clock: Clock | None = None,
    gates: FeatureGates | None = None,
    metrics: SchedulerMetrics | None = None,
    max_unschedulable_seconds: float = 300.0,
    attempt_timeout_seconds: float = ATTEMPT_TIMEOUT_SECONDS,
    verify_every: int = 0,
    reporter: Reporter | None = None,
    recorder: Recorder | None = None,
) -> Core:
    """`metrics` are the caller's where they observe the client's requests too; `reporter` writes events and conditions.

    Plugins are built here; `attempt_timeout_seconds` is how long they may compute about one pod, 0 for any time.
    With `verify_every` each decision of so many is compared with one from scratch; 0: none. A `recorder` gets every
    change and every decision.
    """
    gates = gates or FeatureGates()
    clock = clock if clock is not None else SystemClock()
    metrics = metrics or SchedulerMetrics(gates, clock)
    names = [profile.scheduler_name for profile in configuration.profiles]
    on_plugin_fault = PluginErrors(metrics.plugins).note

    # State, queue, and what is reported
    state = State() if recorder is None else RecordingState(recorder)
    wake = asyncio.Event()
    queue = SchedulingQueue(
        clock,
        max_unschedulable_seconds=max_unschedulable_seconds,
        on_ready=wake.set,
        on_entry=metrics.entered,
        on_fault=on_plugin_fault,
        observer=metrics,
        has_pod_groups=gates.on("GenericWorkload"),
    )
    decision_log = DecisionLog(clock, recorder=recorder, started_by=queue.started_by)
    reporter = reporter or Reporter(client, clock, names, events=client.beside("mooring events"))
    foreign_bindings = ForeignBindings(client, clock, reporter, metrics.plugins)

    # Plugins and their services
    room, in_progress = PermitRoom(clock), PreemptionsInProgress(state)
    awaiting_kinds = PodsAwaitingKinds(queue)
    publish = _publisher(queue, metrics)
    if recorder is not None:
        publish = recording_publish(publish, recorder)
    informers = Informers(client, publish, lambda _kind: awaiting_kinds.activate())
    groups = StatePodGroups(state, informers.store(PodGroup) if gates.on("GenericWorkload") else None)
    binder, claim_writer = ApiBinder(client, clock), ApiClaimWriter(client, informers, clock)
    services = PluginServices(
        clock=clock,
        client=client,
        gates=gates,
        state=state,
        informers=informers,
        supervisor=Supervisor(clock, on_fault=on_plugin_fault),
        room=room,
        http=HttpFetcher(),
        queue=queue,
        preemptions=in_progress,
        metrics=metrics.plugins,
        claim_writer=claim_writer,
        events=reporter,
        problems=ProblemWriter(reporter, state, configuration.leader_election),
        binder=binder,
        pod_groups=groups,
    )
    assembly = CurrentAssembly(assemble(configuration, registry, services))
    queue.set_profiles(
        assembly.current.rules,
        sort_key=assembly.current.sort_key,
        initial_backoff_seconds=configuration.pod_initial_backoff_seconds,
        max_backoff_seconds=configuration.pod_max_backoff_seconds,
    )

    # Pods, and their cycles
    observers = [foreign_bindings, reporter, awaiting_kinds, AssumedPods(state, queue, room)]
    publishes_pending = gates.on("GangScheduling")
    pods = PodFeed(state, queue, names, observers, publishes_pending=publishes_pending)
    if recorder is not None:
        pods = RecordingPodFeed(recorder, state, queue, names, observers, publishes_pending=publishes_pending)
        recorder.use(clock, gates)
        record_configuration(recorder, configuration, assembly.current)
    failures = FailureHandler(queue, pods, reporter, metrics)
    documents, extenders = None, None
    if configuration.extenders:
        documents = Documents(configuration.extenders)
        extenders = Extenders(configuration.extenders, documents, client.transport.fence)
    bindings = BindingCycles(
        state, queue, room, failures, reporter, decision_log, metrics, PluginCaller(clock), binder, extenders
    )
    return Core(
        client=client,
        configuration=configuration,
        registry=registry,
        clock=clock,
        metrics=metrics,
        state=state,
        queue=queue,
        wake=wake,
        reporter=reporter,
        decision_log=decision_log,
        foreign_bindings=foreign_bindings,
        informers=informers,
        awaiting_kinds=awaiting_kinds,
        services=services,
        assembly=assembly,
        pods=pods,
        documents=documents,
        extenders=extenders,
        failures=failures,
        room=room,
        bindings=bindings,
        preemption=Preemption(client, clock, in_progress, queue, pods, state, room, bindings, reporter, metrics),
        claim_releases=ClaimReleases(claim_writer, queue),
        conditions=PodGroupConditions(client, clock, groups),
        budget=TimeBudget(attempt_timeout_seconds) if attempt_timeout_seconds else None,
        decide=VerifiedDecisions(verify_every, clock, metrics.plugins).decide if verify_every else decide,
        overruns=Overruns(Penalties(clock), queue, failures, decision_log),
        on_plugin_fault=on_plugin_fault,
        recorder=recorder,
    )


def complete(
    core: Core,
    executor: Executor,
    *,
    before: Sequence[Feed[Pod]] = (),
    after: Sequence[Feed[Pod]] = (),
    companions: Sequence[Callable[[], Awaitable[None]]] = (),
    is_explained: bool = True,
    schedules_groups: bool = True,
    seeds: Iterator[int] | None = None,
    shutdown_seconds: float = SHUTDOWN_SECONDS,
    may_schedule: Callable[[], Awaitable[None]] = at_once,
) -> Scheduler:
    """The scheduler around the core: cycle, watches, loop.

    `before` and `after` observe pod events before and after state and queue are updated; `companions` run while the
    scheduler does; `is_explained`: it serves `mooring explain`; `schedules_groups`: pods of pod groups are
    scheduled together, if the gate GenericWorkload is on; `seeds` break the ties of one decision after the other.
    """
    pre_checks = PreChecks(
        core.assembly, core.informers, core.bindings, core.failures, core.decision_log, core.awaiting_kinds
    )
    seeds = itertools.count(1) if seeds is None else seeds
    groups = _pod_group_cycle(core, executor, pre_checks, seeds) if schedules_groups else None
    cycle = SchedulingCycle(
        state=core.state,
        queue=core.queue,
        assembly=core.assembly,
        pods=core.pods,
        executor=executor,
        failures=core.failures,
        pre_checks=pre_checks,
        metrics=core.metrics,
        overruns=core.overruns,
        budget=core.budget,
        extenders=core.extenders,
        decide=core.decide,
        seeds=seeds,
        recorder=core.recorder,
        groups=groups,
    )
    lifecycle = Lifecycle(on_fault=core.on_plugin_fault)
    versions = Versions(
        core.configuration,
        core.registry,
        core.assembly,
        core.services,
        lifecycle,
        Switched(core.queue, core.pods, core.room, core.bindings, core.reporter, core.metrics),
        between_cycles=cycle.until_idle,
    )

    watchdog = Watchdog()
    queries = Queries(
        core.state,
        core.queue,
        core.pods,
        core.decision_log,
        core.assembly,
        core.room,
        core.bindings,
        core.preemption,
        core.clock,
        lambda: (versions.configuration, versions.registry),
        core.services.gates,
    )
    core.metrics.watch(queries.sizes)
    explain_socket = None
    if is_explained:
        explain_socket = ExplainSocket(core.client.connection.server, queries.explain, watchdog.held_up)

    async def lead() -> None:
        await may_schedule()
        core.services.problems.lead()

    pod_resources = PodResources()
    return Scheduler(
        client=core.client,
        clock=core.clock,
        metrics=core.metrics,
        state=core.state,
        queue=core.queue,
        reporter=core.reporter,
        decision_log=core.decision_log,
        pod_resources=pod_resources,
        pods=core.pods,
        pod_watch=_pod_watch(core, [*before, pod_resources], after),
        node_watch=_node_watch(core),
        informers=core.informers,
        assembly=core.assembly,
        lifecycle=lifecycle,
        cycle=cycle,
        overruns=core.overruns,
        failures=core.failures,
        versions=versions,
        comparer=CacheComparer(core.client, core.state, core.queue, core.clock),
        watchdog=watchdog,
        explain_socket=explain_socket,
        shutdown=Shutdown(
            bindings=core.bindings,
            preemption=core.preemption,
            claim_releases=core.claim_releases,
            conditions=core.conditions,
            versions=versions,
            lifecycle=lifecycle,
            supervisor=core.services.supervisor,
            http=core.services.http,
            extenders=core.extenders,
            foreign_bindings=core.foreign_bindings,
            reporter=core.reporter,
            explain_socket=explain_socket,
            seconds=shutdown_seconds,
        ),
        wake=core.wake,
        may_schedule=lead,
        companions=companions,
    )


def cluster_executor(core: Core) -> ClusterExecutor:
    """The executor of a scheduler that is no shadow."""
    return ClusterExecutor(
        state=core.state,
        queue=core.queue,
        clock=core.clock,
        decision_log=core.decision_log,
        failures=core.failures,
        bindings=core.bindings,
        preemption=core.preemption,
        claim_releases=core.claim_releases,
        foreign_bindings=core.foreign_bindings,
        metrics=core.metrics,
    )


def _pod_group_cycle(
    core: Core, executor: Executor, pre_checks: PreChecks, seeds: Iterator[int]
) -> PodGroupCycle | None:
    services = core.services
    if not services.gates.on("GenericWorkload"):
        return None
    preemption = PodGroupPreemption(core.state, core.pods, services.pod_groups, core.preemption)
    return PodGroupCycle(
        state=core.state,
        queue=core.queue,
        assembly=core.assembly,
        pods=core.pods,
        executor=executor,
        failures=core.failures,
        pre_checks=pre_checks,
        preemption=preemption,
        conditions=core.conditions,
        metrics=core.metrics,
        decision_log=core.decision_log,
        gates=services.gates,
        clock=core.clock,
        seeds=seeds,
        recorder=core.recorder,
    )


def _publisher(queue: SchedulingQueue, metrics: SchedulerMetrics) -> Callable[[ClusterEvent, Any, Any], None]:
    """What the plugins' object stores do with a change: requeue pods, and observe how long that took."""

    def publish(event: ClusterEvent, old: Any, new: Any) -> None:
        began = metrics.now()
        queue.on_event(event, old, new)
        metrics.handled(event.label, metrics.now() - began)

    return publish


def _pod_watch(core: Core, before: Sequence[Feed[Pod]], after: Sequence[Feed[Pod]]) -> Reflector[Pod]:
    documents = core.documents.pods if core.documents is not None else None
    observers = [*before, documents] if documents is not None else before
    return Reflector(
        core.client,
        Pod,
        ObservedFeed(core.pods, core.metrics, observers, after),
        field_selector=POD_FIELDS,
        on_document=documents.keep if documents is not None else None,
    )


def _node_watch(core: Core) -> Reflector[Node]:
    documents = core.documents.nodes if core.documents is not None else None
    return Reflector(
        core.client,
        Node,
        ObservedFeed(NodeFeed(core.state, core.queue), core.metrics, [documents] if documents is not None else []),
        on_document=documents.keep if documents is not None else None,
    )
