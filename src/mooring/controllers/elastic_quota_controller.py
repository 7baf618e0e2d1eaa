"""Keeps the status of ElasticQuotas (scheduling.x-k8s.io/v1alpha1), and reports those that cannot be used."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from mooring.base.clock import Clock
from mooring.base.log import Log
from mooring.client import ApiClient
from mooring.client.core_event_recorder import CoreEventRecorder, EventSource
from mooring.client.informer import Informer
from mooring.client.work_queue import WorkQueue
from mooring.controllers.cluster_room import ClusterRoom
from mooring.controllers.elastic_quota_status import used
from mooring.controllers.problem_events import ObjectProblem, ProblemEvents
from mooring.controllers.status_writer import write_status
from mooring.objects import Pod
from mooring.plugins.community.capacity_scheduling.quotas import ElasticQuota, Quota, shown_amount

_SOURCE = EventSource("ElasticQuotaController")
SYNCED, INVALID, IGNORED, TOO_LARGE = "Synced", "InvalidQuota", "IgnoredQuota", "QuotaTooLarge"
NODES_SECONDS = 5.0
"""After a change of the nodes: they often come and go together."""
_ALL = ""
"""The key that stands for all quotas."""


class ElasticQuotaController:
    """Sums up what pods use of each quota."""

    def __init__(
        self,
        client: ApiClient,
        quotas: Informer[ElasticQuota],
        pods: Informer[Pod],
        room: ClusterRoom,
        events: CoreEventRecorder,
        *,
        clock: Clock,
    ) -> None:
        self._client, self._quotas, self._room, self._events = client, quotas, room, events
        self._pods = pods.indexed(lambda pod: [pod.namespace])
        self._of_namespace = quotas.indexed(lambda quota: [quota.namespace])
        self._problems = ProblemEvents(events, _SOURCE, clock)
        self._queue = WorkQueue("elasticquota", self._sync, clock=clock, log=Log("controllers"), workers=8)
        quotas.subscribe(changed=lambda quota: self._queue.add(quota.key), deleted=self._deleted)
        room.subscribe(lambda: self._queue.add_after(_ALL, NODES_SECONDS))
        pods.subscribe(changed=self._pod_changed, deleted=self._pod_changed)

    def tasks(self) -> dict[str, Callable[[], Awaitable[None]]]:
        return {"elastic quotas": self._queue.run}

    def _deleted(self, quota: ElasticQuota) -> None:
        self._problems.forget(quota)
        for other in self._of_namespace.at(quota.namespace):
            self._queue.add(other.key)

    def _pod_changed(self, pod: Pod) -> None:
        for quota in self._of_namespace.at(pod.namespace):
            self._queue.add(quota.key)

    async def _sync(self, key: str) -> None:
        if key == _ALL:
            for each in self._quotas.all():
                self._queue.add(each.key)
            return
        quota = self._quotas.get(key)
        if quota is None:
            return
        first = min(self._of_namespace.at(quota.namespace), key=_age)
        problem = quota_problem(quota, first, self._room)
        # What is wrong in the object itself is so at once; a node may be on its way.
        grace = {"grace_seconds": 0.0} if problem is not None and problem.reason != TOO_LARGE else {}
        if after := self._problems.report(quota, problem, **grace):
            self._queue.add_after(key, after)
        wanted = {"used": used(quota, self._pods.at(quota.namespace))}
        if await write_status(self._client, self._quotas, quota, quota.status, wanted):
            self._events.record(quota, _SOURCE, SYNCED, f"Elastic Quota {key} synced successfully")


def quota_problem(quota: ElasticQuota, first: ElasticQuota, room: ClusterRoom) -> ObjectProblem | None:
    """Why a quota cannot be used, or cannot be guaranteed. `first`: the one that counts in its namespace."""
    read = Quota.of(quota)
    if read.problem:
        return ObjectProblem(INVALID, read.problem)
    if first.uid != quota.uid:
        return ObjectProblem(IGNORED, f"the namespace has an older quota, {first.name}, which counts alone")
    for resource, least in (read.min or {}).items():
        if least > (total := room.total(resource)):
            text = f"spec.min.{resource} is {(quota.spec.min or {})[resource]}"
            return ObjectProblem(TOO_LARGE, f"{text}, and all nodes together have {shown_amount(resource, total)}")
    return None


def _age(quota: ElasticQuota) -> tuple[str, str]:
    return quota.metadata.creation_timestamp or "", quota.name
