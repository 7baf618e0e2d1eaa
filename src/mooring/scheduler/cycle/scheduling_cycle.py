"""The scheduling cycle: one pod, from the queue to the start of its binding cycle, or back into the queue.

`schedule_one` is the main path; read it first. For a pod by itself it awaits nothing but extenders, so the state does
not change under a decision; for a pod group also plugins that undo a trial. A reload waits for the end of both. A bug,
in a plugin or in the scheduler, costs the pod one attempt; it never loses the pod and never ends the loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import TypedDict

from mooring.base.foreign_code import described, is_its_own
from mooring.base.log import Log
from mooring.engine import Decide, Decision, DecisionCache, Profile
from mooring.engine.stopwatch import Stopwatch
from mooring.engine.time_budget import TimeBudget
from mooring.framework import Pod
from mooring.queue import QueuedPodInfo, SchedulingQueue
from mooring.recording import Recorder
from mooring.scheduler.cycle.binding_cycle import Placement, internal
from mooring.scheduler.cycle.executor import Executor
from mooring.scheduler.cycle.failure_handler import FailureHandler
from mooring.scheduler.cycle.overruns import Overruns
from mooring.scheduler.cycle.pod_group_cycle import PodGroupCycle
from mooring.scheduler.cycle.pre_checks import PreChecks
from mooring.scheduler.extenders import Extenders, decide_with
from mooring.scheduler.metrics import SchedulerMetrics
from mooring.scheduler.plugin_runtime.assembly import CurrentAssembly
from mooring.scheduler.watching.feeds import PodFeed
from mooring.state import Rows, State

_log = Log("scheduler")


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
        groups: PodGroupCycle | None = None,
    ) -> None:
        """`budget` is the time that plugins have for one attempt; None: no limit. Each decision's ties are broken by
        the next of `seeds`. `groups` schedules the pods of pod groups; without it they are scheduled as any other."""
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
        self._groups = groups
        self._idle = asyncio.Event()
        """Not set while extenders are awaited and while members of a group are tried: a reload must not switch profiles
        meanwhile."""
        self._idle.set()

    async def schedule_one(self, queued: QueuedPodInfo) -> None:
        """Run the scheduling cycle of a pod that was just popped."""
        pod = queued.pod
        if self._groups is not None and pod.spec.scheduling_group is not None:
            await self._schedule_group(queued, self._groups)
            return
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
            decision = await self.decide(queued, profile)
            is_extended = not self._idle.is_set()
            is_gone = is_extended and self._is_gone(pod)

            if not is_gone:
                self._next_starts[profile.name] = decision.next_start
                self._executor.record(pod, decision)
                if self._recorder is not None:
                    self._recorder.decided(decision.record(), is_extended=is_extended)
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

    async def decide(
        self, queued: QueuedPodInfo, profile: Profile, *, among: Rows | None = None, runs_post_filters: bool = True
    ) -> Decision:
        """Choose a node for the pod, `among` these only if given. Suspends only where extenders are called."""
        pod, watch, inputs = queued.pod, self._stopwatch(), self._inputs(queued, profile, among, runs_post_filters)
        if (extenders := self._extenders) is None or not extenders.concern(pod):
            decision = self._decide(profile, pod, self._state, watch=watch, **inputs)
        else:
            self._idle.clear()
            decision = await decide_with(extenders, self._decide, profile, pod, self._state, watch=watch, **inputs)
        if self._budget is not None:
            self._overruns.attempted(pod.namespace, self._budget.spent_seconds, self._budget.others_seconds)
        self._metrics.attempts.decided(profile, decision)
        return decision

    async def _schedule_group(self, queued: QueuedPodInfo, groups: PodGroupCycle) -> None:
        """Schedule all members of the pod's group together."""
        self._idle.clear()  # plugins are awaited, too: `unreserve` of a member that was tried, `pod_group_post_filter`
        try:
            if not self._overruns.holds(queued):
                await groups.schedule(queued, self._decide_member)
        finally:
            self._idle.set()

    async def _decide_member(
        self, queued: QueuedPodInfo, profile: Profile, *, among: Rows | None = None, runs_post_filters: bool = True
    ) -> Decision:
        decision = await self.decide(queued, profile, among=among, runs_post_filters=runs_post_filters)
        if among is None:
            self._next_starts[profile.name] = decision.next_start
        return decision

    def _stopwatch(self) -> Stopwatch:
        return self._metrics.attempts.begin(is_looked_at=self._budget is not None and self._budget.is_timed)

    def _inputs(self, queued: QueuedPodInfo, profile: Profile, among: Rows | None, runs_post_filters: bool) -> Inputs:
        if self._budget is not None:
            self._budget.renew()
        return Inputs(
            attempt=queued.attempts,
            seed=next(self._seeds),
            start=self._next_starts.get(profile.name, 0),
            cache=self._cache,
            budget=self._budget,
            among=among,
            runs_post_filters=runs_post_filters,
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
    among: Rows | None
    runs_post_filters: bool
