"""What becomes of a decision: the pod is placed and its binding begins, or room is made and it waits."""

from __future__ import annotations

from dataclasses import dataclass

from mooring.base.clock import Clock
from mooring.base.errors import BudgetExceeded, PluginFault
from mooring.base.log import Log
from mooring.engine import Decision, Permitted, Profile, Refused, permit, reserve
from mooring.framework import Point
from mooring.queue import QueuedPodInfo, SchedulingQueue
from mooring.scheduler.cycle.binding_cycle import BindingCycles, Placement
from mooring.scheduler.cycle.claim_releases import ClaimReleases
from mooring.scheduler.cycle.failure_handler import FailureHandler
from mooring.scheduler.cycle.preemption import Preemption
from mooring.scheduler.introspection.decision_log import DecisionLog
from mooring.scheduler.introspection.foreign_bindings import ForeignBindings
from mooring.scheduler.metrics import SchedulerMetrics
from mooring.state import State

_log = Log("scheduler")


@dataclass
class Conclusions:
    """Does what was decided."""

    state: State
    queue: SchedulingQueue
    clock: Clock
    journal: DecisionLog
    failures: FailureHandler
    bindings: BindingCycles
    evictions: Preemption
    claim_releases: ClaimReleases
    rivals: ForeignBindings
    metrics: SchedulerMetrics

    def conclude(self, waiting: QueuedPodInfo, profile: Profile, decision: Decision) -> None:
        """Do what was decided: place the pod, or let it wait."""
        self.journal.write(waiting.pod, decision.evidence())
        if isinstance(decision.fault, BudgetExceeded):
            self.failures.set_aside(waiting, decision.fault)
        elif decision.fault is not None:
            self.failures.broken(waiting, decision.fault)
        elif decision.node is None:
            self._refused(waiting, profile, decision)
        else:
            self._place(waiting, profile, decision)

    def _refused(self, waiting: QueuedPodInfo, profile: Profile, decision: Decision) -> None:
        """No node will do: make the room that was planned, and let the pod wait."""
        if not profile.at(Point.POST_FILTER):
            _log.v(3).info("No PostFilter plugins are registered, so no preemption will be performed")
        helped = decision.post_filtered
        if helped.is_preemption_attempted:
            self.metrics.preempting()
        self.failures.no_help(waiting.pod, helped.results)
        if helped.plan is not None:
            # Before the pod goes back: events of the meantime must find its gate closed.
            self.evictions.begin(helped.plan, waiting.pod)
        unschedulable, pending = decision.rejectors
        self.failures.refused(
            waiting, decision.message, unschedulable=unschedulable, pending=pending, nominate=helped.nominate
        )
        for remedy in helped.remedies:
            if remedy.deallocate:
                self.claim_releases.begin(remedy.deallocate, waiting.pod)
            if remedy.retry_after is not None:
                self.queue.retry_after(waiting.pod, remedy.retry_after)

    def _place(self, waiting: QueuedPodInfo, profile: Profile, decision: Decision) -> None:
        """Assume the pod on its node, reserve, ask for permission, and start binding."""
        pod = waiting.pod
        assert decision.view is not None
        self.state.assume(pod, decision.view.name, self.clock.now())
        self.rivals.asked(pod, decision.view.name)
        placement = Placement(waiting, pod, profile, decision, decision.view, {})
        answer: Refused | PluginFault | Permitted = reserve(profile, decision) or permit(profile, decision)
        self.metrics.attempts.placed(profile, decision, answer)
        if isinstance(answer, Permitted):
            placement.waits = answer.waits
            self.bindings.begin(placement)
        else:
            self.bindings.give_up(placement, answer)
