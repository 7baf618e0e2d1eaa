"""Detects bindings of our pods by another scheduler that serves the same scheduler name.

Two schedulers that do not know of each other overfill nodes together, and each finds its bindings refused. A pod that
waited here and is shown on a node where we did not put it was bound by another scheduler; its Scheduled event names it.
All are counted; one now and then is logged and recorded as an event of the pod.
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
"""The last bindings of the previous leader may not have been watched yet."""
REPORTS_APART_SECONDS = 300.0
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
    """Compares our own bindings with those that the watch shows."""

    def __init__(self, client: ApiClient, clock: Clock, reporter: Reporter, metrics: Metrics) -> None:
        self._client = client
        self._clock = clock
        self._reporter = reporter
        self._metric = metrics.counter(METRIC, "Pods of a profile that another client has bound.", "profile")
        self._expected: dict[str, str] = {}
        """uid → where we are about to bind it, or have tried to."""
        self._acts_since: float | None = None
        self._reported_at: dict[str, float] = {}
        self._unreported: Counter[str] = Counter()
        self._reports = BackgroundTasks()

    def expect(self, pod: Pod, node: str) -> None:
        """We are about to bind the pod there. A standby replica binds none, so it detects nothing."""
        if self._acts_since is None:
            self._acts_since = self._clock.monotonic()
        self._expected[pod.uid] = node

    def not_pending(self, pod: Pod) -> None:
        self._expected.pop(pod.uid, None)

    def assigned(self, pod: Pod) -> None:
        """The watch shows a pending pod of our profiles on a node."""
        if self._expected.pop(pod.uid, None) == pod.spec.node_name:
            return
        now, profile = self._clock.monotonic(), pod.spec.scheduler_name
        if self._acts_since is None or now < self._acts_since + GRACE_SECONDS:
            return
        self._metric.inc(profile=profile)
        self._unreported[profile] += 1
        if now >= self._reported_at.get(profile, float("-inf")) + REPORTS_APART_SECONDS:
            self._reported_at[profile] = now
            self._reports.start(self._report(pod), f"who bound {pod.key}")

    async def close(self) -> None:
        await self._reports.cancel()

    async def _report(self, pod: Pod) -> None:
        who, profile = await self._who_bound(pod), pod.spec.scheduler_name
        count, self._unreported[profile] = self._unreported[profile], 0
        node = pod.spec.node_name
        _log.warning(
            f"Another scheduler is binding pods of this profile. {WHAT_TO_DO}",
            schedulerName=profile,
            by=who,
            pod=pod,
            node=node,
            podsSinceLastReport=count,
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
                    return (
                        "an unknown scheduler (the pod's Scheduled event names it; this scheduler may not list events)"
                    )
            except MooringError:
                continue
            else:
                for event in events:
                    source = event.get("source") or {}
                    if name := event.get("reportingInstance") or source.get("host") or source.get("component"):
                        return str(name)
        return "a client that wrote no Scheduled event"
