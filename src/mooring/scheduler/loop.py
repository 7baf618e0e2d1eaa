"""The path of a pod: popped, decided, assumed, reserved, permitted; then bound beside the next one's decision.

Watch events are applied between decisions on this one thread, so a decision sees one state and needs no lock.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterable
from typing import Any

from mooring.base.clock import Clock, SystemClock
from mooring.base.errors import PluginFault
from mooring.base.log import Log
from mooring.client import ApiClient, Reflector
from mooring.config import Configuration
from mooring.engine import Decision, Permitted, Profile, Refused, decide, permit, reserve
from mooring.engine.asking import described, is_its_own
from mooring.framework import FeatureGates, Plugin, Pod, Point
from mooring.framework.events import ASSIGNED_POD_DELETED, ClusterEvent
from mooring.framework.registry import Registry
from mooring.objects.core import Node
from mooring.objects.meta import KubeObject
from mooring.objects.quantity import BadQuantity
from mooring.queue import SchedulingQueue, Waiting
from mooring.scheduler.assembly import QueueAccess, Services, assemble
from mooring.scheduler.binding import Bindings, Placement, internal
from mooring.scheduler.control import ControlSocket
from mooring.scheduler.failures import Failures
from mooring.scheduler.feeds import POD_FIELDS, NodeFeed, PodFeed
from mooring.scheduler.http import HttpFetcher
from mooring.scheduler.informers import Informers
from mooring.scheduler.journal import Journal
from mooring.scheduler.reporting import Reporter
from mooring.scheduler.supervision import Supervisor
from mooring.scheduler.waiting import PermitRoom
from mooring.state import State

SLOW_START_SECONDS = 5.0
LAST_WORDS_SECONDS, LEAST_WORDS_SECONDS = 5.0, 0.5

_log = Log("scheduler")


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
    ) -> None:
        self._client = client
        self._clock = clock if clock is not None else SystemClock()
        self.state = State()
        self.ready = asyncio.Event()
        """Set when the first lists have come and the plugins have started."""
        self._stopping = asyncio.Event()
        self._wake = asyncio.Event()
        self._supervisor = Supervisor(self._clock)
        self._http = HttpFetcher()
        self._room = PermitRoom(self._clock)
        self._informers = Informers(client, self._publish, self._on_kind_listed)
        access = QueueAccess()
        self._assembly = assemble(
            configuration,
            registry,
            Services(
                clock=self._clock,
                client=client,
                gates=gates or FeatureGates(),
                state=self.state,
                informers=self._informers,
                supervisor=self._supervisor,
                room=self._room,
                http=self._http,
                queue=access,
            ),
        )
        self.queue = access.queue = SchedulingQueue(
            self._clock,
            sort_key=self._assembly.sort_key,
            profiles=self._assembly.rules,
            initial_backoff_seconds=configuration.pod_initial_backoff_seconds,
            max_backoff_seconds=configuration.pod_max_backoff_seconds,
            max_unschedulable_seconds=max_unschedulable_seconds,
            on_ready=self._wake.set,
        )
        self.journal = Journal(self._clock)
        self.reporter = Reporter(client, self._clock, self._assembly.profiles)
        self._pods = PodFeed(
            self.state,
            self.queue,
            self._assembly.profiles,
            on_placed=self._on_pod_placed,
            on_deleted=self._on_pod_deleted,
        )
        self._nodes = NodeFeed(self.state, self.queue)
        self._failures = Failures(client, self.queue, self._pods, self.reporter)
        self._bindings = Bindings(self.state, self.queue, self._room, self._failures, self.reporter, self.journal)
        self._control = ControlSocket(client.connection.server, self._answer)
        self._held: dict[str, Pod] = {}
        """Pods whose profile waits for a kind that has not been listed."""
        self._started: list[Plugin] = []
        self._starts: dict[str, int] = {}
        self._decisions = 0

    # The life of the scheduler

    async def run(self) -> None:
        """Watch and schedule until `stop`. Raises `Unreachable` at once if the API server does not answer."""
        if not await self._reach_server():
            return
        pods = Reflector(self._client, Pod, self._pods, field_selector=POD_FIELDS)
        nodes = Reflector(self._client, Node, self._nodes)
        async with asyncio.TaskGroup() as tasks:
            own = [
                tasks.create_task(nodes.run(), name="watch nodes"),
                tasks.create_task(pods.run(), name="watch pods"),
                tasks.create_task(self.reporter.recorder.run(), name="events"),
            ]
            own += self._informers.start(tasks)
            loop = tasks.create_task(self._schedule_when_synced([nodes, pods]), name="scheduling loop")
            try:
                await self._stopping.wait()
            finally:
                self._stopping.set()
                loop.cancel()
                await asyncio.wait([loop], timeout=LAST_WORDS_SECONDS)
                await self._end()
                for task in own:
                    task.cancel()

    def stop(self) -> None:
        """End `run` cleanly: bindings under way and events queued get a few seconds."""
        self._stopping.set()

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
        finally:
            contact.cancel()
            stopping.cancel()

    async def _schedule_when_synced(self, reflectors: Iterable[Reflector[Any]]) -> None:
        for reflector in reflectors:
            await self._first_list(reflector)
        await self._informers.settled(SLOW_START_SECONDS)
        for plugin in self._assembly.plugins:
            await self._start(plugin)
        await self._control.open()
        self.ready.set()
        await self._schedule_forever()

    async def _first_list(self, reflector: Reflector[Any]) -> None:
        while not reflector.synced.is_set():
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(reflector.synced.wait(), SLOW_START_SECONDS)
            if reflector.problem is not None:
                _log.warning("Still waiting for the first list", problem=reflector.problem)

    async def _start(self, plugin: Plugin) -> None:
        start = getattr(plugin, "start", None)
        self._started.append(plugin)
        if start is None:
            return
        starting = asyncio.ensure_future(start())
        try:
            while not starting.done():
                await asyncio.wait([starting], timeout=SLOW_START_SECONDS)
                if not starting.done():
                    _log.warning("Still waiting for a plugin to start", plugin=plugin.name)
            await starting
        except BaseException as error:  # one plugin's trouble is not the other profiles'
            if not is_its_own(error):
                starting.cancel()
                raise
            Log(plugin.name).error(
                "Plugin failed to start; going on without what it would have done", err=described(error)
            )

    async def _end(self) -> None:
        """What is under way gets a few seconds, all of it together; nothing is left running."""
        last_moment = asyncio.get_running_loop().time() + LAST_WORDS_SECONDS

        def left() -> float:
            return max(LEAST_WORDS_SECONDS, last_moment - asyncio.get_running_loop().time())

        await self._control.close()
        await self._bindings.finish(left())
        await self._failures.finish(left())
        for plugin in self._started:
            await self._stop(plugin, left())
        await self._supervisor.stop(left())
        await self._http.close()
        await self.reporter.close(left())

    async def _stop(self, plugin: Plugin, seconds: float) -> None:
        stop = getattr(plugin, "stop", None)
        if stop is None:
            return
        try:
            async with asyncio.timeout(seconds):
                await stop()
        except BaseException as error:
            if not is_its_own(error):
                raise
            Log(plugin.name).error("Plugin failed to stop", err=described(error))

    # The loop

    async def _schedule_forever(self) -> None:
        while not self._stopping.is_set():
            waiting = self.queue.pop()
            if waiting is None:
                await self._until_something_happens()
                continue
            self._attempt(waiting)
            # Watch events and binding answers are applied here, between two decisions.
            await asyncio.sleep(0)

    async def _until_something_happens(self) -> None:
        self._wake.clear()
        alarm = asyncio.ensure_future(self._clock.sleep(max(0.0, self.queue.next_flush() - self._clock.now())))
        wake = asyncio.ensure_future(self._wake.wait())
        try:
            await asyncio.wait([alarm, wake], return_when=asyncio.FIRST_COMPLETED)
        finally:
            alarm.cancel()
            wake.cancel()

    def _attempt(self, waiting: Waiting) -> None:
        """One pod, from the queue to the start of its binding. Nothing waits here, so nothing comes in between."""
        pod = waiting.pod
        profile = self._assembly.profiles[pod.spec.scheduler_name]
        _log.v(4).info("About to try and schedule pod", pod=pod)
        if self._skips(pod):
            self.queue.done(pod.uid)
            return
        _log.v(3).info("Attempting to schedule pod", pod=pod)
        decision: Decision | None = None
        try:
            if not self._holds(waiting, profile):
                decision = self._decide(waiting, profile)
                if decision is not None:
                    self._place(waiting, profile, decision)
        except Exception as error:  # a bug of ours must cost one attempt, not the pod and not the scheduler
            _log.error("Unexpected fault while scheduling", pod=pod, err=described(error))
            if decision is None or decision.view is None:
                self._failures.broken(waiting, str(internal(error)))
            else:
                self._bindings.give_up(Placement(waiting, pod, profile, decision, decision.view, {}), internal(error))

    def _skips(self, pod: Pod) -> bool:
        if pod.is_terminating:
            _log.v(3).info("Skip schedule deleting pod", pod=pod)
            self.reporter.failed(pod, f"skip schedule deleting pod: {pod.key}")
            return True
        return self._bindings.is_under_way(pod.uid)

    def _holds(self, waiting: Waiting, profile: Profile) -> bool:
        """Whether the profile must wait for a kind that its plugins read; only its own pods do."""
        kinds = self._assembly.kinds[profile.name]
        missing = self._informers.missing(kinds)
        if not missing:
            return False
        plugins = sorted({plugin for kind, _ in missing for plugin in kinds[kind]})
        why = "; ".join(problem for _, problem in missing)
        self._held[waiting.pod.uid] = waiting.pod
        message = f"profile {profile.name} waits for what its plugin {', '.join(plugins)} reads: {why}"
        self.journal.write(
            waiting.pod, {"attempt": waiting.attempts, "node": None, "message": message, "refusedBy": plugins}
        )
        self._failures.refused(waiting, message, unschedulable=plugins)
        return True

    def _decide(self, waiting: Waiting, profile: Profile) -> Decision | None:
        """Decide; a refusal or fault is dealt with here and gives None."""
        pod = waiting.pod
        try:
            _ = pod.requests
        except BadQuantity as error:
            message = f"the requests of pod {pod.key} cannot be read: {error}"
            self.journal.write(pod, {"attempt": waiting.attempts, "node": None, "message": message})
            self._failures.broken(waiting, message)
            return None
        self._decisions += 1
        decision = decide(
            profile,
            pod,
            self.state,
            attempt=waiting.attempts,
            seed=self._decisions,
            start=self._starts.get(profile.name, 0),
        )
        self._starts[profile.name] = decision.next_start
        self.journal.write(pod, decision.evidence())
        if decision.fault is not None:
            self._failures.broken(waiting, str(decision.fault))
            return None
        if decision.node is None:
            unschedulable, pending = decision.rejectors
            plan = decision.plan
            # Without any node no nomination can hold.
            unhelped = None if decision.node_count else ""
            nominate = plan.nominate if plan is not None else unhelped
            if not profile.at(Point.POST_FILTER):
                _log.v(3).info("No PostFilter plugins are registered, so no preemption will be performed")
            self._failures.refused(
                waiting, decision.message, unschedulable=unschedulable, pending=pending, nominate=nominate
            )
            if plan is not None:
                self._failures.execute(plan, pod)
            return None
        return decision

    def _place(self, waiting: Waiting, profile: Profile, decision: Decision) -> None:
        """Assume the pod on its node, reserve, ask for permission, and start binding."""
        pod = waiting.pod
        assert decision.view is not None
        self.state.assume(pod, decision.view.name, self._clock.now())
        placement = Placement(waiting, pod, profile, decision, decision.view, {})
        answer: Refused | PluginFault | Permitted = reserve(profile, decision) or permit(profile, decision)
        if isinstance(answer, Permitted):
            placement.waits = answer.waits
            self._bindings.begin(placement)
        else:
            self._bindings.give_up(placement, answer)

    # What the watches report

    def _publish(self, event: ClusterEvent, old: Any, new: Any) -> None:
        self.queue.on(event, old, new)

    def _on_kind_listed(self, kind: type[KubeObject]) -> None:
        held, self._held = self._held, {}
        self.queue.activate(held.values())

    def _on_pod_placed(self, pod: Pod) -> None:
        self._waits_no_longer(pod)
        # Ours are bound after they waited: it was somebody else.
        self._room.reject(pod.uid, "", f"the pod was bound to node {pod.spec.node_name} by somebody else")

    def _on_pod_deleted(self, pod: Pod) -> None:
        """Gone, or about to go. Its binding, if under way, will fail; its place is free already."""
        self._waits_no_longer(pod)
        if self.state.is_assumed(pod.uid) and not self._room.reject(pod.uid, "", "removed"):
            forgotten = self.state.forget(pod.uid)
            self.queue.on(ASSIGNED_POD_DELETED, forgotten, None)

    def _waits_no_longer(self, pod: Pod) -> None:
        self.reporter.forget(pod.uid)
        self._held.pop(pod.uid, None)

    # What can be asked of it

    def _answer(self, question: dict[str, Any]) -> dict[str, Any]:
        """The control socket's questions."""
        key = question["explain"]
        found = self.journal.read(key)
        if found is None:
            return {"found": False, "profiles": sorted(self._assembly.profiles), "gating": self._gating(key)}
        waiting = self.queue.find(found["uid"])
        if waiting is not None:
            found["waitsFor"] = self._waits_for(waiting)
        return {
            "found": True,
            "decision": found,
            "queue": self.queue.where(found["uid"]),
            "gating": self._gating(key),
        }

    def _gating(self, key: str) -> dict[str, Any] | None:
        """Which plugin keeps the pod out of the queue, if one does."""
        uid = self._pods.uid_of(key)
        waiting = self.queue.find(uid) if uid is not None else None
        if waiting is None or waiting.gating is None:
            return None
        return {"uid": uid, "plugin": waiting.gating.plugin, "reasons": list(waiting.gating.reasons)}

    def _waits_for(self, waiting: Waiting) -> list[dict[str, Any]]:
        """What would bring the pod back, as those who refused it have named it."""
        hints = self._assembly.rules[waiting.pod.spec.scheduler_name].hints
        return [
            {"plugin": plugin, "resource": hint.resource, "actions": hint.action.names()}
            for plugin in sorted(waiting.rejectors)
            for hint in hints.get(plugin, ())
        ]
