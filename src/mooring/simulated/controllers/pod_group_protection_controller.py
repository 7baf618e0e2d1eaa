"""The pod group protection controller: keeps a PodGroup that is deleted until no active pod names it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from mooring.base.clock import Clock
from mooring.base.errors import ApiError
from mooring.base.log import Log
from mooring.client import ApiClient
from mooring.client.informer import Informer
from mooring.client.work_queue import WorkQueue
from mooring.objects.pod_groups import PROTECTION
from mooring.simulated.records import PodGroupRecord, PodRecord

_ENDED = ("Succeeded", "Failed")


class PodGroupProtectionController:
    """Removes the finalizer that admission adds to every PodGroup."""

    def __init__(
        self, client: ApiClient, groups: Informer[PodGroupRecord], pods: Informer[PodRecord], *, clock: Clock
    ) -> None:
        self._client = client
        self._groups = groups
        self._by_group = pods.indexed(_group_of)
        self._queue = WorkQueue("pod group", self._sync, clock=clock, log=Log("pod groups"), workers=8)
        groups.subscribe(changed=self._group_changed)
        pods.subscribe(changed=self._pod_changed, deleted=self._pod_changed)

    def tasks(self) -> dict[str, Callable[[], Awaitable[None]]]:
        return {"pod group protection": self._queue.run}

    def _group_changed(self, group: PodGroupRecord) -> None:
        if group.is_terminating and PROTECTION in group.metadata.finalizers:
            self._queue.add(group.key)

    def _pod_changed(self, pod: PodRecord) -> None:
        for key in _group_of(pod):
            if (group := self._groups.get(key)) is not None:
                self._group_changed(group)

    async def _sync(self, key: str) -> None:
        group = self._groups.get(key)
        if group is None or not group.is_terminating or PROTECTION not in group.metadata.finalizers:
            return
        if any(pod.status.phase not in _ENDED for pod in self._by_group.at(key)):
            return  # the end of its last active pod enqueues it again
        left = [name for name in group.metadata.finalizers if name != PROTECTION]
        # The version guards against a finalizer that was added meanwhile: a merge patch replaces the whole list.
        version = group.metadata.resource_version
        body = {"metadata": {"uid": group.uid, "resourceVersion": version, "finalizers": left}}
        try:
            await self._client.patch(PodGroupRecord.KIND, group.name, group.namespace, body, form="merge")
        except ApiError as error:
            if error.reason != "NotFound":
                raise


def _group_of(pod: PodRecord) -> list[str]:
    name = pod.spec.scheduling_group.get("podGroupName")
    return [f"{pod.namespace}/{name}"] if name else []
