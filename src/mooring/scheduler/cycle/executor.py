"""Carrying out decisions: steps 4 to 6 of the scheduling cycle, for a pod by itself and for the pods of a group."""

from __future__ import annotations

from typing import Protocol, TypeAlias

import msgspec

from mooring.base.clock import Clock
from mooring.base.errors import PluginFault
from mooring.base.log import Log
from mooring.engine import Decision, Permitted, PlacementRefused, Profile, permit, reserve
from mooring.framework import Pod, Point
from mooring.queue import SchedulingQueue
from mooring.scheduler.cycle.binding_cycle import BindingCycles, Placement
from mooring.scheduler.cycle.failure_handler import FailureHandler
from mooring.scheduler.cycle.preemption import ClaimReleases, Preemption
from mooring.scheduler.introspection.decision_log import DecisionLog
from mooring.scheduler.introspection.foreign_bindings import ForeignBindings
from mooring.scheduler.metrics import SchedulerMetrics
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
