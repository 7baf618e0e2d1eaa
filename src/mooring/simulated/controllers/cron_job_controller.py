"""The CronJob controller: creates Jobs by schedule. `cron_jobs` computes when they are due."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime, tzinfo

import msgspec

from mooring.base.clock import Clock, timestamp
from mooring.base.cron import BadSchedule, Schedule, UnknownTimeZone, parse_schedule, time_zone
from mooring.base.errors import ApiError
from mooring.base.log import Log
from mooring.client import ApiClient
from mooring.client.core_event_recorder import CoreEventRecorder, EventSource
from mooring.client.informer import Informer
from mooring.client.work_queue import WorkQueue
from mooring.simulated.controllers.cron_jobs import (
    NeverDue,
    beyond_history,
    due,
    is_too_late,
    job_document,
    job_name,
    last_success,
    reference,
    seconds_until_next,
)
from mooring.simulated.controllers.pod_control import is_namespace_terminating, report_status
from mooring.simulated.controllers.workload_records import CronJob, Job
from mooring.simulated.records import Document, controller_of

_SOURCE = EventSource("cronjob-controller")
_MANY = "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew"
_ACTIVE = "Not starting job because prior execution is running and concurrency policy is Forbid"


class CronJobController:
    """Creates Jobs by schedule, and deletes finished ones beyond the history limits."""

    def __init__(
        self,
        client: ApiClient,
        cron_jobs: Informer[CronJob],
        jobs: Informer[Job],
        events: CoreEventRecorder,
        *,
        clock: Clock,
    ) -> None:
        self._client = client
        self._cron_jobs = cron_jobs
        self._jobs = jobs
        self._events = events
        self._clock = clock
        self._deleting: set[str] = set()
        self._queue = WorkQueue("cronjob", self._sync, clock=clock, log=Log("workloads"), workers=8)
        cron_jobs.subscribe(changed=lambda each: self._queue.add(each.key))
        jobs.subscribe(changed=self._job_changed, deleted=self._job_deleted)

    def tasks(self) -> dict[str, Callable[[], Awaitable[None]]]:
        return {"cronjobs": self._queue.run}

    def _job_changed(self, job: Job) -> None:
        owner = controller_of(job)
        if owner is not None and owner[0] == "CronJob":
            self._queue.add(f"{job.namespace}/{owner[1]}")

    def _job_deleted(self, job: Job) -> None:
        self._deleting.discard(job.uid)
        self._job_changed(job)

    async def _sync(self, key: str) -> None:
        owner = self._cron_jobs.get(key)
        if owner is None:
            return
        jobs = [job for job in self._jobs.owned_by(owner.uid) if job.uid not in self._deleting]
        active = await self._still_active(owner, jobs)
        status: Document = {"active": active}
        if (success := last_success(owner, jobs)) is not None:
            status["lastSuccessfulTime"] = success
        await self._delete(owner, beyond_history(owner, jobs))
        try:
            if not owner.is_terminating:
                await self._start_what_is_due(owner, status)
        finally:
            await report_status(self._client, self._cron_jobs, owner, owner.status, status)

    async def _still_active(self, owner: CronJob, jobs: Sequence[Job]) -> list[Document]:
        """The Jobs of the status that are still active; events report the others."""
        known = {job.uid: job for job in jobs}
        listed = {each["uid"] for each in owner.status.active}
        for job in jobs:
            if not job.outcome and not job.is_terminating and job.uid not in listed:
                message = f"Saw a job that the controller did not create or forgot: {job.name}"
                self._events.record(owner, _SOURCE, "UnexpectedJob", message, warning=True)
        active = []
        for each in owner.status.active:
            present = known.get(each["uid"])
            if present is None and await self._is_gone(owner, each):
                self._record(owner, "MissingJob", f"Active job went missing: {each['name']}")
            elif present is not None and present.outcome:
                message = f"Saw completed job: {present.name}, condition: {present.outcome}"
                self._record(owner, "SawCompletedJob", message)
            else:
                active.append(each)
        return active

    async def _is_gone(self, owner: CronJob, active: Document) -> bool:
        """Read from the server: the watch may lag."""
        if active["uid"] in self._deleting:
            return True
        try:
            found = await self._client.get(Job.KIND, active["name"], owner.namespace)
        except ApiError as error:
            if error.code != 404:
                raise
            return True
        return bool(found["metadata"]["uid"] != active["uid"])

    async def _start_what_is_due(self, owner: CronJob, status: Document) -> None:
        """Create the Job that is due, if the concurrency policy allows it, and requeue for the next schedule time."""
        if (found := self._schedule(owner)) is None or owner.spec.suspend:
            return
        schedule, zone = found
        now = self._clock.now()
        try:
            pending = due(owner, schedule, now)
        except NeverDue as error:
            self._warn(owner, "InvalidSchedule", f"invalid schedule: {owner.spec.schedule} : {error}")
            return
        if pending is not None:
            if pending.missed_many:
                self._warn(owner, "TooManyMissedTimes", _MANY)
            await self._start(owner, pending.scheduled, zone, status)
        wait = seconds_until_next(owner, schedule, now)
        if wait is not None:
            self._queue.add_after(owner.key, max(wait, 0))

    def _schedule(self, owner: CronJob) -> tuple[Schedule, tzinfo] | None:
        try:
            zone = time_zone(owner.spec.time_zone)
            return parse_schedule(owner.spec.schedule, zone), zone
        except UnknownTimeZone as error:
            self._warn(owner, "UnknownTimeZone", f'invalid timeZone: "{owner.spec.time_zone}": {error}')
        except BadSchedule as error:
            self._warn(owner, "UnparseableSchedule", f'unparseable schedule: "{owner.spec.schedule}" : {error}')
        return None

    async def _start(self, owner: CronJob, scheduled: float, zone: tzinfo, status: Document) -> None:
        active: list[Document] = status["active"]
        if is_too_late(owner, scheduled, self._clock.now()):
            moment = datetime.fromtimestamp(scheduled, UTC).strftime("%a, %d %b %Y %H:%M:%S +0000")
            self._warn(owner, "MissSchedule", f"Missed scheduled time to start a job: {moment}")
            return
        if job_name(owner, scheduled) in {each["name"] for each in active}:
            return
        if owner.spec.concurrency_policy == "Forbid" and active:
            self._record(owner, "JobAlreadyActive", _ACTIVE)
            return
        if owner.spec.concurrency_policy == "Replace":
            running = {each["uid"] for each in active}
            await self._delete(owner, [job for job in self._jobs.owned_by(owner.uid) if job.uid in running])
            status["active"] = active = []
        job = await self._create(owner, job_document(owner, scheduled, zone))
        if job is not None:
            status |= {"active": [*active, reference(job)], "lastScheduleTime": timestamp(scheduled)}

    async def _create(self, owner: CronJob, document: Document) -> Job | None:
        """The Job, also if an earlier sync created it; None if a Job of another owner has its name."""
        try:
            created = await self._client.create(Job.KIND, document, owner.namespace)
        except ApiError as error:
            if is_namespace_terminating(error):
                return None
            if error.reason != "AlreadyExists":
                self._warn(owner, "FailedCreate", f"Error creating job: {error}")
                raise
            found = await self._client.get_as(Job, document["metadata"]["name"], owner.namespace)
            controller = controller_of(found)
            return found if controller is not None and controller[2] == owner.uid else None
        job = msgspec.convert(created, Job)
        self._jobs.cache_write(job)
        self._record(owner, "SuccessfulCreate", f"Created job {job.name}")
        return job

    async def _delete(self, owner: CronJob, jobs: Sequence[Job]) -> None:
        for job in jobs:
            self._deleting.add(job.uid)
            try:
                await self._client.delete(Job.KIND, job.name, job.namespace, uid=job.uid)
            except ApiError as error:
                self._deleting.discard(job.uid)
                if error.code in (404, 409):
                    continue
                self._warn(owner, "FailedDelete", f"Deleted job: {error}")
                raise
            self._record(owner, "SuccessfulDelete", f"Deleted job {job.name}")

    def _record(self, owner: CronJob, reason: str, message: str) -> None:
        self._events.record(owner, _SOURCE, reason, message)

    def _warn(self, owner: CronJob, reason: str, message: str) -> None:
        self._events.record(owner, _SOURCE, reason, message, warning=True)
