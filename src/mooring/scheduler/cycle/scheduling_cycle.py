"""The scheduling cycle: one pod, from the queue to the start of its binding cycle, or back into the queue.

`schedule_one` is the main path; read it first. It awaits nothing but extenders, so the state does not change under a
decision. A bug, in a plugin or in the scheduler, costs the pod one attempt; it never loses the pod and never ends the
loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Protocol, TypeAlias, TypedDict

import msgspec

from mooring.base.clock import Clock
from mooring.base.errors import PluginFault
from mooring.base.foreign_code import described, is_its_own
from mooring.base.log import Log
from mooring.engine import Decide, Decision, DecisionCache, Permitted, PlacementRefused, Profile, permit, reserve
from mooring.engine.stopwatch import Stopwatch
from mooring.engine.time_budget import TimeBudget
from mooring.framework import Pod, Point
from mooring.framework.events import resource_name
from mooring.objects.meta import KubeObject
from mooring.objects.quantity import BadQuantity
from mooring.queue import QueuedPodInfo, SchedulingQueue
from mooring.recording import Recorder
from mooring.scheduler.cycle.binding_cycle import BindingCycles, Placement, internal
from mooring.scheduler.cycle.failure_handler import FailureHandler
from mooring.scheduler.cycle.overruns import Overruns
from mooring.scheduler.cycle.preemption import ClaimReleases, Preemption
from mooring.scheduler.cycle.unlisted_kinds import PodsAwaitingKinds
from mooring.scheduler.extenders import Extenders, decide_with
from mooring.scheduler.introspection.decision_log import DecisionLog
from mooring.scheduler.introspection.foreign_bindings import ForeignBindings
from mooring.scheduler.metrics import SchedulerMetrics
from mooring.scheduler.plugin_runtime.assembly import CurrentAssembly
from mooring.scheduler.watching.feeds import PodFeed
from mooring.scheduler.watching.informers import Informers
from mooring.state import State

_log = Log("scheduler")


Outcome: TypeAlias = Permitted | PlacementRefused | PluginFault
"""Of Reserve and Permit."""


class Executor(Protocol):
    """Carries out decisions. The scheduler's acts on the cluster; a shadow's only compares."""

    def record(self, pod: Pod, decision: Decision) -> None:
        """A decision was made and is not carried out yet."""
        ...

    def make_room(self, pod: Pod, profile: Profile, decision: Decision) -> str | None:
        """No node fits: start what PostFilter plugins proposed. The new nomination; None leaves it as it is."""
        ...

    def assume(self, placement: Placement) -> None:
        """A node was chosen: from now on the pod counts there."""
        ...

    def reserve_and_permit(self, placement: Placement) -> Outcome:
        """Run the Reserve and Permit plugins."""
        ...

    def bind(self, placement: Placement, outcome: Outcome) -> None:
        """Start the binding cycle; or undo the placement, where the outcome is a rejection or a fault."""
        ...


class SchedulingCycle:
    """Schedules pods, one after the other."""

    def __init__(
        self,
        state: State,
        queue: SchedulingQueue,
        assembly: CurrentAssembly,
        pods: PodFeed,
        executor: Executor,
        failures: FailureHandler,
        pre_checks: PreChecks,
        metrics: SchedulerMetrics,
        overruns: Overruns,
        budget: TimeBudget | None,
        extenders: Extenders | None,
        decide: Decide,
        seeds: Iterator[int],
        recorder: Recorder | None = None,
    ) -> None:
        """`budget` is the time that plugins have for one attempt; None: no limit. Each decision's ties are broken by
        the next of `seeds`."""
        self._state = state
        self._queue = queue
        self._assembly = assembly
        self._pods = pods
        self._executor = executor
        self._failures = failures
        self._pre_checks = pre_checks
        self._metrics = metrics
        self._overruns = overruns
        self._budget = budget
        self._extenders = extenders
        self._decide = decide
        self._next_starts: dict[str, int] = {}
        """By profile, where its next search for feasible nodes begins."""
        self._cache = DecisionCache()
        self._seeds = seeds
        self._recorder = recorder
        self._idle = asyncio.Event()
        """Not set while extenders are awaited: a reload must not switch profiles meanwhile."""
        self._idle.set()

    async def schedule_one(self, queued: QueuedPodInfo) -> None:
        """Run the scheduling cycle of a pod that was just popped."""
        pod = queued.pod
        decision: Decision | None = None
        try:
            # 1. Pre-checks: is the pod still to be scheduled, and can its profile decide now?
            profile = self._assembly.current.profiles[pod.spec.scheduler_name]
            _log.v(4).info("About to try and schedule pod", pod=pod)
            if self._pre_checks.skips(pod):
                self._queue.done(pod.uid)
                return
            _log.v(3).info("Attempting to schedule pod", pod=pod)
            if self._overruns.holds(queued) or self._pre_checks.hold(queued, profile):
                return

            # 2. Decide: filter and score nodes; where none fits, run PostFilter. Extenders are awaited: no other pod
            #    is decided meanwhile, but watch events and binding cycles continue.
            watch, inputs, is_gone = self._stopwatch(), self._inputs(queued, profile), False
            if (extenders := self._extenders) is None or not extenders.concern(pod):
                decision = self._decide(profile, pod, self._state, watch=watch, **inputs)
            else:
                self._idle.clear()
                decision = await decide_with(extenders, self._decide, profile, pod, self._state, watch=watch, **inputs)
                is_gone = self._is_gone(pod)
            if self._budget is not None:
                self._overruns.attempted(pod.namespace, self._budget.spent_seconds)
            self._metrics.attempts.decided(profile, decision)

            if not is_gone:
                self._next_starts[profile.name] = decision.next_start
                self._executor.record(pod, decision)
                if self._recorder is not None:
                    self._recorder.decided(decision.record(), extenders is not None and extenders.concern(pod))
                # 3. A plugin or an extender failed: requeue with the error backoff.
                if decision.fault is not None:
                    self._failures.error(queued, decision.fault)
                # 4. No node fits: start preemption, then requeue until an event of a plugin that rejected the pod.
                #    Preemption first: events during the requeue must find its PreEnqueue gate closed.
                elif decision.node is None:
                    nominate = self._executor.make_room(pod, profile, decision)
                    self._failures.unschedulable(queued, decision.message, *decision.rejectors, nominate=nominate)
                # 5. A node fits: assume the pod there, so that the next cycle counts it. Run Reserve and Permit.
                else:
                    placement = Placement.of(queued, profile, decision)
                    self._executor.assume(placement)
                    outcome = self._executor.reserve_and_permit(placement)
                    # 6. Start the binding cycle, which runs beside the next pods; or undo what was rejected.
                    self._executor.bind(placement, outcome)
            self._metrics.attempts.over(decision)
        except BaseException as error:
            if not is_its_own(error):
                raise
            self._contain(queued, decision, error)
        finally:
            self._idle.set()

    def _stopwatch(self) -> Stopwatch:
        return self._metrics.attempts.begin(is_looked_at=self._budget is not None and self._budget.is_timed)

    def _inputs(self, queued: QueuedPodInfo, profile: Profile) -> Inputs:
        if self._budget is not None:
            self._budget.renew()
        return Inputs(
            attempt=queued.attempts,
            seed=next(self._seeds),
            start=self._next_starts.get(profile.name, 0),
            cache=self._cache,
            budget=self._budget,
        )

    def _is_gone(self, pod: Pod) -> bool:
        """Whether the pod was deleted or bound while extenders were awaited."""
        latest = self._pods.latest(pod.uid)
        if latest is None:
            self._failures.drop(pod)
        elif self._pre_checks.skips(latest):
            self._queue.done(latest.uid)
        else:
            return False
        return True

    async def until_idle(self) -> None:
        """Until no pod is being decided."""
        await self._idle.wait()

    def _contain(self, queued: QueuedPodInfo, decision: Decision | None, error: BaseException) -> None:
        _log.error("Unexpected fault while scheduling", pod=queued.pod, err=described(error))
        if decision is None or decision.node is None:
            self._failures.error(queued, str(internal(error)))
        else:
            profile = self._assembly.current.profiles[queued.pod.spec.scheduler_name]
            self._executor.bind(Placement.of(queued, profile, decision), internal(error))


class Inputs(TypedDict):
    """What `decide` needs beside profile, pod and state."""

    attempt: int
    seed: int
    start: int
    cache: DecisionCache
    budget: TimeBudget | None


class PreChecks(msgspec.Struct):
    """Whether a popped pod can be scheduled now. A pod that cannot is requeued here, with the reason."""

    assembly: CurrentAssembly
    informers: Informers
    bindings: BindingCycles
    failures: FailureHandler
    decision_log: DecisionLog
    awaiting_kinds: PodsAwaitingKinds

    def skips(self, pod: Pod) -> bool:
        """Whether the pod is not to be scheduled any more: it is being deleted or bound."""
        if pod.is_terminating:
            _log.v(3).info("Skip schedule deleting pod", pod=pod)
            self.failures.skipped(pod)
            return True
        return self.bindings.is_binding(pod.uid)

    def hold(self, queued: QueuedPodInfo, profile: Profile) -> bool:
        """Whether the pod was requeued: its profile cannot decide yet, or its requests cannot be read."""
        return self._lacks_kinds(queued, profile) or self._is_unreadable(queued)

    def _lacks_kinds(self, queued: QueuedPodInfo, profile: Profile) -> bool:
        """Pods of a profile wait while a kind that its plugins read has not been listed; other profiles are
        scheduled."""
        kinds = self.assembly.current.kinds[profile.name]
        missing = self.informers.missing(kinds)
        if not missing:
            return False
        plugins = sorted({plugin for kind, _ in missing for plugin in kinds[kind]})
        why = "; ".join(problem + self._install_command(kind) for kind, problem in missing)
        self.awaiting_kinds.add(queued.pod)
        message = f"profile {profile.name} waits for what its plugin {', '.join(plugins)} reads: {why}"
        unlisted = [resource_name(kind) for kind, _ in missing]
        evidence = {"node": None, "message": message, "refusedBy": plugins, "waitsForKinds": unlisted}
        self.decision_log.write(queued.pod, {"attempt": queued.attempts, **evidence})
        self.failures.unschedulable(queued, message, plugins)
        return True

    def _install_command(self, kind: type[KubeObject]) -> str:
        """How to install a kind that the server does not have."""
        command = self.assembly.current.remedies.get(kind)
        return f" This installs it: {command}" if command and self.informers.is_unserved(kind) else ""

    def _is_unreadable(self, queued: QueuedPodInfo) -> bool:
        pod = queued.pod
        try:
            _ = pod.requests
            return False
        except BadQuantity as error:
            message = f"the requests of pod {pod.key} cannot be read: {error}"
            self.decision_log.write(pod, {"attempt": queued.attempts, "node": None, "message": message})
            self.failures.error(queued, message)
            return True


class ClusterExecutor(msgspec.Struct):
    """Carries out decisions on the cluster: steps 4 to 6 of the scheduling cycle."""

    state: State
    queue: SchedulingQueue
    clock: Clock
    decision_log: DecisionLog
    failures: FailureHandler
    bindings: BindingCycles
    preemption: Preemption
    claim_releases: ClaimReleases
    foreign_bindings: ForeignBindings
    metrics: SchedulerMetrics

    def record(self, pod: Pod, decision: Decision) -> None:
        self.decision_log.write(pod, decision.record())

    def make_room(self, pod: Pod, profile: Profile, decision: Decision) -> str | None:
        if not profile.at(Point.POST_FILTER):
            _log.v(3).info("No PostFilter plugins are registered, so no preemption will be performed")
        helped = decision.post_filtered
        if helped.is_preemption_attempted:
            self.metrics.preempting()
        self.failures.post_filter_failed(pod, helped.results)
        if helped.plan is not None:
            self.preemption.start(helped.plan, pod)
        for remedy in helped.remedies:
            if remedy.deallocate:
                self.claim_releases.start(remedy.deallocate, pod)
            if remedy.retry_after is not None:
                self.queue.retry_after(pod, remedy.retry_after)
        return helped.nominate

    def assume(self, placement: Placement) -> None:
        self.state.assume(placement.pod, placement.node.name, self.clock.now())
        self.foreign_bindings.expect(placement.pod, placement.node.name)

    def reserve_and_permit(self, placement: Placement) -> Outcome:
        profile, decision = placement.profile, placement.decision
        outcome = reserve(profile, decision) or permit(profile, decision)
        self.metrics.attempts.placed(profile, decision, outcome)
        return outcome

    def bind(self, placement: Placement, outcome: Outcome) -> None:
        if isinstance(outcome, Permitted):
            self.bindings.start(placement, outcome.waits)
        else:
            self.bindings.undo(placement, outcome)
