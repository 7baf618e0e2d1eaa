"""A scheduler: its parts put together, its life, and the loop that lets one pod after the other have its turn.

Watch events are applied between decisions on this one thread, so a decision sees one state and needs no lock.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from mooring.base.clock import Clock, SystemClock
from mooring.base.errors import ApiError, Fault
from mooring.base.log import Log
from mooring.client import ApiClient, Connection, Feed, Reflector
from mooring.config import Configuration
from mooring.engine import Decision, Profile
from mooring.engine.time_budget import TimeBudget
from mooring.framework import FeatureGates, Pod
from mooring.framework.events import ASSIGNED_POD_DELETED, ClusterEvent
from mooring.framework.registry import Registry
from mooring.objects.core import Node
from mooring.objects.meta import KubeObject
from mooring.queue import QueuedPodInfo, SchedulingQueue
from mooring.scheduler.cycle.binding_cycle import BindingCycles
from mooring.scheduler.cycle.claim_releases import ClaimReleases
from mooring.scheduler.cycle.conclusions import Conclusions
from mooring.scheduler.cycle.failure_handler import FailureHandler
from mooring.scheduler.cycle.overruns import TURN_SECONDS, Overruns, Penalties
from mooring.scheduler.cycle.permit import PermitRoom
from mooring.scheduler.cycle.preemption import Preemption, PreemptionsInProgress
from mooring.scheduler.cycle.reporting import Reporter
from mooring.scheduler.cycle.scheduling_cycle import Attempts
from mooring.scheduler.extenders import Documents, Extenders
from mooring.scheduler.introspection.cache_comparer import CacheComparer
from mooring.scheduler.introspection.decision_log import DecisionLog
from mooring.scheduler.introspection.explain_socket import ExplainSocket
from mooring.scheduler.introspection.foreign_bindings import ForeignBindings
from mooring.scheduler.introspection.queries import Queries
from mooring.scheduler.metrics import SchedulerMetrics, Sizes
from mooring.scheduler.metrics.pod_resources import PodResources
from mooring.scheduler.metrics.timed_feed import TimedFeed
from mooring.scheduler.plugin_runtime.api_binder import ApiBinder
from mooring.scheduler.plugin_runtime.assembly import QueueAccess, Services, assemble
from mooring.scheduler.plugin_runtime.claim_writer import ApiClaimWriter
from mooring.scheduler.plugin_runtime.http_service import HttpFetcher
from mooring.scheduler.plugin_runtime.lifecycle import Lifecycle
from mooring.scheduler.plugin_runtime.plugin_errors import PluginErrors
from mooring.scheduler.plugin_runtime.plugin_timeouts import PluginCaller
from mooring.scheduler.plugin_runtime.supervision import Supervisor
from mooring.scheduler.plugin_runtime.watchdog import Watchdog
from mooring.scheduler.reload.versions import Adopted, Parts, Versions
from mooring.scheduler.watching.feeds import POD_FIELDS, NodeFeed, PodFeed
from mooring.scheduler.watching.informers import Informers
from mooring.state import State

SLOW_START_SECONDS = 5.0
ATTEMPT_TIMEOUT_SECONDS = 5.0
"""How long plugins may compute about one pod."""
DECIDING_SECONDS, MOST_DECISIONS = 0.002, 50
"""Decisions are made for so long, and so many, before watch events and binding answers are applied. With a pass of the
event loop after each, the last pod of many would wait for the bindings and events of all others. No longer: writes that
have passed the fence reach the kernel at the end of a pass, and a process may be stopped in between."""
PASSES_AFTER_LONG_ATTEMPT = 20
"""Of the event loop. From a socket to the queue, and from a decision to the socket, takes several; with one after each
attempt, an event or a binding would wait for as many long attempts."""
LAST_WORDS_SECONDS, LEAST_WORDS_SECONDS = 5.0, 0.5
SHUTDOWN_SECONDS = 3.0
"""How long the end may take where plugins hold it up. A third of it they have to end by themselves."""
BUSY_OR_STARTING = (403, 408, 429)
"""Beside 5xx: refusals of the first contact that say nothing about what we need. One that starts forbids everything."""

_log = Log("scheduler")


async def _at_once() -> None: ...


class Scheduler:
    """One scheduler with its profiles, against one API server. `run` until `stop`."""

    def __init__(
        self,
        client: ApiClient,
        configuration: Configuration,
        registry: Registry,
        *,
        clock: Clock | None = None,
        gates: FeatureGates | None = None,
        max_unschedulable_seconds: float = 300.0,
        attempt_timeout_seconds: float = ATTEMPT_TIMEOUT_SECONDS,
        shutdown_seconds: float = SHUTDOWN_SECONDS,
        may_schedule: Callable[[], Awaitable[None]] = _at_once,
        reporter: Reporter | None = None,
    ) -> None:
        """`may_schedule` is waited for when everything is ready: where several stand by, one leads.

        `reporter` tells the world of attempts; without one, events and conditions are written.
        """
        gates = gates or FeatureGates()
        self._client = client
        self._may_schedule = may_schedule
        self._shutdown_seconds = shutdown_seconds
        self._clock = clock if clock is not None else SystemClock()
        self.metrics = SchedulerMetrics(gates, self._clock)
        client.transport.observer = self.metrics.requests
        self.state = State()
        self.ready = asyncio.Event()
        """Set when the first lists have come and the plugins have started."""
        self._stopping = asyncio.Event()
        self._wake = asyncio.Event()
        errors = PluginErrors(self.metrics.plugins)
        self._supervisor = Supervisor(self._clock, on_fault=errors.note)
        self._http = HttpFetcher()
        self._room = PermitRoom(self._clock)
        self._informers = Informers(client, self._publish, self._on_kind_listed)
        names = [profile.scheduler_name for profile in configuration.profiles]
        self.reporter = reporter or Reporter(client, self._clock, names, events=client.beside("mooring events"))
        self._rivals = ForeignBindings(client, self._clock, self.reporter, self.metrics.plugins)
        claim_writer = ApiClaimWriter(client, self._informers, self._clock)
        binder = ApiBinder(client, self._clock)
        access = QueueAccess()
        under_way = PreemptionsInProgress(self.state)
        services = Services(
            clock=self._clock,
            client=client,
            gates=gates,
            state=self.state,
            informers=self._informers,
            supervisor=self._supervisor,
            room=self._room,
            http=self._http,
            queue=access,
            preemptions=under_way,
            metrics=self.metrics.plugins,
            claim_writer=claim_writer,
            events=self.reporter,
            binder=binder,
        )
        self._assembly = assemble(configuration, registry, services)
        self.queue = access.queue = SchedulingQueue(
            self._clock,
            sort_key=self._assembly.sort_key,
            profiles=self._assembly.rules,
            initial_backoff_seconds=configuration.pod_initial_backoff_seconds,
            max_backoff_seconds=configuration.pod_max_backoff_seconds,
            max_unschedulable_seconds=max_unschedulable_seconds,
            on_ready=self._wake.set,
            on_entry=self.metrics.entered,
            on_fault=errors.note,
            observer=self.metrics,
        )
        self.journal = DecisionLog(self._clock)
        self._pods = PodFeed(
            self.state,
            self.queue,
            self._assembly.profiles,
            on_placed=self._on_pod_placed,
            on_deleted=self._on_pod_deleted,
            on_shown=self.reporter.seen,
            on_left=self._waits_no_longer,
        )
        self._nodes = NodeFeed(self.state, self.queue)
        self._failures = FailureHandler(self.queue, self._pods, self.reporter, self.metrics)
        self._documents: Documents | None = None
        self._extenders: Extenders | None = None
        if configuration.extenders:
            self._documents = Documents(configuration.extenders, self._pods, self._nodes)
            self._extenders = Extenders(configuration.extenders, self._documents, client.transport.fence)
        self.pod_resources = PodResources(self._pods if self._documents is None else self._documents.pods)
        self._bindings = BindingCycles(
            self.state,
            self.queue,
            self._room,
            self._failures,
            self.reporter,
            self.journal,
            self.metrics,
            PluginCaller(self._clock),
            binder,
            self._extenders,
        )
        self._evictions = Preemption(
            client,
            self._clock,
            under_way,
            self.queue,
            self._pods,
            self.state,
            self._room,
            self._bindings,
            self.reporter,
            self.metrics,
        )
        answers = Queries(
            self.state,
            self.queue,
            self._pods,
            self.journal,
            self._assembly,
            self._room,
            self._bindings,
            self._clock,
        )
        self.metrics.watch(answers.sizes)
        self.metrics.watch(self._tasks_at_work)
        self._claim_releases = ClaimReleases(claim_writer, self.queue)
        self._watchdog = Watchdog()
        self._control = ExplainSocket(client.connection.server, answers.explained, self._watchdog.held_up)
        self._between_cycles = asyncio.Event()
        """Not set while extenders are asked about a pod; no other decision waits for anything."""
        self._between_cycles.set()
        self._lifecycle = Lifecycle(on_fault=errors.note)
        self._versions = Versions(
            configuration,
            registry,
            self._assembly,
            Parts(
                services=services,
                informers=self._informers,
                lifecycle=self._lifecycle,
                queue=self.queue,
                pods=self._pods,
                room=self._room,
                bindings=self._bindings,
                reporter=self.reporter,
                metrics=self.metrics,
                between_cycles=self._until_between_cycles,
            ),
        )
        self._budget = TimeBudget(attempt_timeout_seconds) if attempt_timeout_seconds else None
        self._overruns = Overruns(Penalties(self._clock), self.queue, self._failures, self.journal)
        self._conclusions = Conclusions(
            state=self.state,
            queue=self.queue,
            clock=self._clock,
            journal=self.journal,
            failures=self._failures,
            bindings=self._bindings,
            evictions=self._evictions,
            claim_releases=self._claim_releases,
            rivals=self._rivals,
            metrics=self.metrics,
        )
        self._attempts = Attempts(
            assembly=self._assembly,
            state=self.state,
            queue=self.queue,
            pods=self._pods,
            informers=self._informers,
            journal=self.journal,
            failures=self._failures,
            reporter=self.reporter,
            bindings=self._bindings,
            metrics=self.metrics,
            budget=self._budget,
            overruns=self._overruns,
            conclude=self._conclude,
        )

    # The life of the scheduler

    async def run(self) -> None:
        """Watch and schedule until `stop`. Raises `Unreachable` at once if the API server does not answer."""
        if not await self._reach_server():
            return
        pods, nodes = self._reflectors()
        with self._watchdog:
            await self._run(pods, nodes)

    async def _run(self, pods: Reflector[Pod], nodes: Reflector[Node]) -> None:
        async with asyncio.TaskGroup() as tasks:
            own = [
                tasks.create_task(nodes.run(), name="watch nodes"),
                tasks.create_task(pods.run(), name="watch pods"),
                tasks.create_task(self.reporter.recorder.run(), name="events"),
            ]
            self._informers.start(tasks)
            loop = tasks.create_task(self._schedule_when_synced([nodes, pods]), name="scheduling loop")
            try:
                await self._stopping.wait()
            finally:
                self._stopping.set()
                loop.cancel()
                await asyncio.wait([loop], timeout=LAST_WORDS_SECONDS)
                await self._end()
                self._informers.stop()
                for task in own:
                    task.cancel()

    def _reflectors(self) -> tuple[Reflector[Pod], Reflector[Node]]:
        feed = TimedFeed(self._seen_first(self.pod_resources), self.queue, self.metrics)
        if self._documents is None:
            return (
                Reflector(self._client, Pod, feed, field_selector=POD_FIELDS),
                Reflector(self._client, Node, TimedFeed(self._nodes, self.queue, self.metrics)),
            )
        pods, nodes = self._documents.pods, self._documents.nodes
        return (
            Reflector(self._client, Pod, feed, field_selector=POD_FIELDS, on_document=pods.keep),
            Reflector(self._client, Node, TimedFeed(nodes, self.queue, self.metrics), on_document=nodes.keep),
        )

    def _seen_first(self, pods: Feed[Pod]) -> Feed[Pod]:
        """Who hears of pods before state and queue do: here nobody."""
        return pods

    def stop(self) -> None:
        """End `run` cleanly: bindings under way and events queued get a few seconds."""
        self._stopping.set()

    def abandon(self, _seconds: float = 0.0) -> None:
        """The process is about to end while the loop does not run. On any thread."""
        self._control.remove()

    async def _reach_server(self) -> bool:
        """The first contact. False if we were stopped before it came about."""
        contact = asyncio.ensure_future(self._client.server_version())
        stopping = asyncio.ensure_future(self._stopping.wait())
        try:
            await asyncio.wait([contact, stopping], return_when=asyncio.FIRST_COMPLETED)
            if self._stopping.is_set():
                return False
            await contact
            return True
        except ApiError as error:
            if error.code not in BUSY_OR_STARTING and error.code < 500:
                raise Fault(_unwelcome(self._client.connection, error)) from error
            # It is there; what it will not let us know we need not know, and lists are asked for until they come.
            _log.warning("The API server did not tell its version", code=error.code, err=error)
            return True
        finally:
            contact.cancel()
            stopping.cancel()

    async def _schedule_when_synced(self, reflectors: Iterable[Reflector[Any]]) -> None:
        for reflector in reflectors:
            await self._first_list(reflector)
        await self._informers.settled(SLOW_START_SECONDS)
        for instance in list(self._assembly.instances.values()):
            await self._lifecycle.start(instance)
        await self._control.open()
        self.ready.set()
        await self._may_schedule()
        await self._schedule_forever()

    async def _first_list(self, reflector: Reflector[Any]) -> None:
        while not reflector.synced.is_set():
            with contextlib.suppress(TimeoutError):
                # Not wait_for: Python 3.11's forgets a cancellation that comes in the very step of the list.
                async with asyncio.timeout(SLOW_START_SECONDS):
                    await reflector.synced.wait()
            if not reflector.synced.is_set():
                problem = reflector.problem or "the server has not answered yet"
                _log.warning("Still waiting for the first list", kind=reflector.kind.name, problem=problem)

    async def _end(self) -> None:
        """What is under way gets a few seconds, all of it together; plugins get fewer. Nothing is left running."""
        now = asyncio.get_running_loop().time
        last_moment = now() + LAST_WORDS_SECONDS
        for_plugins = min(self._shutdown_seconds / 3, LAST_WORDS_SECONDS)
        plugins_end = now() + for_plugins

        def left() -> float:
            return max(LEAST_WORDS_SECONDS, last_moment - now())

        def plugins_left() -> float:
            return max(for_plugins / 10, plugins_end - now())

        await self._control.close()
        await self._bindings.finish(left(), plugins_left())
        await self._evictions.finish(left())
        await self._claim_releases.finish(left())
        await self._versions.close(plugins_left())
        await self._lifecycle.stop_all(plugins_left)
        await self._supervisor.stop(plugins_left())
        await self._http.close()
        if self._extenders is not None:
            await self._extenders.close()
        await self._rivals.close()
        await self.reporter.close(left())

    # The loop

    async def _schedule_forever(self) -> None:
        decisions, since = 0, self._clock.monotonic()
        while not self._stopping.is_set():
            # Here, where we lead: who stands by says nothing.
            for kept_out in self.queue.take_pre_enqueue_errors():
                self._failures.kept_out(kept_out)
            waiting = self._overruns.pop()
            if waiting is None:
                await self._until_something_happens()
                decisions, since = 0, self._clock.monotonic()
                continue
            began = self._clock.monotonic()
            if self._extenders is not None and self._extenders.concern(waiting.pod):
                self._between_cycles.clear()
                await self._attempts.attempt_with(self._extenders, waiting)
                self._between_cycles.set()
            else:
                self._attempts.attempt(waiting)
            decisions, now = decisions + 1, self._clock.monotonic()
            if decisions == MOST_DECISIONS or now - since >= DECIDING_SECONDS:
                # Watch events and binding answers are applied here, between two decisions.
                for _ in range(PASSES_AFTER_LONG_ATTEMPT if now - began > TURN_SECONDS else 1):
                    await asyncio.sleep(0)
                decisions, since = 0, self._clock.monotonic()

    async def _until_something_happens(self) -> None:
        self._wake.clear()
        alarm = asyncio.ensure_future(self._clock.sleep(max(0.0, self.queue.next_flush() - self._clock.now())))
        wake = asyncio.ensure_future(self._wake.wait())
        try:
            await asyncio.wait([alarm, wake], return_when=asyncio.FIRST_COMPLETED)
        finally:
            alarm.cancel()
            wake.cancel()

    def _conclude(self, waiting: QueuedPodInfo, profile: Profile, decision: Decision) -> None:
        """Do what was decided."""
        self._conclusions.conclude(waiting, profile, decision)

    # Another version of its configuration

    async def adopt(self, configuration: Configuration, registry: Registry) -> Adopted:
        """Let this configuration decide from the next cycle on. Only after `ready`.

        Raises `OperatorMistake` or `Fault` if it cannot; the one in force then goes on whole.
        """
        adopted = await self._versions.adopt(configuration, registry)
        self._overruns.penalties.clear()  # what was slow may be gone
        return adopted

    async def _until_between_cycles(self) -> None:
        await self._between_cycles.wait()

    @property
    def configuration(self) -> Configuration:
        """The one in force."""
        return self._versions.configuration

    @property
    def version(self) -> int:
        """How many configurations have been in force, this one included."""
        return self._versions.number

    # What the watches report

    def _publish(self, event: ClusterEvent, old: Any, new: Any) -> None:
        began = self._clock.monotonic()
        self.queue.on_event(event, old, new)
        self.metrics.handled(event.label, self._clock.monotonic() - began)

    def _on_kind_listed(self, kind: type[KubeObject]) -> None:
        self._attempts.kind_came()

    def _on_pod_placed(self, pod: Pod) -> None:
        self._rivals.placed(pod)
        self._waits_no_longer(pod)
        # Ours are bound after they waited: it was somebody else.
        self._room.reject(pod.uid, "", f"the pod was bound to node {pod.spec.node_name} by somebody else")

    def _on_pod_deleted(self, pod: Pod) -> None:
        """Gone, or about to go. Its binding, if under way, will fail; its place is free already."""
        self._waits_no_longer(pod)
        if self.state.is_assumed(pod.uid) and not self._room.reject(pod.uid, "", "removed"):
            forgotten = self.state.forget(pod.uid)
            self.queue.on_event(ASSIGNED_POD_DELETED, forgotten, None)

    def _waits_no_longer(self, pod: Pod) -> None:
        self.reporter.forget(pod.uid)
        self._rivals.forget(pod.uid)
        self._attempts.forget(pod.uid)

    # What can be asked of it

    def _tasks_at_work(self) -> list[Sizes]:
        return [Sizes("goroutines", {("binding",): len(self._bindings), ("preemption",): len(self._evictions)})]

    def health_checks(self) -> dict[str, dict[str, Callable[[], str | None]]]:
        """By endpoint and name. Asked on another thread, at any moment."""

        def shutdown() -> str | None:
            return "the scheduler is stopping" if self._stopping.is_set() else None

        def sync() -> str | None:
            return None if self.ready.is_set() else "waiting for the first lists of pods and nodes"

        return {"healthz": {}, "livez": {}, "readyz": {"shutdown": shutdown, "sched-handler-sync": sync}}

    def uid_of(self, key: str) -> str | None:
        """The uid of the pod that has this `namespace/name` now."""
        return self._pods.uid_of(key)

    async def inspect(self) -> list[str]:
        """Compare what is believed with the API server, and write it all to the log; the differences come back."""
        return await CacheComparer(self._client, self.state, self.queue, self._clock).run()


def _unwelcome(where: Connection, error: ApiError) -> str:
    """Why a first contact came to nothing, and what to do."""
    server = f"{where.host} (from {where.source})"
    if error.code == 401:
        return f"{server} does not accept our credentials: {error.message}; renew the token or certificate there"
    return f"{server} answers {error.code}, as no API server does: {error.message}; correct the address there"
