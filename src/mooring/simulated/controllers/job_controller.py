"""The Job controller: runs pods until enough of them have succeeded.

Pods are counted as they are, not tracked by finalizers: a finished pod that is deleted is kept only in the count of the
status. Indexed completion, pod failure policies and deadlines are not simulated.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from mooring.base.clock import Clock, timestamp
from mooring.base.log import Log
from mooring.client import ApiClient
from mooring.client.core_event_recorder import CoreEventRecorder, EventSource
from mooring.client.informer import Informer
from mooring.client.work_queue import WorkQueue
from mooring.simulated.controllers.job_scheduling import JobScheduling
from mooring.simulated.controllers.pod_control import PodControl, report_status
from mooring.simulated.controllers.pod_templates import pod_from_template
from mooring.simulated.controllers.replica_sets import deletion_order
from mooring.simulated.controllers.workload_records import Job
from mooring.simulated.records import Document, PodRecord, controller_of

JOBS = EventSource("job-controller")


@dataclass(frozen=True)
class JobPlan:
    """What a sync of a Job does, and whether the Job has finished."""

    create: int = 0
    delete: tuple[PodRecord, ...] = ()
    succeeded: int = 0
    failed: int = 0
    end: str = ""
    """`Complete`, `Failed`, or nothing yet."""


def plan_job(job: Job, pods: Sequence[PodRecord]) -> JobPlan:
    """Keep as many pods active as parallelism allows and completions still need."""
    active = [pod for pod in pods if pod.is_active]
    succeeded = max(job.status.succeeded, sum(pod.status.phase == "Succeeded" for pod in pods))
    failed = max(job.status.failed, sum(pod.status.phase == "Failed" for pod in pods))
    if failed > job.spec.backoff_limit:
        return JobPlan(delete=tuple(active), succeeded=succeeded, failed=failed, end="Failed")
    if job.spec.completions is None:
        # A work queue Job: no pods are created after the first success, and the others run to completion.
        wanted = job.spec.parallelism if not succeeded else min(len(active), job.spec.parallelism)
        end = "Complete" if succeeded and not active else ""
    else:
        left = max(0, job.spec.completions - succeeded)
        wanted = min(job.spec.parallelism, left)
        end = "" if left else "Complete"
    if job.spec.suspend:
        wanted, end = 0, ""
    surplus = max(0, len(active) - wanted)
    return JobPlan(
        create=max(0, wanted - len(active)),
        delete=tuple(deletion_order(active)[:surplus]),
        succeeded=succeeded,
        failed=failed,
        end=end,
    )


def job_status(job: Job, plan: JobPlan, pods: Sequence[PodRecord], now: float) -> Document:
    """The desired status of the Job."""
    stamp = timestamp(now)
    active = [pod for pod in pods if pod.is_active]
    status: Document = {
        "active": len(active),
        "ready": sum(pod.ready_since is not None for pod in active),
        "succeeded": plan.succeeded,
        "failed": plan.failed,
    }
    if not job.spec.suspend:
        status["startTime"] = job.status.start_time or stamp
    if not plan.end:
        return status
    # Servers require the interim condition (why the Job ends) before the terminal one.
    if plan.end == "Complete":
        first, reason = "SuccessCriteriaMet", "CompletionsReached"
        message = "Reached expected number of succeeded pods"
        status["completionTime"] = stamp
    else:
        first, reason = "FailureTarget", "BackoffLimitExceeded"
        message = "Job has reached the specified backoff limit"
    status["conditions"] = [
        {
            "type": type_,
            "status": "True",
            "reason": reason,
            "message": message,
            "lastProbeTime": stamp,
            "lastTransitionTime": stamp,
        }
        for type_ in (first, plan.end)
    ]
    return status


def _pod_of(job: Job, group: str | None) -> Document:
    pod = pod_from_template(job, job.spec.template)
    if group is not None:
        pod["spec"] = {**pod["spec"], "schedulingGroup": {"podGroupName": group}}
    return pod


class JobController:
    """Runs Jobs to completion."""

    def __init__(
        self,
        client: ApiClient,
        jobs: Informer[Job],
        pods: Informer[PodRecord],
        events: CoreEventRecorder,
        *,
        clock: Clock,
        scheduling: JobScheduling | None = None,
    ) -> None:
        self._client = client
        self._scheduling = scheduling
        self._jobs = jobs
        self._events = events
        self._clock = clock
        self._control = PodControl(client, pods, events, JOBS)
        self._queue = WorkQueue("job", self._sync, clock=clock, log=Log("workloads"), workers=8)
        jobs.subscribe(changed=lambda each: self._queue.add(each.key))
        pods.subscribe(changed=self._pod_changed, deleted=self._pod_changed)

    def tasks(self) -> dict[str, Callable[[], Awaitable[None]]]:
        return {"jobs": self._queue.run}

    def _pod_changed(self, pod: PodRecord) -> None:
        owner = controller_of(pod)
        if owner is not None and owner[0] == "Job":
            self._queue.add(f"{pod.namespace}/{owner[1]}")

    async def _sync(self, key: str) -> None:
        job = self._jobs.get(key)
        if job is None or job.is_finished or job.is_terminating:
            return
        pods = self._control.pods_of(job)
        plan = plan_job(job, pods)
        # Before the first pod is created: with its first pod a Job is no longer new.
        group = None if self._scheduling is None else await self._scheduling.group_name(job, pods)
        await self._control.create(job, [_pod_of(job, group)] * plan.create)
        await self._control.delete(job, plan.delete)
        pods = self._control.pods_of(job)
        if plan.end and any(pod.is_active for pod in pods):
            return  # it finishes after its last active pod
        await report_status(self._client, self._jobs, job, job.status, job_status(job, plan, pods, self._clock.now()))
        if plan.end == "Complete":
            self._events.record(job, JOBS, "Completed", "Job completed")
        elif plan.end:
            message = "Job has reached the specified backoff limit"
            self._events.record(job, JOBS, "BackoffLimitExceeded", message, warning=True)
