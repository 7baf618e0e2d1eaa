"""Which status PodGroups and ElasticQuotas should have, from their pods."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import force_setattr

from mooring.controllers.elastic_quota_status import used
from mooring.controllers.pod_group_status import wanted_status
from mooring.framework import Pod
from mooring.objects.meta import ObjectMeta
from mooring.plugins.community.capacity_scheduling.quotas import ElasticQuota, ElasticQuotaSpec
from mooring.plugins.community.coscheduling.pod_groups import (
    CoschedulingGroup,
    CoschedulingGroupSpec,
    CoschedulingGroupStatus,
)
from mooring.testing import a_pod

NOW, NOW_TEXT = 1_767_225_600.0, "2026-01-01T00:00:00Z"


def a_group(phase: str, members: int = 2, **status: Any) -> CoschedulingGroup:
    return CoschedulingGroup(
        metadata=ObjectMeta(name="train", namespace="default", creation_timestamp=NOW_TEXT),
        spec=CoschedulingGroupSpec(min_member=members),
        status=CoschedulingGroupStatus(phase=phase, **status),
    )


def pods(**phases: int) -> list[Pod]:
    found = []
    for phase, count in phases.items():
        for at in range(count):
            pod = a_pod(f"{phase}-{at}")
            force_setattr(pod.status, "phase", phase)
            found.append(pod)
    return found


def counted(phase: str, running: int = 0, succeeded: int = 0, failed: int = 0) -> dict[str, Any]:
    return {"phase": phase, "running": running, "succeeded": succeeded, "failed": failed}


PHASES: dict[str, tuple[CoschedulingGroup, list[Pod], dict[str, Any] | None]] = {
    "a new group is pending": (a_group(""), pods(Pending=2), {"phase": "Pending"}),
    "with enough pods it is being scheduled": (
        a_group("Pending"),
        pods(Pending=2),
        {"phase": "Scheduling", "scheduleStartTime": NOW_TEXT},
    ),
    "with too few it stays pending": (a_group("Pending"), pods(Pending=1), counted("Pending")),
    "some run": (a_group("Scheduling"), pods(Pending=1, Running=1), counted("Scheduling", running=1)),
    "enough run": (a_group("Scheduling"), pods(Running=2), counted("Running", running=2)),
    "those that succeeded count as running": (
        a_group("Running"),
        pods(Running=1, Succeeded=1),
        counted("Running", running=1, succeeded=1),
    ),
    "one failed": (a_group("Running"), pods(Running=1, Failed=1), counted("Failed", running=1, failed=1)),
    "all succeeded": (a_group("Running"), pods(Succeeded=2), counted("Finished", succeeded=2)),
    "pods are lost": (a_group("Running"), pods(Running=1), counted("Pending", running=1)),
    "a finished group stays so": (a_group("Finished"), pods(Running=2), None),
    "a failed group stays so": (a_group("Failed"), pods(Running=2), None),
    "a group that began too late is given up": (
        a_group("Scheduling", schedule_start_time="2026-01-03T00:00:01Z"),
        pods(Pending=2),
        None,
    ),
}


@pytest.mark.parametrize(("group", "members", "wanted"), PHASES.values(), ids=PHASES.keys())
def test_pod_group(group, members, wanted):
    assert wanted_status(group, members, NOW) == wanted


def test_used_is_what_bound_pods_request_that_have_not_ended():
    quota = ElasticQuota(spec=ElasticQuotaSpec(min={"cpu": 4, "pods": 10}, max={"memory": "8Gi", "example.com/gpu": 1}))
    bound = a_pod("bound", cpu="500m", memory="2Gi", node="node")
    running = a_pod("running", cpu=1, node="node")
    force_setattr(running.status, "phase", "Running")
    ended = a_pod("ended", cpu=1, node="node")
    force_setattr(ended.status, "phase", "Succeeded")
    assert used(quota, [bound, running, ended, a_pod("pending", cpu=1)]) == {
        "cpu": "1500m",
        "memory": "2Gi",
        "example.com/gpu": "0",
        "pods": "2",
    }
