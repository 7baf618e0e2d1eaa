"""The status that a PodGroup should have, from its pods: as scheduler-plugins' controller, but of its own namespace."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from mooring.base.clock import parse_timestamp, timestamp
from mooring.objects import Pod
from mooring.plugins.community.coscheduling.pod_groups import CoschedulingGroup

PENDING, SCHEDULING, RUNNING = "Pending", "Scheduling", "Running"
FINISHED, FAILED = "Finished", "Failed"
ENDED = (FINISHED, FAILED)
LONGEST_SECONDS = 48 * 3600.0
TOO_LONG = "schedule time longer than 48 hours"


def wanted_status(group: CoschedulingGroup, pods: Sequence[Pod], now: float) -> dict[str, Any] | None:
    """The fields to be written, or None: a group that has ended, or that waits for too long, is left as it is."""
    present, least = group.status, group.spec.min_member
    if present.phase in ENDED or is_given_up(group):
        return None
    if not present.phase:
        return {"phase": PENDING}
    if present.phase == PENDING and len(pods) >= least:
        started = {"phase": SCHEDULING, "scheduleStartTime": timestamp(now)}
        return started | ({"occupiedBy": owners} if (owners := _owners(pods[0])) else {})
    counts = Counter(pod.status.phase for pod in pods)
    running, succeeded, failed = counts["Running"], counts["Succeeded"], counts["Failed"]
    return {
        "phase": _phase(len(pods), least, running, succeeded, failed),
        "running": running,
        "succeeded": succeeded,
        "failed": failed,
    }


def _phase(pods: int, least: int, running: int, succeeded: int, failed: int) -> str:
    if pods < least:
        return PENDING
    if succeeded >= least:
        return FINISHED
    if failed and failed + running + succeeded >= least:
        return FAILED
    return RUNNING if succeeded + running >= least else SCHEDULING


def is_given_up(group: CoschedulingGroup) -> bool:
    """Whether it began to be scheduled long after it was made, and nothing of it runs."""
    status, created = group.status, group.metadata.creation_timestamp
    if status.phase not in (PENDING, SCHEDULING) or status.running or not status.schedule_start_time or not created:
        return False
    return parse_timestamp(status.schedule_start_time) - parse_timestamp(created) > LONGEST_SECONDS


def _owners(pod: Pod) -> str:
    return ",".join(sorted(f"{pod.namespace}/{owner.name}" for owner in pod.metadata.owner_references))
