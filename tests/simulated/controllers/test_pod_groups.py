"""Controllers of pod groups: protection, and the Workload and PodGroup of a Job (gang scheduling, 9.2)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest
from msgspec.structs import force_setattr
from tests.simulated.builders import a_pod
from tests.simulated.conftest import POD, Bench, pod_document

from mooring.apiserver import EmbeddedApiServer
from mooring.objects.pod_groups import PodGroup, Workload
from mooring.simulated.controllers.job_scheduling import is_gang_candidate, is_new, pod_group_name, workload_of
from mooring.simulated.controllers.workload_records import Job

GATES = ("GenericWorkload", "GangScheduling", "WorkloadWithJob")
GROUPS, WORKLOADS = "podgroups.scheduling.k8s.io", "workloads.scheduling.k8s.io"
TEMPLATE = {"spec": {"restartPolicy": "Never", "containers": [{"name": "app", "image": "perl:5"}]}}
GANG = {"parallelism": 3, "completions": 3, "completionMode": "Indexed", "template": TEMPLATE}


@pytest.fixture
async def grouped() -> AsyncIterator[Bench]:
    server = EmbeddedApiServer(features=GATES)
    await server.start()
    bench = Bench(server)
    try:
        yield bench
    finally:
        await bench.stop()
        await server.stop()


def a_job(**changed) -> Job:
    return msgspec.convert({"metadata": {"name": "sum", "namespace": "default", "uid": "u"}, "spec": changed}, Job)


CANDIDATES = {
    "all pods at once, each with an index": ({}, True),
    "one pod": ({"parallelism": 1, "completions": 1}, False),
    "some pods after others": ({"completions": 4}, False),
    "a work queue": ({"completions": None}, False),
    "pods without an index": ({"completionMode": "NonIndexed"}, False),
    "a template that names a group": ({"template": {"spec": {"schedulingGroup": {"podGroupName": "a"}}}}, False),
}


@pytest.mark.parametrize(("changed", "expected"), CANDIDATES.values(), ids=CANDIDATES.keys())
def test_which_jobs_are_gangs(changed, expected):
    assert is_gang_candidate(a_job(**{**GANG, **changed})) is expected


def test_a_job_that_has_run_is_not_new():
    job = a_job(**GANG)
    assert is_new(job, [])
    assert not is_new(job, [a_pod("pod-0")])
    force_setattr(job.status, "failed", 1)
    assert not is_new(job, [])


def test_names_fit_however_long_the_job_s_is():
    long = a_job(**GANG)
    force_setattr(long.metadata, "name", "a" * 253)
    workload = workload_of(long)["metadata"]["name"]
    assert len(workload) == 253
    for names in ((workload, "b" * 253), ("a", "b" * 253), ("a" * 253, "b")):
        assert len(pod_group_name(*names)) == 253


async def test_a_job_gets_a_workload_and_a_pod_group_that_its_pods_name(grouped):
    await grouped.start(2, features=GATES)
    await grouped.client.create(Job.KIND, {"metadata": {"name": "sum"}, "spec": GANG}, "default")
    await grouped.seen.until(lambda: len(grouped.seen.pods) == 3)

    [workload], [group] = grouped.server.store.list(WORKLOADS), grouped.server.store.list(GROUPS)
    [template] = workload["spec"]["podGroupTemplates"]
    assert (template["name"], template["schedulingPolicy"]) == ("sum-pgt-0", {"gang": {"minCount": 3}})
    assert group["metadata"]["name"] == pod_group_name(workload["metadata"]["name"], "sum-pgt-0")
    assert [owner["kind"] for owner in group["metadata"]["ownerReferences"]] == ["Job", "Workload"]
    assert group["spec"]["schedulingPolicy"] == {"gang": {"minCount": 3}}
    names = {pod.spec.scheduling_group["podGroupName"] for pod in grouped.seen.pods}
    assert names == {group["metadata"]["name"]}
    expected = ("WorkloadCreated", f"Created Workload {workload['metadata']['name']} for Job sum")
    await grouped.seen.until(lambda: expected in grouped.seen.events)


FOREIGN = {
    "a Workload that another object owns": 1,
    "several Workloads": 2,
}


@pytest.mark.parametrize("count", FOREIGN.values(), ids=FOREIGN.keys())
async def test_what_is_unexpected_leaves_ordinary_pods(grouped, count):
    for number in range(count):
        spec = {
            "controllerRef": {"apiGroup": "batch", "kind": "Job", "name": "sum"},
            "podGroupTemplates": [{"name": "t", "schedulingPolicy": {"basic": {}}}],
        }
        await grouped.client.create(Workload.KIND, {"metadata": {"name": f"w-{number}"}, "spec": spec}, "default")
    await grouped.start(2, features=GATES)
    await grouped.client.create(Job.KIND, {"metadata": {"name": "sum"}, "spec": GANG}, "default")
    await grouped.seen.until(lambda: len(grouped.seen.pods) == 3)
    assert all(not pod.spec.scheduling_group for pod in grouped.seen.pods)
    assert grouped.server.store.list(GROUPS) == []


async def test_without_the_gate_a_job_has_ordinary_pods(grouped):
    await grouped.start(2, features=GATES[:2])
    await grouped.client.create(Job.KIND, {"metadata": {"name": "sum"}, "spec": GANG}, "default")
    await grouped.seen.until(lambda: len(grouped.seen.pods) == 3)
    assert grouped.server.store.list(WORKLOADS) == []


async def test_a_group_stays_until_no_active_pod_names_it(grouped):
    await grouped.start(1, features=GATES)
    spec = {"schedulingPolicy": {"gang": {"minCount": 1}}}
    await grouped.client.create(PodGroup.KIND, {"metadata": {"name": "training"}, "spec": spec}, "default")
    await grouped.client.create(POD, pod_document("web", schedulingGroup={"podGroupName": "training"}), "default")
    await grouped.seen.until(lambda: [pod.status.phase for pod in grouped.seen.pods] == ["Running"])

    await grouped.client.delete(PodGroup.KIND, "training", "default")
    [group] = grouped.server.store.list(GROUPS)
    assert group["metadata"]["deletionTimestamp"]

    await grouped.client.delete(POD, "web", "default", grace_seconds=0)
    await grouped.seen.until(lambda: not grouped.server.store.list(GROUPS))


async def test_a_group_without_pods_goes_at_once(grouped):
    await grouped.start(1, features=GATES)
    spec: dict[str, Any] = {"schedulingPolicy": {"basic": {}}}
    await grouped.client.create(PodGroup.KIND, {"metadata": {"name": "training"}, "spec": spec}, "default")
    await grouped.client.delete(PodGroup.KIND, "training", "default")
    await grouped.seen.until(lambda: not grouped.server.store.list(GROUPS))
