"""Notices that somebody else binds pods of ours: another scheduler serves the same scheduler name.

Two schedulers that do not know of each other overfill nodes together, and each finds its bindings refused. A pod that
waited here and is shown on a node where we did not put it was bound by somebody else; its Scheduled event says who.
All are counted; one now and then is told in the log and as an event of the pod.
"""

from __future__ import annotations

from collections import Counter

from mooring.base.clock import Clock
from mooring.base.errors import ApiError, MooringError
from mooring.base.log import Log
from mooring.client import ApiClient
from mooring.client.recorder import CORE_EVENTS
from mooring.framework import Metrics, Pod
from mooring.scheduler.cycle.background_tasks import BackgroundTasks
from mooring.scheduler.cycle.reporting import Reporter
from mooring.scheduler.watching.pod_observer import PodObserver

GRACE_SECONDS = 15.0
"""The last bindings of whoever led before us may still be on their way to us."""
TOLD_APART_SECONDS = 300.0
EVENT_TRIES, EVENT_PAUSE_SECONDS = 3, 2.0
"""Their event comes after their binding."""
FORBIDDEN = 403

BOUND_BY_ANOTHER = "BoundByAnother"
METRIC = "mooring_bound_by_others_total"
WHAT_TO_DO = (
    "Give one of the two another schedulerName, let both share a lease (leaderElection), or stop one: together they "
    "overfill nodes"
)

_log = Log("scheduler")


class ForeignBindings(PodObserver):
    """Told what we are about to bind and what the watch shows; says what does not go together."""

    def __init__(self, client: ApiClient, clock: Clock, reporter: Reporter, metrics: Metrics) -> None:
        self._client = client
        self._clock = clock
        self._reporter = reporter
        self._metric = metrics.counter(METRIC, "Pods of a profile that somebody else has bound.", "profile")
        self._expected: dict[str, str] = {}
        """uid → where we are about to bind it, or have tried to."""
        self._acts_since: float | None = None
        self._told_at: dict[str, float] = {}
        self._untold: Counter[str] = Counter()
        self._telling = BackgroundTasks()

    def expect(self, pod: Pod, node: str) -> None:
        """We are about to bind the pod there. Who never does, because another leads, has no rivals."""
        if self._acts_since is None:
            self._acts_since = self._clock.monotonic()
        self._expected[pod.uid] = node

    def not_pending(self, pod: Pod) -> None:
        self._expected.pop(pod.uid, None)

    def assigned(self, pod: Pod) -> None:
        """The watch shows a pod of ours, which waited, on a node."""
        if self._expected.pop(pod.uid, None) == pod.spec.node_name:
            return
        now, profile = self._clock.monotonic(), pod.spec.scheduler_name
        if self._acts_since is None or now < self._acts_since + GRACE_SECONDS:
            return
        self._metric.inc(profile=profile)
        self._untold[profile] += 1
        if now >= self._told_at.get(profile, float("-inf")) + TOLD_APART_SECONDS:
            self._told_at[profile] = now
            self._telling.start(self._tell(pod), f"who bound {pod.key}")

    async def close(self) -> None:
        await self._telling.cancel()

    async def _tell(self, pod: Pod) -> None:
        who, profile = await self._who_bound(pod), pod.spec.scheduler_name
        count, self._untold[profile] = self._untold[profile], 0
        node = pod.spec.node_name
        _log.warning(
            f"Another scheduler binds pods of ours. {WHAT_TO_DO}",
            schedulerName=profile,
            by=who,
            pod=pod,
            node=node,
            podsSinceLastSaid=count,
        )
        self._reporter.warned(
            pod,
            reason=BOUND_BY_ANOTHER,
            action="Binding",
            note=f"Bound to {node} by {who}, which serves schedulerName {profile} too. {WHAT_TO_DO}.",
        )

    async def _who_bound(self, pod: Pod) -> str:
        """The instance that wrote the Scheduled event, if we may list events: the manifests allow it."""
        selector = f"involvedObject.name={pod.name},involvedObject.uid={pod.uid},reason=Scheduled"
        for _ in range(EVENT_TRIES):
            await self._clock.sleep(EVENT_PAUSE_SECONDS)
            try:
                events = await self._client.list(CORE_EVENTS, pod.namespace, field_selector=selector)
            except ApiError as error:
                if error.code == FORBIDDEN:
                    return "somebody (the pod's Scheduled event tells who; we may not list events)"
            except MooringError:
                continue
            else:
                for event in events:
                    source = event.get("source") or {}
                    if name := event.get("reportingInstance") or source.get("host") or source.get("component"):
                        return str(name)
        return "somebody who wrote no Scheduled event"
