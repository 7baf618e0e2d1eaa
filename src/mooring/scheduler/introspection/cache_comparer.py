"""Compares the cache with the API server and dumps it to the log, on SIGUSR2 as kube-scheduler does.

Both change while they are compared, so a difference counts only if a second comparison finds it too: otherwise the
watch was late.
"""

from __future__ import annotations

from typing import TypeVar

import msgspec

from mooring.base.clock import Clock
from mooring.base.errors import MooringError
from mooring.base.log import Log
from mooring.client import ApiClient
from mooring.objects import Node, Pod
from mooring.objects.meta import KubeObject
from mooring.objects.placed import PlacedPod, placed
from mooring.objects.quantity import BadQuantity
from mooring.queue import SchedulingQueue
from mooring.scheduler.watching.feeds import POD_FIELDS
from mooring.state import State

SECOND_LOOK_SECONDS = 2.0

_log = Log("inspection")

T = TypeVar("T", bound=KubeObject)


class CacheComparer:
    """Compares and dumps, to the log."""

    def __init__(self, client: ApiClient, state: State, queue: SchedulingQueue, clock: Clock) -> None:
        self._client = client
        self._state = state
        self._queue = queue
        self._clock = clock

    async def run(self) -> list[str]:
        """Compare and dump once; returns the differences."""
        try:
            lasting = await self._lasting_differences()
        except MooringError as error:
            _log.error("Failed to compare the cache with the API server", err=error)
            lasting = []
        else:
            for difference in lasting:
                _log.error("Cache mismatch", what=difference)
            _log.info("Compared the cache with the API server", differences=len(lasting))
        self._dump()
        return lasting

    async def _lasting_differences(self) -> list[str]:
        first = await self._differences()
        if not first:
            return []
        await self._clock.sleep(SECOND_LOOK_SECONDS)
        again = set(await self._differences())
        return [difference for difference in first if difference in again]

    async def _differences(self) -> list[str]:
        nodes = await self._list(Node)
        pods = await self._list(Pod, POD_FIELDS)
        return self._state.compare(nodes, [record for pod in pods if (record := _placed(pod)) is not None])

    async def _list(self, kind: type[T], field_selector: str = "") -> list[T]:
        found = await self._client.list(kind.KIND, field_selector=field_selector)
        return [msgspec.convert(document, kind) for document in found]

    def _dump(self) -> None:
        assumed, pods = self._state.pod_counts()
        _log.info("Dump of the cluster cache", nodes=self._state.node_count, pods=pods, assumedPods=assumed)
        for view in self._state.nodes:
            _log.info(
                "Dump of cached NodeInfo",
                node=view.name,
                pods=", ".join(pod.key for pod in view.pods),
                nominatedPods=", ".join(pod.key for pod in self._state.nominations.at(view.name)),
            )
        _log.info("Dump of scheduling queue", **self._queue.counts())
        for waiting in self._queue.pending():
            _log.info(
                "Waiting pod",
                pod=waiting.pod,
                place=waiting.place.value,
                attempts=waiting.attempts,
                refusedBy=", ".join(sorted(waiting.rejectors)),
            )


def _placed(pod: Pod) -> PlacedPod | None:
    if not pod.spec.node_name:
        return None
    try:
        return placed(pod)
    except BadQuantity:  # it counts as requesting nothing, which the watch has logged
        return None
