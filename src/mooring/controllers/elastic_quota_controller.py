"""Keeps the status of ElasticQuotas (scheduling.x-k8s.io/v1alpha1), and reports those that cannot be used."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from mooring.base.clock import Clock
from mooring.base.log import Log
from mooring.client import ApiClient
from mooring.controllers.elastic_quota_status import used
from mooring.controllers.status_writer import write_status
from mooring.objects import Pod
from mooring.plugins.community.capacity_scheduling.quotas import ElasticQuota, Quota
from mooring.simulated.event_recorder import CoreEventRecorder, EventSource
from mooring.simulated.informer import Informer
from mooring.simulated.work_queue import WorkQueue

_SOURCE = EventSource("ElasticQuotaController")
SYNCED, INVALID, IGNORED = "Synced", "InvalidQuota", "IgnoredQuota"


class ElasticQuotaController:
    """Sums up what pods use of each quota."""

    def __init__(
        self,
        client: ApiClient,
        quotas: Informer[ElasticQuota],
        pods: Informer[Pod],
        events: CoreEventRecorder,
        *,
        clock: Clock,
    ) -> None:
        self._client, self._quotas, self._events = client, quotas, events
        self._pods = pods.indexed(lambda pod: [pod.namespace])
        self._of_namespace = quotas.indexed(lambda quota: [quota.namespace])
        self._reported: dict[str, str] = {}
        """By uid: what was reported about the quota, so that it is once, not with every pod."""
        self._queue = WorkQueue("elasticquota", self._sync, clock=clock, log=Log("controllers"), workers=8)
        quotas.subscribe(changed=lambda quota: self._queue.add(quota.key), deleted=self._deleted)
        pods.subscribe(changed=self._pod_changed, deleted=self._pod_changed)

    def tasks(self) -> dict[str, Callable[[], Awaitable[None]]]:
        return {"elastic quotas": self._queue.run}

    def _deleted(self, quota: ElasticQuota) -> None:
        self._reported.pop(quota.uid, None)

    def _pod_changed(self, pod: Pod) -> None:
        for quota in self._of_namespace.at(pod.namespace):
            self._queue.add(quota.key)

    async def _sync(self, key: str) -> None:
        quota = self._quotas.get(key)
        if quota is None:
            return
        self._report(quota)
        wanted = {"used": used(quota, self._pods.at(quota.namespace))}
        if await write_status(self._client, self._quotas, quota, quota.status, wanted):
            self._events.record(quota, _SOURCE, SYNCED, f"Elastic Quota {key} synced successfully")

    def _report(self, quota: ElasticQuota) -> None:
        first = min(self._of_namespace.at(quota.namespace), key=_age)
        reason, message = INVALID, Quota.of(quota).problem
        if not message and first.uid != quota.uid:
            reason, message = IGNORED, f"the namespace has an older quota, {first.name}, which counts alone"
        if message and self._reported.get(quota.uid) != message:
            self._events.record(quota, _SOURCE, reason, message, warning=True)
        self._reported[quota.uid] = message


def _age(quota: ElasticQuota) -> tuple[str, str]:
    return quota.metadata.creation_timestamp or "", quota.name
