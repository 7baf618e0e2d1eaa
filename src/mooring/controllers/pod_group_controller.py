"""Keeps the status of PodGroups (scheduling.x-k8s.io/v1alpha1)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable

from mooring.base.clock import Clock
from mooring.base.log import Log
from mooring.client import ApiClient
from mooring.client.core_event_recorder import CoreEventRecorder, EventSource
from mooring.client.informer import Informer
from mooring.client.work_queue import WorkQueue
from mooring.controllers.pod_group_status import TOO_LONG, is_given_up, wanted_status
from mooring.controllers.status_writer import write_status
from mooring.objects import Pod
from mooring.plugins.community.coscheduling.pod_groups import CoschedulingGroup, group_name

_SOURCE = EventSource("Coscheduling")


class PodGroupController:
    """Counts the pods of each group, and derives its phase."""

    def __init__(
        self,
        client: ApiClient,
        groups: Informer[CoschedulingGroup],
        pods: Informer[Pod],
        events: CoreEventRecorder,
        *,
        clock: Clock,
    ) -> None:
        self._client, self._groups, self._events, self._clock = client, groups, events, clock
        self._members = pods.indexed(_group_keys)
        self._queue = WorkQueue("podgroup", self._sync, clock=clock, log=Log("controllers"), workers=8)
        groups.subscribe(changed=lambda group: self._queue.add(group.key))
        pods.subscribe(changed=self._pod_changed, deleted=self._pod_changed)

    def tasks(self) -> dict[str, Callable[[], Awaitable[None]]]:
        return {"pod groups": self._queue.run}

    def _pod_changed(self, pod: Pod) -> None:
        for key in _group_keys(pod):
            self._queue.add(key)

    async def _sync(self, key: str) -> None:
        group = self._groups.get(key)
        if group is None:
            return
        if is_given_up(group):
            self._events.record(group, _SOURCE, "Timeout", TOO_LONG, warning=True)
        wanted = wanted_status(group, self._members.at(key), self._clock.now())
        if wanted is not None and await write_status(self._client, self._groups, group, group.status, wanted):
            self._queue.add(key)  # a phase leads to the next


def _group_keys(pod: Pod) -> Iterable[str]:
    return [f"{pod.namespace}/{name}"] if (name := group_name(pod.labels)) else []
