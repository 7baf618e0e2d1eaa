"""When a CronJob creates Jobs, which it deletes, and its status."""

from __future__ import annotations

import time
from typing import Any
from zoneinfo import ZoneInfo

import msgspec
import pytest
from tests.simulated.conftest import Bench

from mooring.base.clock import ManualClock, parse_timestamp, timestamp
from mooring.base.cron import parse_schedule
from mooring.simulated.controllers.cron_jobs import (
    SCHEDULED_AT,
    NeverDue,
    beyond_history,
    due,
    is_too_late,
    job_document,
    last_success,
    seconds_until_next,
)
from mooring.simulated.controllers.workload_records import CronJob, Job
from mooring.simulated.records import RUN_SECONDS

NOON = parse_timestamp("2026-01-01T12:00:00Z")
CRON_JOB = CronJob.KIND


def a_cron_job(*, created: float = NOON, last: float | None = None, **spec: Any) -> CronJob:
    status = {"lastScheduleTime": timestamp(last)} if last is not None else {}
    metadata = {"name": "report", "namespace": "default", "uid": "uid", "creationTimestamp": timestamp(created)}
    return msgspec.convert({"metadata": metadata, "spec": spec, "status": status}, CronJob)


EVERY_TEN = parse_schedule("*/10 * * * *")
DUE = {
    "nothing before the first time": (a_cron_job(), 599, None),
    "the first time": (a_cron_job(), 600, 600),
    "late, but still": (a_cron_job(), 900, 600),
    "of several missed the latest": (a_cron_job(), 3700, 3600),
    "not what has its job": (a_cron_job(last=NOON + 600), 900, None),
    "the one after that": (a_cron_job(last=NOON + 600), 1200, 1200),
    "nothing that is past its deadline": (a_cron_job(startingDeadlineSeconds=60), 700, None),
    "what is within it": (a_cron_job(startingDeadlineSeconds=60), 650, 600),
}


@pytest.mark.parametrize(("owner", "seconds", "expected"), DUE.values(), ids=DUE.keys())
def test_what_is_due(owner, seconds, expected):
    found = due(owner, EVERY_TEN, NOON + seconds)
    assert (found.scheduled - NOON if found else None) == expected


@pytest.mark.parametrize(("missed", "many"), [(1, False), (100, False), (101, True)])
def test_many_missed_times_are_reported(missed, many):
    found = due(a_cron_job(), parse_schedule("* * * * *"), NOON + 60 * missed)
    assert found is not None
    assert found.missed_many is many


def test_a_schedule_that_never_comes_is_no_schedule():
    with pytest.raises(NeverDue):
        due(a_cron_job(), parse_schedule("0 0 31 2 *"), NOON)
    assert seconds_until_next(a_cron_job(), parse_schedule("0 0 31 2 *"), NOON) is None


def test_the_next_look_is_just_after_the_next_time():
    assert seconds_until_next(a_cron_job(), EVERY_TEN, NOON + 590) == pytest.approx(10.1)
    assert seconds_until_next(a_cron_job(), EVERY_TEN, NOON + 610) == pytest.approx(590.1)


def test_a_job_may_be_too_late():
    assert not is_too_late(a_cron_job(), NOON, NOON + 9999)
    assert not is_too_late(a_cron_job(startingDeadlineSeconds=10), NOON, NOON + 10)
    assert is_too_late(a_cron_job(startingDeadlineSeconds=10), NOON, NOON + 11)


def test_a_job_carries_its_scheduled_timestamp():
    template = {"metadata": {"labels": {"a": "b"}, "annotations": {"c": "d"}}, "spec": {"parallelism": 2}}
    job = job_document(a_cron_job(jobTemplate=template), NOON, ZoneInfo("Europe/Berlin"))

    assert job["metadata"]["name"] == f"report-{int(NOON // 60)}"
    assert job["metadata"]["labels"] == {"a": "b"}
    assert job["metadata"]["annotations"] == {"c": "d", SCHEDULED_AT: "2026-01-01T13:00:00+01:00"}
    assert job["spec"] == {"parallelism": 2}


def a_job(name: str, outcome: str = "", *, at: float = NOON) -> Job:
    conditions = [{"type": outcome, "status": "True"}] if outcome else []
    status = {"conditions": conditions, "startTime": timestamp(at), "completionTime": timestamp(at + 5)}
    return msgspec.convert({"metadata": {"name": name, "uid": name}, "status": status}, Job)


def test_finished_jobs_are_forgotten_beyond_their_limits():
    jobs = [
        a_job("running"),
        a_job("good-2", "Complete", at=NOON + 2),
        a_job("good-1", "Complete", at=NOON + 1),
        a_job("good-3", "Complete", at=NOON + 3),
        a_job("bad", "Failed"),
    ]
    limits = {"successfulJobsHistoryLimit": 1, "failedJobsHistoryLimit": 0}
    assert [job.name for job in beyond_history(a_cron_job(**limits), jobs)] == ["good-1", "good-2", "bad"]
    assert beyond_history(a_cron_job(), jobs) == []


