"""The pod group cycle: all members of a pod group that can be tried, from the queue to their binding cycles, or back.

`schedule` is the main path; read it first. Popping any member starts it. Members are tried one after the other on the
state, each assumed where it fits so that the next one counts it, and all of them are undone. If the group is feasible,
the members that fit are then assumed, reserved, permitted and bound together.
"""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Iterator, Sequence
from typing import Protocol

from mooring.base.clock import Clock
from mooring.base.errors import Fault, PluginFault
from mooring.base.foreign_code import described, is_its_own
from mooring.base.log import Log
from mooring.engine import Decision, Permitted, PlacementRefused, Profile, permit, reserve, unreserve
from mooring.engine.extension_point import ExtensionPoint
from mooring.engine.placements import best_placement, generate_placements
from mooring.framework import Assignment, FeatureGates, GroupPlacement, PodGroupInfo, ProposedPlacement
from mooring.framework.verdicts import Code, Refusal
from mooring.queue import QueuedPodInfo, SchedulingQueue
from mooring.recording import Recorder
from mooring.scheduler.cycle.binding_cycle import Placement, internal
from mooring.scheduler.cycle.executor import Executor
from mooring.scheduler.cycle.failure_handler import FailureHandler
from mooring.scheduler.cycle.pod_group_conditions import PodGroupConditions
from mooring.scheduler.cycle.pod_group_preemption import PodGroupPreemption
from mooring.scheduler.cycle.pod_group_results import (
    OTHER_POD_FAILED,
    SUCCESS,
    WAITING_FOR_PREEMPTION,
    GroupResult,
    GroupStatus,
    MemberResult,
    completes_quorum,
    unschedulable,
)
from mooring.scheduler.cycle.pre_checks import PreChecks
from mooring.scheduler.introspection.decision_log import DecisionLog
from mooring.scheduler.metrics import SchedulerMetrics
from mooring.scheduler.plugin_runtime.assembly import CurrentAssembly
from mooring.scheduler.watching.feeds import PodFeed
from mooring.state import Rows, State

OTHER_SCHEDULER = 'all pods in a single pod group should have the same .spec.schedulerName set, got: "{}" and "{}"'
NO_PLACEMENT_FITS = "0/{} placements are available, first placement status: {}"

_log = Log("scheduler")


class DecideMember(Protocol):
    """Decides about one pod, as in its own scheduling cycle."""

    def __call__(
        self,
        queued: QueuedPodInfo,
        profile: Profile,
        *,
        among: Rows | None = None,
        runs_post_filters: bool = True,
    ) -> Awaitable[Decision]: ...


class Attempt:
    """One attempt of a group: its members, and what is still to be requeued or bound."""

    def __init__(self, group: PodGroupInfo, queued: Sequence[QueuedPodInfo], profile: Profile) -> None:
        self.group = group
        self.queued = queued
        self.profile = profile
        self.left = {each.pod.uid: each for each in queued}
        """Those whose attempt has not ended. If the cycle itself fails, they are requeued."""
        self.assumed: list[MemberResult] = []
        """Those that are assumed in the trial under way."""

    def ended(self, queued: QueuedPodInfo) -> None:
        del self.left[queued.pod.uid]


