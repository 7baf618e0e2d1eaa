"""The executor of a shadow: records decisions for the comparison, and changes nothing."""

from __future__ import annotations

from dataclasses import dataclass

from mooring.base.errors import PluginFault
from mooring.engine import Decision, Permitted, Profile
from mooring.framework import Pod
from mooring.queue import SchedulingQueue
from mooring.scheduler.cycle.binding_cycle import Placement
from mooring.scheduler.cycle.executor import Outcome
from mooring.scheduler.cycle.failure_handler import FailureHandler
from mooring.scheduler.metrics import AttemptResult, SchedulerMetrics
from mooring.scheduler.shadow.shadow import Shadow


@dataclass
class ShadowExecutor:
    """Nothing is assumed, reserved, bound, evicted or nominated. The pod waits for the other scheduler."""

    shadow: Shadow
    queue: SchedulingQueue
    failures: FailureHandler
    metrics: SchedulerMetrics

    def record(self, pod: Pod, decision: Decision) -> None:
        self.shadow.decided(pod, decision)

    def make_room(self, pod: Pod, profile: Profile, decision: Decision) -> None:
        """No eviction, no nomination."""

    def assume(self, placement: Placement) -> None:
        """Not before the watch shows where the other scheduler bound the pod."""

    def reserve_and_permit(self, placement: Placement) -> Outcome:
        return Permitted({})

    def bind(self, placement: Placement, outcome: Outcome) -> None:
        if isinstance(outcome, PluginFault):
            self.failures.error(placement.queued, outcome)
        else:
            self.metrics.attempted(AttemptResult.SCHEDULED, placement.profile.name, placement.queued.popped)
            self.queue.done(placement.pod.uid)
