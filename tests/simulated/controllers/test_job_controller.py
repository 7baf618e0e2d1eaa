"""Jobs: pods run until enough of them have succeeded."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import force_setattr
from tests.simulated.builders import NOW, a_pod

from mooring.base.clock import ManualClock
from mooring.objects.meta import Kind
from mooring.simulated.controllers.job_controller import job_status, plan_job
from mooring.simulated.controllers.workload_records import Job
from mooring.simulated.records import RUN_SECONDS, PodRecord

JOB = Kind("batch", "v1", "Job", "jobs")


def a_job(**spec) -> Job:
    return msgspec.convert({"metadata": {"name": "sum", "namespace": "default"}, "spec": spec}, Job)


def pods(*phases: str) -> list[PodRecord]:
    return [a_pod(f"pod-{index}", phase=phase) for index, phase in enumerate(phases)]


PLANS = {
    "a new job starts as many as may run at once": (a_job(parallelism=3, completions=5), (), (3, 0, "")),
    "no more than are still needed": (a_job(parallelism=3, completions=4), ("Succeeded",) * 3, (1, 0, "")),
    "a pod that failed is replaced": (a_job(completions=1), ("Failed",), (1, 0, "")),
    "too many failures end it": (a_job(completions=1, backoffLimit=1), ("Failed",) * 2, (0, 0, "Failed")),
    "enough successes end it": (a_job(completions=2), ("Succeeded",) * 2, (0, 0, "Complete")),
    "fewer at once remove some": (a_job(parallelism=1, completions=5), ("Running",) * 3, (0, 2, "")),
    "a suspended job has no pods": (a_job(completions=2, suspend=True), ("Running",) * 2, (0, 2, "")),
    "a work queue ends with its last pod": (a_job(parallelism=2), ("Succeeded", "Running"), (0, 0, "")),
    "and then is complete": (a_job(parallelism=2), ("Succeeded", "Succeeded"), (0, 0, "Complete")),
}


@pytest.mark.parametrize(("job", "phases", "expected"), PLANS.values(), ids=PLANS.keys())
def test_what_a_job_wants(job, phases, expected):
    plan = plan_job(job, pods(*phases))
    assert (plan.create, len(plan.delete), plan.end) == expected


@given(st.integers(1, 6), st.integers(1, 12))
def test_a_job_whose_pods_succeed_makes_exactly_as_many_as_it_needs(parallelism, completions):
    job = a_job(parallelism=parallelism, completions=completions)
    created: list[PodRecord] = []
    for _ in range(100):
        plan = plan_job(job, created)
        if plan.end:
            break
        assert sum(pod.is_active for pod in created) + plan.create <= parallelism
        created += [a_pod(f"pod-{len(created) + index}", phase="Running") for index in range(plan.create)]
        force_setattr(next(pod for pod in created if pod.is_active).status, "phase", "Succeeded")
    assert (plan.end, len(created)) == ("Complete", completions)


def test_the_interim_condition_comes_before_the_terminal_one():
    job = a_job(completions=1)
    done = pods("Succeeded")
    status = job_status(job, plan_job(job, done), done, NOW)

    assert [each["type"] for each in status["conditions"]] == ["SuccessCriteriaMet", "Complete"]
    assert (status["succeeded"], status["active"]) == (1, 0)
    assert status["completionTime"]


async def test_a_job_runs_to_its_end(bench):
    clock = ManualClock()
    await bench.start(2, clock=clock)
    template = {
        "metadata": {"annotations": {RUN_SECONDS: "5"}},
        "spec": {"restartPolicy": "Never", "containers": [{"name": "app", "image": "perl:5"}]},
    }
    spec = {"parallelism": 2, "completions": 3, "template": template}
    await bench.client.create(JOB, {"metadata": {"name": "sum"}, "spec": spec}, "default")

    def is_complete() -> bool:
        job = bench.server.store.get("jobs.batch", "sum") or {}
        return any(each["type"] == "Complete" for each in job.get("status", {}).get("conditions", []))

    await bench.pass_time(clock, 1, is_complete)
    await bench.seen.until(lambda: [pod.status.phase for pod in bench.seen.pods] == ["Succeeded"] * 3)
