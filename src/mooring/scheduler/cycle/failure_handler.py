"""What happens to a pod whose attempt failed: back into the queue, its nomination, an event and a condition.

A pod that is gone or has a node meanwhile is dropped; nothing is said about it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from mooring.base.errors import BudgetExceeded, PluginFault, StateMissing
from mooring.base.log import Log
from mooring.engine.decision import NO_NODES
from mooring.framework import Plan, Pod, Refusal
from mooring.queue import QueuedPodInfo, SchedulingQueue
from mooring.scheduler.cycle.reporting import SCHEDULER_ERROR, UNSCHEDULABLE, Reporter
from mooring.scheduler.metrics import Result, SchedulerMetrics
from mooring.scheduler.plugin_runtime.plugin_errors import PluginErrors, details_of
from mooring.scheduler.watching.feeds import PodFeed

TIME_BUDGET = "TimeBudget"
"""Stands in for a plugin that refused the pod: no cluster event concerns it, so none requeues the pod."""

_log = Log("scheduler")


class FailureHandler:
    """Takes over when a pod could not be placed or bound."""

    def __init__(self, queue: SchedulingQueue, pods: PodFeed, reporter: Reporter, metrics: SchedulerMetrics) -> None:
        self._queue = queue
        self._pods = pods
        self._reporter = reporter
        self._metrics = metrics
        self._errors = PluginErrors(metrics.plugins)

    def refused(
        self,
        waiting: QueuedPodInfo,
        message: str,
        *,
        unschedulable: Collection[str] = (),
        pending: Collection[str] = (),
        nominate: str | None = None,
    ) -> None:
        """No node would do, and these plugins said so; they decide what may wake the pod."""
        if message == NO_NODES:
            _log.v(2).info("Unable to schedule pod; no nodes are registered to the cluster; waiting", pod=waiting.pod)
        else:
            _log.v(2).info("Unable to schedule pod; no fit; waiting", pod=waiting.pod, err=message)
        self._put_back(waiting, message, UNSCHEDULABLE, unschedulable, pending, nominate)

    def broken(self, waiting: QueuedPodInfo, problem: PluginFault | str) -> None:
        """Something failed that is no verdict: retried with the error backoff."""
        details = {}
        if isinstance(problem, PluginFault):
            self._errors.count(problem)
            details = details_of(problem)
        _log.error("Error scheduling pod; retrying", pod=waiting.pod, err=problem, **details)
        self._put_back(waiting, str(problem), SCHEDULER_ERROR, (), (), "")

    def set_aside(self, waiting: QueuedPodInfo, fault: BudgetExceeded) -> None:
        """Evaluating the pod takes too long. No cluster event requeues it: only the flush of unschedulable pods, or
        another configuration."""
        self._errors.count(fault)
        where = {} if fault.raised_at is None else {"at": fault.raised_at}
        _log.error("Scheduling attempt was interrupted; pod is set aside", pod=waiting.pod, err=fault, **where)
        self._put_back(waiting, f"{fault}; the pod is set aside", SCHEDULER_ERROR, (TIME_BUDGET,), (), "")

    def held(self, waiting: QueuedPodInfo, message: str) -> None:
        """The pod is not evaluated now; a timer brings it back."""
        _log.v(2).info("Pod is held back", pod=waiting.pod, err=message)
        self._put_back(waiting, message, SCHEDULER_ERROR, (TIME_BUDGET,), (), None)

    def kept_out(self, waiting: QueuedPodInfo) -> None:
        """A pre_enqueue failed, so that there is no attempt. It stays out; event and condition say why."""
        assert waiting.gating is not None
        failure = f'running PreEnqueue plugin "{waiting.gating.plugin}": '
        message = failure + ", ".join(waiting.gating.reasons)
        self._reporter.failed(waiting.pod, message)
        told = waiting.pod.condition("PodScheduled")
        # A gate is asked at every event that it named, without any backoff. Words that differ each time (a time, an
        # address) would be as many patches.
        if told is None or told.reason != SCHEDULER_ERROR or not told.message.startswith(failure):
            self._reporter.condition(waiting.pod, SCHEDULER_ERROR, message, None)

    def no_help(self, pod: Pod, answers: Iterable[tuple[str, Plan | Refusal | PluginFault]]) -> None:
        """A post_filter plugin that failed: the pod is refused all the same, with its words."""
        for _, answer in answers:
            # Where its pre_filter was never asked there is nothing to go by: kube-scheduler's usual "not found".
            if isinstance(answer, PluginFault) and not isinstance(answer.__cause__, StateMissing):
                details = details_of(answer)
                _log.error("Status after running PostFilter plugins for pod", pod=pod, status=answer, **details)
                self._errors.count(answer)

    def declined(self, waiting: QueuedPodInfo, plugin: str, message: str) -> None:
        """A plugin said no when it was too late for events to help: a refusal, retried with the error backoff."""
        _log.error("Error scheduling pod; retrying", pod=waiting.pod, plugin=plugin, err=message)
        self._put_back(waiting, message, UNSCHEDULABLE, (), (), "")

    def _put_back(
        self,
        waiting: QueuedPodInfo,
        message: str,
        reason: str,
        unschedulable: Collection[str],
        pending: Collection[str],
        nominate: str | None,
    ) -> None:
        result = Result.UNSCHEDULABLE if reason == UNSCHEDULABLE else Result.ERROR
        self._metrics.attempted(result, waiting.pod.spec.scheduler_name, waiting.popped)
        latest = self._pods.latest(waiting.pod.uid)
        if latest is None:
            self.drop(waiting.pod)
            return
        if not self._pods.is_ours(latest):
            self._queue.done(latest.uid)
            self._pods.leave(latest)
            return
        self._queue.requeue(waiting, latest, unschedulable=unschedulable, pending=pending)
        self._pods.nominator.decided(latest, nominate)
        self._reporter.failed(latest, message)
        self._reporter.condition(latest, reason, message, nominate)

    def drop(self, pod: Pod) -> None:
        """It is gone, or has a node meanwhile: there is nothing more to do about it."""
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
