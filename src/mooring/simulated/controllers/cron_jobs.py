"""When a CronJob creates its next Job, which Jobs it deletes, and its status. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo

from mooring.base.clock import parse_timestamp
from mooring.base.cron import Schedule
from mooring.simulated.controllers.workload_records import CronJob, Job
from mooring.simulated.records import Document, owned_by

SCHEDULED_AT = "batch.kubernetes.io/cronjob-scheduled-timestamp"
MANY_MISSED = 100
PADDING_SECONDS = 0.1
"""Added to the next requeue, as upstream, for clock skew."""


class NeverDue(ValueError):
    """A valid schedule that never comes due."""


@dataclass(frozen=True)
class Due:
    """The latest missed schedule time."""

    scheduled: float
    missed_many: bool = False


def due(owner: CronJob, schedule: Schedule, now: float) -> Due | None:
    """The schedule time that is due now, if any. Of several missed ones, the latest counts."""
    since = _since(owner)
    if owner.spec.starting_deadline_seconds is not None:
        since = max(since, now - owner.spec.starting_deadline_seconds)
    first = schedule.after(since)
    if first is None:
        raise NeverDue("time difference between two schedules is less than 1 second")
    latest = schedule.latest(since, now)
    if latest is None:
        return None
    second = schedule.after(first)
    is_many = second is not None and second <= now and (now - first) // (second - first) >= MANY_MISSED
    return Due(latest, is_many)


def is_too_late(owner: CronJob, scheduled: float, now: float) -> bool:
    deadline = owner.spec.starting_deadline_seconds
    return deadline is not None and scheduled + deadline < now


def seconds_until_next(owner: CronJob, schedule: Schedule, now: float) -> float | None:
    """How long until the next schedule time; None: never."""
    since = _since(owner)
    following = schedule.after(schedule.latest(since, now) or since)
    return following + PADDING_SECONDS - now if following is not None else None


def _since(owner: CronJob) -> float:
    """The time after which schedule times have no Job yet."""
    moment = owner.status.last_schedule_time or owner.metadata.creation_timestamp
    return parse_timestamp(moment) if moment else 0.0


def job_name(owner: CronJob, scheduled: float) -> str:
    """One name per minute, so that no schedule time has two Jobs."""
    return f"{owner.name}-{int(scheduled // 60)}"


def job_document(owner: CronJob, scheduled: float, zone: tzinfo) -> Document:
    """The Job of a schedule time."""
    template = owner.spec.job_template
    moment = datetime.fromtimestamp(scheduled, zone).isoformat(timespec="seconds")
    annotations = template.metadata.get("annotations") or {}
    return {
        "metadata": {
            "name": job_name(owner, scheduled),
            "labels": template.metadata.get("labels") or {},
            "annotations": annotations | {SCHEDULED_AT: moment.replace("+00:00", "Z")},
            "ownerReferences": owned_by(owner),
        },
        "spec": template.spec,
    }


def beyond_history(owner: CronJob, jobs: Iterable[Job]) -> list[Job]:
    """Finished Jobs beyond the history limits, oldest first."""
    by_start = sorted(jobs, key=lambda job: (job.status.start_time is None, job.status.start_time or "", job.name))
    limits = {"Complete": owner.spec.successful_jobs_history_limit, "Failed": owner.spec.failed_jobs_history_limit}
    surplus: list[Job] = []
    for outcome, limit in limits.items():
        ended = [job for job in by_start if job.outcome == outcome]
        if limit is not None:
            surplus += ended[: max(0, len(ended) - limit)]
    return surplus


def last_success(owner: CronJob, jobs: Sequence[Job]) -> str | None:
    """When the last successful Job completed."""
    ends = [job.status.completion_time for job in jobs if job.outcome == "Complete" and job.status.completion_time]
    known = [owner.status.last_successful_time] if owner.status.last_successful_time else []
    return max(known + ends, key=parse_timestamp, default=None)


def reference(job: Job) -> Document:
    """The Job in the list of active ones."""
    kind = Job.KIND
    return {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "namespace": job.namespace,
        "name": job.name,
        "uid": job.uid,
        "resourceVersion": job.metadata.resource_version,
    }
