"""The conditions of a PodGroup: whether it was scheduled, and that a gang was bound whole once.

They are patched beside the loop, and only where they change: a newer one replaces one that has not been sent yet. Once
True they stay True. A failed patch is logged; the next attempt of the group writes it again.
"""

from __future__ import annotations

import asyncio
from typing import Any

from mooring.base import retry
from mooring.base.clock import Clock, timestamp
from mooring.base.log import Log
from mooring.client import ApiClient
from mooring.framework import PodGroups
from mooring.objects.pod_groups import (
    GANG_COMPLETED,
    POD_GROUP_SCHEDULED,
    SCHEDULED,
    SCHEDULER_ERROR,
    UNSCHEDULABLE,
    PodGroup,
)
from mooring.scheduler.cycle.background_tasks import BackgroundTasks
from mooring.scheduler.cycle.pod_group_results import GroupStatus
from mooring.scheduler.cycle.pod_patches import BACKOFF, RETRIED, TRIES, is_gone, may_pass

MOST_PATCHES = 16
TRUE, FALSE = "True", "False"
COMPLETED = "Completed"

Written = tuple[str, str, str]
"""Status, reason, message."""

_log = Log("scheduler")


class PodGroupConditions:
    """Writes the conditions of PodGroups."""

    def __init__(self, client: ApiClient, clock: Clock, groups: PodGroups) -> None:
        self._client = client
        self._clock = clock
        self._groups = groups
        self._written: dict[str, Written] = {}
        """uid → the condition we wrote last; the watch may not have shown it to us yet."""
        self._completed: set[str] = set()
        """The uids of gangs of which we wrote that they were bound whole, until the watch shows it."""
        self._unsent: dict[str, tuple[PodGroup, dict[str, dict[str, Any]]]] = {}
        """uid → the conditions by type."""
        self._sending: set[str] = set()
        """Those with a patch in flight: the next one waits for it."""
        self._tasks = BackgroundTasks()
        self._turns = asyncio.Semaphore(MOST_PATCHES)

    def report(self, namespace: str, name: str, status: GroupStatus) -> None:
        """The attempt of the group ended so."""
        group = self._groups.get(namespace, name)
        if group is None:
            _log.error("Failed to get PodGroup for status update", podGroup=f"{namespace}/{name}")
            return
        if not status.is_success:
            self._report_completed(group)
        self._report_scheduled(group, _condition_of(status))

    def _report_completed(self, group: PodGroup) -> None:
        """Where a pod of the gang does not fit: another process must not take the gang for one that never was whole."""
        members = self._groups.members(group.namespace, group.name)
        if group.was_complete:
            self._completed.discard(group.uid)
        elif (
            group.min_count is not None
            and members is not None
            and members.most_bound_count >= group.min_count
            and group.uid not in self._completed
        ):
            self._completed.add(group.uid)
            self._write(group, GANG_COMPLETED, (TRUE, COMPLETED, f"{group.min_count} pods were bound"), is_new=True)

    def _report_scheduled(self, group: PodGroup, new: Written) -> None:
        old = self._current(group)
        if old == new or (old is not None and old[0] == TRUE and new[0] != TRUE):
            return
        self._written[group.uid] = new
        self._write(group, POD_GROUP_SCHEDULED, new, is_new=old is None or old[0] != new[0])

    def _write(self, group: PodGroup, type: str, new: Written, *, is_new: bool) -> None:
        """`is_new`: its status was another one, or none."""
        status, reason, message = new
        condition: dict[str, Any] = {
            "type": type,
            "status": status,
            "reason": reason,
            "message": message,
            "observedGeneration": group.metadata.generation,
        }
        if is_new:
            condition["lastTransitionTime"] = timestamp(self._clock.now())
        _, conditions = self._unsent.get(group.uid, (group, {}))
        self._unsent[group.uid] = (group, conditions | {type: condition})
        if group.uid not in self._sending:
            self._sending.add(group.uid)
            self._tasks.start(self._send(group.uid), f"patch the conditions of pod group {group.key}")

    def _current(self, group: PodGroup) -> Written | None:
        known = group.condition(POD_GROUP_SCHEDULED)
        shown = None if known is None else (known.status, known.reason, known.message)
        written = self._written.get(group.uid)
        if written is not None and shown == written:
            del self._written[group.uid]  # the watch has shown it
        return written or shown

    async def _send(self, uid: str) -> None:
        try:
            async with self._turns:
                while (unsent := self._unsent.pop(uid, None)) is not None:
                    await self._patch(*unsent)
        finally:
            self._sending.discard(uid)

    async def _patch(self, group: PodGroup, conditions: dict[str, dict[str, Any]]) -> None:
        # The uid is a precondition: a group that was recreated under the same name is not patched.
        body = {"metadata": {"uid": group.uid}, "status": {"conditions": list(conditions.values())}}
        try:
            await retry.retried(
                lambda: self._client.patch(PodGroup.KIND, group.name, group.namespace, body, subresource="status"),
                BACKOFF,
                self._clock,
                tries=TRIES,
                is_retryable=lambda error: not is_gone(error) and may_pass(error, RETRIED),
            )
        except Exception as error:  # any error: a condition that cannot be written must not end the scheduler
            self._written.pop(group.uid, None)
            self._completed.discard(group.uid)
            if not is_gone(error):
                _log.error("Failed to update PodGroup status", podGroup=group.key, err=error)

    async def finish(self, seconds: float) -> None:
        """At shutdown: send what is queued."""
        await self._tasks.finish(seconds)


def _condition_of(status: GroupStatus) -> Written:
    if status.is_success:
        return TRUE, SCHEDULED, ""
    return FALSE, SCHEDULER_ERROR if status.is_error else UNSCHEDULABLE, status.message
