"""What a shadow does with decisions: remembers them for the comparison, and touches nothing."""

from __future__ import annotations

from dataclasses import dataclass

from mooring.base.errors import PluginFault
from mooring.engine import Decision, Profile
from mooring.framework import Pod
from mooring.queue import QueuedPodInfo, SchedulingQueue
from mooring.scheduler.cycle.failure_handler import FailureHandler
from mooring.scheduler.metrics import Result, SchedulerMetrics
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

    def place(self, queued: QueuedPodInfo, profile: Profile, decision: Decision) -> None:
        self.metrics.attempted(Result.SCHEDULED, profile.name, queued.popped)
        self.queue.done(queued.pod.uid)

    def undo(self, queued: QueuedPodInfo, profile: Profile, decision: Decision, fault: PluginFault) -> None:
        self.failures.error(queued, fault)
