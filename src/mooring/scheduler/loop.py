"""Runs a scheduler: first request, initial lists, the scheduling loop, shutdown.

Watch events are applied between decisions on this one thread, so a decision sees one state and needs no lock. `wiring`
puts the parts together; `cycle.scheduling_cycle` is what happens to each pod.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from mooring.base.clock import Alarm, Clock
from mooring.base.errors import ApiError, Fault
from mooring.base.log import Log
from mooring.client import ApiClient, Connection, Reflector
from mooring.config import Configuration
from mooring.framework import Pod
from mooring.framework.registry import Registry
from mooring.objects.core import Node
from mooring.queue import SchedulingQueue
from mooring.scheduler.cycle.failure_handler import FailureHandler
from mooring.scheduler.cycle.overruns import TURN_SECONDS, Overruns
from mooring.scheduler.cycle.reporting import Reporter
from mooring.scheduler.cycle.scheduling_cycle import SchedulingCycle
from mooring.scheduler.introspection.cache_comparer import CacheComparer
from mooring.scheduler.introspection.decision_log import DecisionLog
from mooring.scheduler.introspection.explain_socket import ExplainSocket
from mooring.scheduler.metrics import SchedulerMetrics
from mooring.scheduler.metrics.pod_resources import PodResources
from mooring.scheduler.plugin_runtime.assembly import CurrentAssembly
from mooring.scheduler.plugin_runtime.lifecycle import Lifecycle
from mooring.scheduler.plugin_runtime.watchdog import Watchdog
from mooring.scheduler.reload.versions import Adopted, Versions
from mooring.scheduler.shutdown import LAST_SECONDS, Shutdown
from mooring.scheduler.watching.feeds import PodFeed
from mooring.scheduler.watching.informers import Informers
from mooring.state import State

SLOW_START_SECONDS = 5.0
DECIDING_SECONDS, MOST_DECISIONS = 0.002, 50
"""Decisions are made for so long, and so many, before watch events and binding responses are applied. With a pass of
the event loop after each, the last pod of many would wait for the bindings and events of all others."""
PASSES_AFTER_LONG_ATTEMPT = 20
"""Of the event loop. From a socket to the queue, and from a decision to the socket, takes several; with one after each
attempt, an event or a binding would wait for as many long attempts."""
BUSY_OR_STARTING = (403, 408, 429)
"""Besides 5xx: responses to the first request that do not mean a wrong address or wrong credentials. A server that is
starting forbids everything."""

_log = Log("scheduler")


@dataclass(kw_only=True, eq=False)
class Scheduler:
    """One scheduler against one API server: `run` until `stop`. `wiring.build_scheduler` builds it."""

    client: ApiClient
    clock: Clock
    metrics: SchedulerMetrics
    state: State
    queue: SchedulingQueue
    reporter: Reporter
    decision_log: DecisionLog
    pod_resources: PodResources
    pods: PodFeed
    pod_watch: Reflector[Pod]
    node_watch: Reflector[Node]
    informers: Informers
    assembly: CurrentAssembly
    lifecycle: Lifecycle
    cycle: SchedulingCycle
    overruns: Overruns
    failures: FailureHandler
    versions: Versions
    comparer: CacheComparer
    watchdog: Watchdog
    explain_socket: ExplainSocket | None
    shutdown: Shutdown
    wake: asyncio.Event
    """Set by the queue when `pop` may return a pod."""
    may_schedule: Callable[[], Awaitable[None]]
    """Awaited when everything is ready: of several replicas, one leads."""
    companions: Sequence[Callable[[], Awaitable[None]]] = ()
    """What runs concurrently with the scheduler, and is cancelled at shutdown."""
    ready: asyncio.Event = field(default_factory=asyncio.Event, init=False)
    """Set when the initial lists are complete and the plugins have started."""
    _stopping: asyncio.Event = field(default_factory=asyncio.Event, init=False)

    async def run(self) -> None:
        """Watch and schedule until `stop`. Raises `Unreachable` at once if the API server does not respond."""
        if not await self._reach_server():
            return
        with self.watchdog:
            async with asyncio.TaskGroup() as tasks:
                own = [
                    tasks.create_task(self.node_watch.run(), name="watch nodes"),
                    tasks.create_task(self.pod_watch.run(), name="watch pods"),
                    tasks.create_task(self.reporter.recorder.run(), name="events"),
                    *(tasks.create_task(_awaited(companion)) for companion in self.companions),
                ]
                self.informers.start(tasks)
                loop = tasks.create_task(self._schedule_when_synced(), name="scheduling loop")
                try:
                    await self._stopping.wait()
                finally:
                    self._stopping.set()
                    loop.cancel()
                    await asyncio.wait([loop], timeout=LAST_SECONDS)
                    await self.shutdown.run()
                    self.informers.stop()
                    for task in own:
                        task.cancel()

    def stop(self) -> None:
        """End `run` cleanly: bindings in flight and queued events get a few seconds."""
        self._stopping.set()

    def abandon(self, _seconds: float = 0.0) -> None:
        """The process is about to end while the loop does not run. On any thread."""
        if self.explain_socket is not None:
            self.explain_socket.remove()

    # The loop

    async def _schedule_when_synced(self) -> None:
        for reflector in (self.node_watch, self.pod_watch):
            await _first_list(reflector)
        await self.informers.settled(SLOW_START_SECONDS)
        for instance in list(self.assembly.current.instances.values()):
            await self.lifecycle.start(instance)
        if self.explain_socket is not None:
            await self.explain_socket.open()
        self.ready.set()
        await self.may_schedule()
        await self.schedule_forever()

    async def schedule_forever(self) -> None:
        with Alarm(self.clock, self.wake.set) as alarm:
            await self._schedule_with(alarm)

    async def _schedule_with(self, alarm: Alarm) -> None:
        decisions, since = 0, self.clock.monotonic()
        while not self._stopping.is_set():
            # Here, where this replica leads: a standby reports nothing.
            for gated in self.queue.take_pre_enqueue_errors():
                self.failures.pre_enqueue_failed(gated)
            queued = self.overruns.pop()
            if queued is None:
                await self._until_a_pod_may_be_ready(alarm)
                decisions, since = 0, self.clock.monotonic()
                continue
            began = self.clock.monotonic()
            await self.cycle.schedule_one(queued)  # suspends only where extenders are called
            decisions, now = decisions + 1, self.clock.monotonic()
            if decisions == MOST_DECISIONS or now - since >= DECIDING_SECONDS:
                # Watch events and binding responses are applied here, between two decisions.
                for _ in range(PASSES_AFTER_LONG_ATTEMPT if now - began > TURN_SECONDS else 1):
                    await asyncio.sleep(0)
                decisions, since = 0, self.clock.monotonic()

    async def _until_a_pod_may_be_ready(self, alarm: Alarm) -> None:
        self.wake.clear()
        alarm.set(self.queue.next_flush())
        await self.wake.wait()

    async def _reach_server(self) -> bool:
        """The first request. False if `stop` was called before it completed."""
        contact = asyncio.ensure_future(self.client.server_version())
        stopping = asyncio.ensure_future(self._stopping.wait())
        try:
            await asyncio.wait([contact, stopping], return_when=asyncio.FIRST_COMPLETED)
            if self._stopping.is_set():
                return False
            await contact
            return True
        except ApiError as error:
            if error.code not in BUSY_OR_STARTING and error.code < 500:
                raise Fault(_contact_failed(self.client.connection, error)) from error
            # It responds. Its version is not needed, and lists are retried until they succeed.
            _log.warning("Failed to read the API server's version", code=error.code, err=error)
            return True
        finally:
            contact.cancel()
            stopping.cancel()

    # Reload

    async def adopt(self, configuration: Configuration, registry: Registry) -> Adopted:
        """Let this configuration decide from the next cycle on. Only after `ready`.

        Raises `OperatorMistake` or `Fault` if it cannot; the one in force is then kept unchanged.
        """
        adopted = await self.versions.adopt(configuration, registry)
        self.overruns.penalties.clear()  # what was slow may be gone
        return adopted

    @property
    def configuration(self) -> Configuration:
        """The configuration in force."""
        return self.versions.configuration

    @property
    def version(self) -> int:
        """How many configurations have been in force, this one included."""
        return self.versions.number

    # Introspection

    def health_checks(self) -> dict[str, dict[str, Callable[[], str | None]]]:
        """By endpoint and name. Called on another thread, at any moment."""

        def shutdown() -> str | None:
            return "the scheduler is stopping" if self._stopping.is_set() else None

        def sync() -> str | None:
            return None if self.ready.is_set() else "waiting for the first lists of pods and nodes"

        return {"healthz": {}, "livez": {}, "readyz": {"shutdown": shutdown, "sched-handler-sync": sync}}

    def uid_of(self, key: str) -> str | None:
        """The uid of the pod that has this `namespace/name` now."""
        return self.pods.uid_of(key)

    async def inspect(self) -> list[str]:
        """Compare the cache with the API server and log all of it; returns the differences."""
        return await self.comparer.run()


async def _awaited(companion: Callable[[], Awaitable[None]]) -> None:
    await companion()


async def _first_list(reflector: Reflector[Any]) -> None:
    while not reflector.synced.is_set():
        with contextlib.suppress(TimeoutError):
            # Not wait_for: Python 3.11's forgets a cancellation that comes in the very step of the list.
            async with asyncio.timeout(SLOW_START_SECONDS):
                await reflector.synced.wait()
        if not reflector.synced.is_set():
            problem = reflector.problem or "the server has not responded yet"
            _log.warning("Still waiting for the first list", kind=reflector.kind.name, problem=problem)


def _contact_failed(where: Connection, error: ApiError) -> str:
    """Why the first request failed, and what to do."""
    server = f"{where.host} (from {where.source})"
    if error.code == 401:
        return f"{server} does not accept the credentials: {error.message}; renew the token or certificate there"
    return f"{server} responds {error.code}, unlike an API server: {error.message}; correct the address there"
