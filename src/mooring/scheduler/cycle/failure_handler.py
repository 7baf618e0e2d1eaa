"""A failed attempt: the pod is requeued, its nomination updated, an event and a condition written.

A pod that was deleted or assigned meanwhile is dropped, without an event.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from mooring.base.errors import BudgetExceeded, PluginFault, StateMissing
from mooring.base.log import Log
from mooring.engine.decision import NO_NODES
from mooring.framework import Plan, Pod, Refusal
from mooring.queue import QueuedPodInfo, SchedulingQueue
from mooring.scheduler.cycle.reporting import SCHEDULER_ERROR, UNSCHEDULABLE, Reporter
from mooring.scheduler.metrics import AttemptResult, SchedulerMetrics
from mooring.scheduler.plugin_runtime.plugin_errors import PluginErrors, details_of
from mooring.scheduler.watching.feeds import PodFeed

TIME_BUDGET = "TimeBudget"
"""Stands in for a plugin that refused the pod: no cluster event concerns it, so none requeues the pod."""

_log = Log("scheduler")


class FailureHandler:
    """Handles pods that could not be scheduled or bound."""

    def __init__(self, queue: SchedulingQueue, pods: PodFeed, reporter: Reporter, metrics: SchedulerMetrics) -> None:
        self._queue = queue
        self._pods = pods
        self._reporter = reporter
        self._metrics = metrics
        self._errors = PluginErrors(metrics.plugins)

    def unschedulable(
        self,
        queued: QueuedPodInfo,
        message: str,
        unschedulable: Collection[str] = (),
        pending: Collection[str] = (),
        *,
        nominate: str | None = None,
    ) -> None:
        """No node fits, because of these plugins; events that they registered for requeue the pod."""
        if message == NO_NODES:
            _log.v(2).info("Unable to schedule pod; no nodes are registered to the cluster; waiting", pod=queued.pod)
        else:
            _log.v(2).info("Unable to schedule pod; no fit; waiting", pod=queued.pod, err=message)
        self._requeue(queued, message, UNSCHEDULABLE, unschedulable, pending, nominate)

    def error(self, queued: QueuedPodInfo, problem: PluginFault | str) -> None:
        """The attempt failed without a verdict: retried with the error backoff."""
        if isinstance(problem, BudgetExceeded):
            self._set_aside(queued, problem)
            return
        details = {}
        if isinstance(problem, PluginFault):
            self._errors.count(problem)
            details = details_of(problem)
        _log.error("Error scheduling pod; retrying", pod=queued.pod, err=problem, **details)
        self._requeue(queued, str(problem), SCHEDULER_ERROR, (), (), "")

    def _set_aside(self, queued: QueuedPodInfo, fault: BudgetExceeded) -> None:
        """Evaluating the pod takes too long. No cluster event requeues it: only the flush of unschedulable pods, or
        another configuration."""
        self._errors.count(fault)
        where = {} if fault.raised_at is None else {"at": fault.raised_at}
        _log.error("Scheduling attempt exceeded its time budget; pod is set aside", pod=queued.pod, err=fault, **where)
        self._requeue(queued, f"{fault}; the pod is set aside", SCHEDULER_ERROR, (TIME_BUDGET,), (), "")

    def hold_back(self, queued: QueuedPodInfo, message: str) -> None:
        """The pod is not evaluated now; the caller sets a timer that activates it."""
        _log.v(2).info("Scheduling attempt deferred", pod=queued.pod, err=message)
        self._requeue(queued, message, SCHEDULER_ERROR, (TIME_BUDGET,), (), None)

    def skipped(self, pod: Pod) -> None:
        """The pod is being deleted: there is no attempt."""
        self._reporter.failed(pod, f"skip schedule deleting pod: {pod.key}")

    def pre_enqueue_failed(self, queued: QueuedPodInfo) -> None:
        """PreEnqueue failed, so there is no attempt: the pod stays gated, with an event and a condition."""
        assert queued.gating is not None
        failure = f'running PreEnqueue plugin "{queued.gating.plugin}": '
        message = failure + ", ".join(queued.gating.reasons)
        self._reporter.failed(queued.pod, message)
        reported = queued.pod.condition("PodScheduled")
        # PreEnqueue runs at every event that its plugin registered for, without backoff. A message that differs each
        # time (a time, an address) would be as many patches.
        if reported is None or reported.reason != SCHEDULER_ERROR or not reported.message.startswith(failure):
            self._reporter.condition(queued.pod, SCHEDULER_ERROR, message, None)

    def post_filter_failed(self, pod: Pod, results: Iterable[tuple[str, Plan | Refusal | PluginFault]]) -> None:
        """Log and count PostFilter plugins that failed: the pod is unschedulable all the same, with their message."""
        for _, result in results:
            # Where its PreFilter never ran there is no state: kube-scheduler's usual "not found".
            if isinstance(result, PluginFault) and not isinstance(result.__cause__, StateMissing):
                details = details_of(result)
                _log.error("Status after running PostFilter plugins for pod", pod=pod, status=result, **details)
                self._errors.count(result)

    def rejected_at_binding(self, queued: QueuedPodInfo, plugin: str, message: str) -> None:
        """PreBind or Bind rejected the pod, when events are no longer recorded for it: retried with error backoff."""
        _log.error("Error scheduling pod; retrying", pod=queued.pod, plugin=plugin, err=message)
        self._requeue(queued, message, UNSCHEDULABLE, (), (), "")

    def _requeue(
        self,
        queued: QueuedPodInfo,
        message: str,
        reason: str,
        unschedulable: Collection[str],
        pending: Collection[str],
        nominate: str | None,
    ) -> None:
        result = AttemptResult.UNSCHEDULABLE if reason == UNSCHEDULABLE else AttemptResult.ERROR
        self._metrics.attempted(result, queued.pod.spec.scheduler_name, queued.popped)
        latest = self._pods.latest(queued.pod.uid)
        if latest is None:
            self.drop(queued.pod)
            return
        if not self._pods.is_ours(latest):
            self._queue.done(latest.uid)
            self._pods.make_foreign(latest)
            return
        self._queue.requeue(queued, latest, unschedulable=unschedulable, pending=pending)
        self._pods.nominator.decided(latest, nominate)
        self._reporter.failed(latest, message)
        self._reporter.condition(latest, reason, message, nominate)

    def drop(self, pod: Pod) -> None:
        """The pod was deleted or assigned meanwhile: end its attempt."""
        now = self._pods.uid_of(pod.key)
        if (node := self._pods.node_of(pod.uid)) is not None:
            _log.info("Pod has been assigned to node. Abort adding it back to queue.", pod=pod, node=node)
        elif now is not None and now != pod.uid:
            _log.v(2).info(
                "Pod was recreated while handling scheduling failure. Skip requeueing and status updates.",
                pod=pod,
                oldUID=pod.uid,
                newUID=now,
            )
        else:
            _log.info("Pod doesn't exist in informer cache", pod=pod)
        self._queue.done(pod.uid)