def test_the_last_success_is_that_of_the_last_job_that_ended_well():
    jobs = [a_job("bad", "Failed", at=NOON + 100), a_job("b", "Complete", at=NOON + 50), a_job("a", "Complete")]
    assert last_success(a_cron_job(), jobs) == timestamp(NOON + 55)
    assert last_success(a_cron_job(), jobs[:1]) is None


# On a running cluster.


def jobs(bench: Bench) -> dict[str, Job]:
    return {job.name: job for job in bench.seen.of("jobs").values() if not job.is_terminating}


def status(bench: Bench) -> Any:
    return bench.seen.of("cronjobs")["default/report"].status


class Hours:
    """A clock that starts now, at which the server stamps new objects."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.clock = ManualClock(time.time())

    async def until(self, condition: Any, seconds: float = 5) -> None:
        await self.bench.pass_time(self.clock, seconds, condition)


async def a_running_cron_job(bench: Bench, run_seconds: str | None = None, **spec: Any) -> Hours:
    hours = Hours(bench)
    await bench.start(clock=hours.clock)
    annotations = {RUN_SECONDS: run_seconds} if run_seconds else {}
    pod = {"restartPolicy": "Never", "containers": [{"name": "app", "image": "busybox"}]}
    template = {"spec": {"template": {"metadata": {"annotations": annotations}, "spec": pod}}}
    whole = {"schedule": "*/10 * * * *", "jobTemplate": template} | spec
    await bench.client.create(CRON_JOB, {"metadata": {"name": "report"}, "spec": whole}, "default")
    await bench.seen.until(lambda: "default/report" in bench.seen.of("cronjobs"))
    return hours


async def test_jobs_are_made_run_and_forgotten(bench):
    hours = await a_running_cron_job(bench, "20", successfulJobsHistoryLimit=2)
    await hours.until(lambda: len(jobs(bench)) == 1 and status(bench).active)
    [first] = jobs(bench)
    assert status(bench).active[0]["name"] == first
    assert parse_timestamp(status(bench).last_schedule_time) % 600 == 0
    await hours.until(lambda: not status(bench).active and status(bench).last_successful_time)
    await bench.seen.until(
        lambda: ("SawCompletedJob", f"Saw completed job: {first}, condition: Complete") in bench.seen.events
    )

    await hours.until(lambda: first not in jobs(bench), seconds=30)
    await bench.seen.until(
        lambda: (
            {("SuccessfulDelete", f"Deleted job {first}"), ("SuccessfulCreate", f"Created job {first}")}
            <= set(bench.seen.events)
        )
    )


async def test_a_job_that_runs_long_may_be_forbidden_company(bench):
    hours = await a_running_cron_job(bench, "1500", concurrencyPolicy="Forbid")
    await hours.until(lambda: status(bench).active)
    [first] = jobs(bench)
    message = "Not starting job because prior execution is running and concurrency policy is Forbid"
    await hours.until(lambda: ("JobAlreadyActive", message) in bench.seen.events, seconds=30)
    assert list(jobs(bench)) == [first]
    await hours.until(lambda: len(jobs(bench)) == 2, seconds=30)
    assert jobs(bench)[first].outcome == "Complete"


async def test_or_be_replaced(bench):
    hours = await a_running_cron_job(bench, concurrencyPolicy="Replace")
    await hours.until(lambda: status(bench).active)
    [first] = jobs(bench)
    await hours.until(lambda: first not in jobs(bench) and len(jobs(bench)) == 1, seconds=30)
    await bench.seen.until(lambda: [each["name"] for each in status(bench).active] == list(jobs(bench)))
    assert not any(reason == "UnexpectedJob" for reason, _ in bench.seen.events)


async def test_or_have_company(bench):
    hours = await a_running_cron_job(bench)
    await hours.until(lambda: len(status(bench).active) == 2, seconds=30)


async def test_a_suspended_cron_job_makes_none_until_it_is_resumed(bench):
    hours = await a_running_cron_job(bench, suspend=True)
    await hours.until(
        lambda: (
            hours.clock.now()
            > parse_timestamp(bench.seen.of("cronjobs")["default/report"].metadata.creation_timestamp) + 3000
        ),
        seconds=60,
    )
    assert not jobs(bench)

    await bench.client.patch(CRON_JOB, "report", "default", {"spec": {"suspend": False}})
    await bench.seen.until(lambda: len(jobs(bench)) == 1)


async def test_an_active_job_that_is_deleted_is_reported_missing(bench):
    hours = await a_running_cron_job(bench)
    await hours.until(lambda: status(bench).active)
    [first] = jobs(bench)
    await bench.client.delete(Job.KIND, first, "default")
    await bench.seen.until(lambda: ("MissingJob", f"Active job went missing: {first}") in bench.seen.events)
    await bench.seen.until(lambda: not status(bench).active)


async def test_jobs_go_with_their_cron_job(bench):
    hours = await a_running_cron_job(bench)
    await hours.until(lambda: status(bench).active)
    await bench.client.delete(CRON_JOB, "report", "default")
    await bench.seen.until(lambda: not bench.seen.of("jobs") and not bench.seen.pods)


async def test_a_schedule_that_never_comes_due_is_reported(bench):
    await a_running_cron_job(bench, schedule="0 0 31 2 *")
    await bench.seen.until(lambda: any(reason == "InvalidSchedule" for reason, _ in bench.seen.events))