class PodGroupCycle:
    """Schedules pod groups."""

    def __init__(
        self,
        state: State,
        queue: SchedulingQueue,
        assembly: CurrentAssembly,
        pods: PodFeed,
        executor: Executor,
        failures: FailureHandler,
        pre_checks: PreChecks,
        preemption: PodGroupPreemption,
        conditions: PodGroupConditions,
        metrics: SchedulerMetrics,
        decision_log: DecisionLog,
        gates: FeatureGates,
        clock: Clock,
        seeds: Iterator[int],
        recorder: Recorder | None = None,
    ) -> None:
        self._state = state
        self._queue = queue
        self._assembly = assembly
        self._pods = pods
        self._executor = executor
        self._failures = failures
        self._pre_checks = pre_checks
        self._preemption = preemption
        self._conditions = conditions
        self._metrics = metrics
        self._decision_log = decision_log
        self._has_placements = gates.on("TopologyAwareWorkloadScheduling")
        self._preempts = gates.on("WorkloadAwarePreemption")
        self._clock = clock
        self._seeds = seeds
        self._recorder = recorder

    async def schedule(self, popped: QueuedPodInfo, decide: DecideMember) -> None:
        """Run the cycle for the group of a pod that was just popped."""
        # 1. Take the other members from the queue, drop those that are not to be scheduled any more.
        queued = self._members(popped)
        profile = self._profile_of(queued)
        if profile is None:
            return
        queued = [each for each in queued if not self._is_dropped(each, profile)]
        if not queued:
            return
        pod = popped.pod
        group = PodGroupInfo(pod.namespace, pod.pod_group_name or "", tuple(each.pod for each in queued))
        attempt = Attempt(group, queued, profile)
        _log.v(3).info("Attempting to schedule pod group", podGroup=group.key)
        began = self._metrics.now()
        try:
            with contextlib.nullcontext() if self._recorder is None else self._recorder.trial(attempt.left):
                # 2. Try the members together; undo everything.
                result = await self._tried(attempt, decide)
                self._metrics.pod_group_decided(self._metrics.now() - began)
                # 3. The group does not fit: see whether it would without other pods.
                if self._preempts and result.status.code is Code.UNSCHEDULABLE:
                    await self._preempt(attempt, result, decide)
            if result.status.code is Code.UNSCHEDULABLE and not result.is_waiting_on_preemption:
                self._preemption.unschedulable(attempt.group, profile)
            # 4. Bind the members, or requeue them.
            if self._recorder is not None and not result.status.is_success:
                self._record_refused(self._recorder, result)
            self._submit(attempt, result)
        except BaseException as error:
            if not is_its_own(error):
                raise
            result = await self._contain(attempt, error)
        # 5. Report it.
        self._report(attempt, result, self._metrics.now() - began)

    # 1. Members

    def _members(self, popped: QueuedPodInfo) -> list[QueuedPodInfo]:
        """The popped pod and all unscheduled members that can be tried now, in the order in which they are tried."""
        pod = popped.pod
        known = self._state.pod_group(pod.namespace, pod.pod_group_name or "")
        others = [each for each in known.unscheduled if each.uid != pod.uid] if known is not None else []
        taken = [popped, *(found for each in others if (found := self._queue.pop_member(each.uid)) is not None)]
        return sorted(taken, key=lambda queued: (-queued.pod.priority, queued.initial_attempt or 0.0))

    def _profile_of(self, queued: Sequence[QueuedPodInfo]) -> Profile | None:
        """The profile of all members; None: they name several, and were requeued."""
        first = queued[0].pod.spec.scheduler_name
        for each in queued:
            if (other := each.pod.spec.scheduler_name) != first:
                for member in queued:
                    self._failures.error(member, OTHER_SCHEDULER.format(other, first))
                return None
        return self._assembly.current.profiles[first]

    def _is_dropped(self, queued: QueuedPodInfo, profile: Profile) -> bool:
        """Whether it is being deleted or bound, or cannot be decided about now. Its attempt is over then."""
        if self._pre_checks.skips(queued.pod):
            self._queue.done(queued.pod.uid)
            return True
        return self._pre_checks.hold(queued, profile)

    # 2. The trial

    async def _tried(self, attempt: Attempt, decide: DecideMember, *, runs_post_filters: bool = True) -> GroupResult:
        """The result of the best placement; without placements, that of all nodes."""
        if not self._has_placements:
            return await self._try_members(attempt, decide, runs_post_filters=runs_post_filters)
        nodes = self._state.nodes
        try:
            placements = self._metrics.attempts.of_group(
                attempt.profile,
                ExtensionPoint.PLACEMENT_GENERATE,
                lambda watch: generate_placements(attempt.profile, attempt.group, nodes, watch),
            )
        except PluginFault as fault:
            return GroupResult(GroupStatus.failed(str(fault)))
        if isinstance(placements, Refusal):
            return GroupResult(GroupStatus.refused(placements))
        first: GroupResult | None = None
        successful: list[tuple[GroupPlacement, GroupResult]] = []
        for placement in placements:
            _log.v(4).info("Trying placement of pod group", podGroup=attempt.group.key, placement=placement.name)
            names = None if len(placement.nodes) == len(nodes) else tuple(placement.nodes.names)
            result = await self._try_members(attempt, decide, among=names, runs_post_filters=runs_post_filters)
            if result.status.is_error:
                return result
            first = first or result
            if result.is_successful:
                successful.append((placement, result))
        assert first is not None, "there is a placement"
        if not successful:
            message = NO_PLACEMENT_FITS.format(len(placements), first.status.message)
            first.status = GroupStatus(Code.UNSCHEDULABLE, "", (message,))
            return first
        return self._best(attempt, successful)

    def _best(self, attempt: Attempt, successful: Sequence[tuple[GroupPlacement, GroupResult]]) -> GroupResult:
        if len(successful) == 1:
            return successful[0][1]
        proposed = [
            ProposedPlacement(
                placement, tuple(Assignment(each.queued.pod, each.node) for each in result.members if each.node)
            )
            for placement, result in successful
        ]
        try:
            best = self._metrics.attempts.of_group(
                attempt.profile,
                ExtensionPoint.PLACEMENT_SCORE,
                lambda watch: best_placement(attempt.profile, attempt.group, proposed, next(self._seeds), watch),
            )
            return successful[best][1]
        except PluginFault as fault:
            return GroupResult(GroupStatus.failed(str(fault)))

    async def _try_members(
        self,
        attempt: Attempt,
        decide: DecideMember,
        *,
        among: Sequence[str] | None = None,
        runs_post_filters: bool = True,
    ) -> GroupResult:
        """Try one member after the other, on nodes of these names only; then undo all of it.

        The group is feasible from the first member on for which Permit returns no Wait; the others are placed
        where they fit.
        """
        result, members = GroupResult(unschedulable()), []
        requires_preemption = False
        nodes = rows = None
        try:
            for queued in attempt.queued:
                if among is not None and self._state.nodes is not nodes:  # the first time, or nodes came or went
                    nodes = self._state.nodes
                    rows = nodes.where(nodes.where_named(among))
                member = MemberResult(queued)
                members.append(member)
                permitted = await self._try_one(
                    attempt, member, decide, among=rows, runs_post_filters=runs_post_filters
                )
                if member.fault is not None:
                    result = GroupResult(GroupStatus.failed(OTHER_POD_FAILED.format(member.fault)))
                    break
                if permitted is None:
                    continue
                requires_preemption |= member.requires_preemption
                if completes_quorum(permitted):
                    if requires_preemption:
                        result = GroupResult(unschedulable(WAITING_FOR_PREEMPTION), is_waiting_on_preemption=True)
                    else:
                        result = GroupResult(SUCCESS)
        finally:
            await self._undo(attempt)
        result.members = members
        return result

    async def _try_one(
        self,
        attempt: Attempt,
        member: MemberResult,
        decide: DecideMember,
        *,
        among: Rows | None,
        runs_post_filters: bool,
    ) -> Permitted | None:
        """Decide about a member and assume it where it fits. None: it does not, or failed."""
        pod, profile = member.queued.pod, attempt.profile
        decision = await decide(member.queued, profile, among=among, runs_post_filters=runs_post_filters)
        member.decision = decision
        if runs_post_filters:
            self._executor.record(pod, decision)
            if self._recorder is not None:
                member.evidence, member.is_limited = decision.record(), among is not None
        if decision.fault is not None:
            member.fault = decision.fault
            return None
        if decision.node is None:
            if runs_post_filters:
                # Evictions begin here, even if the group does not fit in the end: as kube-scheduler does it.
                member.nominate = self._executor.make_room(pod, profile, decision)
            if not member.nominate or (nominated := self._state.node(member.nominate)) is None:
                return None
            # The members behind it see it there, beside the pods that are being evicted.
            member.requires_preemption, decision.view = True, nominated
        assert decision.view is not None, "the node was found just now"
        member.node = decision.view.name
        outcome = await self._assume(attempt, member, decision)
        if isinstance(outcome, Permitted):
            member.permit_message = outcome.message
            return outcome
        member.node, member.requires_preemption, member.nominate = "", False, ""
        if isinstance(outcome, PlacementRefused):
            member.refused = outcome
        else:
            member.fault = outcome
        return None

    async def _assume(
        self, attempt: Attempt, member: MemberResult, decision: Decision
    ) -> Permitted | PlacementRefused | PluginFault | str:
        pod = member.queued.pod
        decision.cycle.is_trial = True
        member.nominated_before = self._state.nominations.node_of(pod.uid)
        try:
            self._state.assume_in_trial(pod, member.node, self._clock.now())
        except Fault as problem:
            return str(problem)
        attempt.assumed.append(member)
        refused = reserve(attempt.profile, decision)
        outcome = refused if refused is not None else permit(attempt.profile, decision)
        if not isinstance(outcome, Permitted):
            await self._undo_last(attempt)
        return outcome

    async def _undo(self, attempt: Attempt) -> None:
        while attempt.assumed:
            await self._undo_last(attempt)

    async def _undo_last(self, attempt: Attempt) -> None:
        member = attempt.assumed.pop()
        pod, decision = member.queued.pod, member.decision
        assert decision is not None, "it was assumed by a decision"
        for problem in await unreserve(attempt.profile, decision):
            _log.error("Unreserve failed", pod=pod, plugin=problem.plugin, err=problem)
        if self._state.is_assumed(pod.uid):  # extenders and plugins are awaited: it may be gone, or bound meanwhile
            self._state.forget(pod.uid)
            if member.nominated_before is not None and self._pods.latest(pod.uid) is not None:
                self._state.nominations.set(pod, member.nominated_before)
        decision.cycle.is_trial = False
        if member.requires_preemption:
            decision.view = None

    # 3. Preemption

    async def _preempt(self, attempt: Attempt, result: GroupResult, decide: DecideMember) -> None:
        """Look for pods whose eviction makes room for the whole group, and start to evict them."""

        async def refusal() -> Refusal | None:
            tried = await self._tried(attempt, decide, runs_post_filters=False)
            if tried.status.is_success:
                return None
            if tried.status.is_error:
                raise PluginFault("", tried.status.message)
            return Refusal(tried.status.message, code=tried.status.code)

        status = await self._preemption.run(attempt.group, attempt.profile, refusal)
        if status.is_success:
            result.is_waiting_on_preemption = True
        elif status.is_error:
            result.status = status
        else:
            result.status.reasons = (*result.status.reasons, status.message)

    # 4. The outcome for each member

    @staticmethod
    def _record_refused(recorder: Recorder, result: GroupResult) -> None:
        """The decisions about the members of a group that does not fit; each counts those before it where they fit."""
        for member in result.members:
            if member.evidence is not None:
                recorder.member_decided(member.evidence, is_limited=member.is_limited, withdrawn=result.status.message)
                if member.node:
                    recorder.assumed(member.queued.pod.uid, member.node)
        for member in reversed(result.members):
            if member.evidence is not None and member.node:
                recorder.forgotten(member.queued.pod.uid)

    def _submit(self, attempt: Attempt, result: GroupResult) -> None:
        members = {each.queued.pod.uid: each for each in result.members}
        for queued in attempt.queued:
            member = members.get(queued.pod.uid)
            attempt.ended(queued)
            if self._recorder is not None and result.status.is_success and member and member.evidence is not None:
                self._recorder.member_decided(member.evidence, is_limited=member.is_limited)
            if self._pods.latest(queued.pod.uid) is None:  # deleted or bound while extenders were awaited
                self._failures.drop(queued.pod)
            elif result.status.is_error:
                self._failures.error(
                    queued, member.fault if member and member.fault is not None else result.status.message
                )
            elif member is None:
                self._fail(queued, result.status, None)
            elif member.fits and result.status.is_success:
                self._bind(attempt, member)
            elif member.fits and result.is_waiting_on_preemption:
                self._fail(queued, result.status, member.node)
            elif member.fits or (member.requires_preemption and not result.is_waiting_on_preemption):
                # Why it might wait matters to its user, and what would be evicted for it does not any more.
                self._fail(queued, unschedulable(member.permit_message), "")
            else:
                self._fail_by_itself(member)

    def _bind(self, attempt: Attempt, member: MemberResult) -> None:
        """Permit runs again, now that nothing is tried: members wait until the one that completes the quorum."""
        assert member.decision is not None, "it fits a node"
        placement = Placement.of(member.queued, attempt.profile, member.decision)
        try:
            self._executor.assume(placement)
            outcome = self._executor.reserve_and_permit(placement)
        except BaseException as error:
            if not is_its_own(error):
                raise
            _log.error("Unexpected fault while scheduling", pod=placement.pod, err=described(error))
            outcome = internal(error)
        self._executor.bind(placement, outcome)
        self._metrics.attempts.over(member.decision)

    def _fail(self, queued: QueuedPodInfo, status: GroupStatus, nominate: str | None) -> None:
        """Fail with the status of the group: no plugin rejected the pod itself."""
        self._decision_log.note(queued.pod, node=None, message=status.message)
        self._failures.unschedulable(queued, status.message, nominate=nominate)

    def _fail_by_itself(self, member: MemberResult) -> None:
        """Reserve, Permit or every node rejected it."""
        decision, refused = member.decision, member.refused
        assert decision is not None, "it was decided about"
        if refused is not None:
            self._decision_log.note(decision.pod, node=None, message=refused.message, refusedBy=[refused.plugin])
            self._failures.unschedulable(member.queued, refused.message, *refused.rejectors, nominate=member.nominate)
        else:
            self._failures.unschedulable(member.queued, decision.message, *decision.rejectors, nominate=member.nominate)
        self._metrics.attempts.over(decision)

    async def _contain(self, attempt: Attempt, error: BaseException) -> GroupResult:
        """A bug in the scheduler costs the group one attempt, and loses no pod."""
        fault = internal(error)
        _log.error("Unexpected fault while scheduling", podGroup=attempt.group.key, err=described(error))
        await self._undo(attempt)
        for queued in list(attempt.left.values()):
            attempt.ended(queued)
            self._failures.error(queued, str(fault))
        return GroupResult(GroupStatus.failed(str(fault)))

    # 5. The group

    def _report(self, attempt: Attempt, result: GroupResult, seconds: float) -> None:
        group, status = attempt.group, result.status
        if status.is_success:
            _log.v(2).info("Successfully scheduled a pod group", podGroup=group.key)
        elif status.is_error:
            _log.error("Error scheduling pod group", podGroup=group.key, err=status.message)
        elif result.is_waiting_on_preemption:
            _log.v(2).info("Pod group is waiting for preemption", podGroup=group.key)
        else:
            _log.v(2).info("Unable to schedule a pod group", podGroup=group.key, err=status.message)
        self._metrics.pod_group_attempted(result.label, attempt.profile.name, seconds)
        self._conditions.report(group.namespace, group.name, status)
