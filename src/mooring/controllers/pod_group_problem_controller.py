"""Reports pods whose PodGroup does not exist, and PodGroups that the nodes can never hold, as events.

A scheduler gates a pod of a missing group, or of a gang without enough pods, and reports nothing: it waits for what it
takes to be on its way.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from mooring.base.clock import Clock
from mooring.base.log import Log
from mooring.client.core_event_recorder import CoreEventRecorder, EventSource
from mooring.client.informer import Informer
from mooring.client.work_queue import WorkQueue
from mooring.controllers.cluster_room import ClusterRoom
from mooring.controllers.pod_group_problems import GroupApi, missing_group, problem_of_group
from mooring.controllers.problem_events import ObjectProblem, ProblemEvents
from mooring.objects import Pod
from mooring.objects.meta import KubeObject

SOURCE = EventSource("mooring-controllers")
ENDED = ("Succeeded", "Failed")
NODES_SECONDS = 5.0
"""After a change of the nodes: they often come and go together."""
_ALL = ""
"""The key that stands for all groups."""

G = TypeVar("G", bound=KubeObject)


class PodGroupProblemController(Generic[G]):
    """Of the PodGroups of one API."""

    def __init__(
        self,
        api: GroupApi[G],
        groups: Informer[G],
        pods: Informer[Pod],
        room: ClusterRoom,
        events: CoreEventRecorder,
        *,
        clock: Clock,
    ) -> None:
        self._api, self._groups, self._room = api, groups, room
        self._members = pods.indexed(api.keys)
        self._problems = ProblemEvents(events, SOURCE, clock)
        self._queue = WorkQueue("podgroup problems", self._sync, clock=clock, log=Log("controllers"), workers=1)
        groups.subscribe(changed=lambda group: self._queue.add(group.key), deleted=self._group_deleted)
        pods.subscribe(changed=self._pod_changed, deleted=self._pod_deleted)
        room.subscribe(lambda: self._queue.add_after(_ALL, NODES_SECONDS))
        for pod in pods.all():
            self._pod_changed(pod)

    def tasks(self) -> dict[str, Callable[[], Awaitable[None]]]:
        return {"pod group problems": self._queue.run}

    def _group_deleted(self, group: G) -> None:
        self._problems.forget(group)
        self._queue.add(group.key)

    def _pod_changed(self, pod: Pod) -> None:
        for key in self._api.keys(pod):
            self._queue.add(key)

    def _pod_deleted(self, pod: Pod) -> None:
        self._problems.forget(pod)
        self._pod_changed(pod)

    async def _sync(self, key: str) -> None:
        if key == _ALL:
            for each in self._groups.all():
                self._queue.add(each.key)
            return
        group = self._groups.get(key)
        members = [pod for pod in self._members.at(key) if pod.status.phase not in ENDED and not pod.is_terminating]
        missing = missing_group(self._api, key) if group is None else None
        for pod in members:
            self._report(key, pod, missing if not pod.spec.node_name else None)
        if group is not None:
            self._report(key, group, problem_of_group(self._api, group, members, self._room))

    def _report(self, key: str, about: KubeObject, problem: ObjectProblem | None) -> None:
        if after := self._problems.report(about, problem):
            self._queue.add_after(key, after)
