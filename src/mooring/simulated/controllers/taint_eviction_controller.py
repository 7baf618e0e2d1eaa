"""The taint eviction controller: deletes pods from nodes with NoExecute taints.

A pod that does not tolerate every such taint is deleted at once. One that tolerates them for a time is deleted after
the shortest of its `tolerationSeconds`, counted from when the taint was first observed, unless the taint is removed
before. The pod's condition DisruptionTarget and an event report the reason.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from typing import Literal

from mooring.base.clock import Clock, timestamp
from mooring.base.errors import ApiError
from mooring.base.log import Log
from mooring.client import ApiClient
from mooring.client.core_event_recorder import CoreEventRecorder, EventSource
from mooring.client.informer import Informer
from mooring.client.work_queue import WorkQueue
from mooring.objects.core import Taint, Toleration
from mooring.objects.placement_rules import tolerates
from mooring.simulated.records import Document, NodeRecord, PodRecord

_SOURCE = EventSource("taint-eviction-controller")
_REASON = "TaintManagerEviction"


def tolerated_seconds(taints: Sequence[Taint], tolerations: Sequence[Toleration]) -> float | Literal["forever"]:
    """How long the taints are tolerated; 0 where one is not. The first toleration of a taint counts."""
    used = [next((each for each in tolerations if tolerates(each, taint)), None) for taint in taints]
    if None in used:
        return 0.0
    limits = [each.toleration_seconds for each in used if each is not None and each.toleration_seconds is not None]
    return float(max(0, min(limits))) if limits else "forever"


class TaintEvictionController:
    """Syncs pods when their tolerations or the taints of their nodes change."""

    def __init__(
        self,
        client: ApiClient,
        nodes: Informer[NodeRecord],
        pods: Informer[PodRecord],
        events: CoreEventRecorder,
        *,
        clock: Clock,
    ) -> None:
        self._client = client
        self._nodes = nodes
        self._pods = pods
        self._events = events
        self._clock = clock
        self._due: dict[str, float] = {}
        """By the pod's uid: when it is evicted."""
        self._taints: dict[str, list[Taint]] = {}
        """Of the nodes that have any."""
        self._pods_on: defaultdict[str, set[str]] = defaultdict(set)
        self._queue = WorkQueue("taint eviction", self._sync, clock=clock, log=Log("taint-eviction"))
        nodes.subscribe(changed=self._node_changed, deleted=self._node_deleted)
        pods.subscribe(changed=self._pod_changed, deleted=self._pod_deleted)

    @property
    def pending(self) -> int:
        """How many pods are to be evicted later."""
        return len(self._due)

    def tasks(self) -> dict[str, Callable[[], Awaitable[None]]]:
        return {"taint evictions": self._queue.run}

    def _node_changed(self, node: NodeRecord) -> None:
        taints = [taint for taint in node.spec.taints if taint.effect == "NoExecute"]
        if taints == self._taints.get(node.name, []):
            return
        if taints:
            self._taints[node.name] = taints
        else:
            del self._taints[node.name]
        for key in self._pods_on.get(node.name, ()):
            self._queue.add(key)

    def _node_deleted(self, node: NodeRecord) -> None:
        self._taints.pop(node.name, None)

    def _pod_changed(self, pod: PodRecord) -> None:
        if not pod.spec.node_name:
            return
        self._pods_on[pod.spec.node_name].add(pod.key)
        if pod.spec.node_name in self._taints:
            self._queue.add(pod.key)

    def _pod_deleted(self, pod: PodRecord) -> None:
        self._due.pop(pod.uid, None)
        there = self._pods_on.get(pod.spec.node_name)
        if there is not None:
            there.discard(pod.key)
            if not there:
                del self._pods_on[pod.spec.node_name]

    async def _sync(self, key: str) -> None:
        pod = self._pods.get(key)
        if pod is None or pod.is_terminating:
            return
        taints = self._taints.get(pod.spec.node_name)
        stays = tolerated_seconds(taints, pod.spec.tolerations) if taints else "forever"
        if stays == "forever":
            if self._due.pop(pod.uid, None) is not None:
                self._record(pod, "Cancelling deletion of Pod")
            return
        # A scheduled eviction keeps its time, also where taints or tolerations change.
        now = self._clock.monotonic()
        due = self._due.setdefault(pod.uid, now + stays) if stays else now
        if due > now:
            self._queue.add_after(key, due - now)
        else:
            await self._evict(pod)

    async def _evict(self, pod: PodRecord) -> None:
        condition: Document = {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "DeletionByTaintManager",
            "message": "Taint manager: deleting due to NoExecute taint",
            "lastTransitionTime": timestamp(self._clock.now()),
        }
        if pod.metadata.generation:
            condition["observedGeneration"] = pod.metadata.generation
        self._record(pod, "Marking for deletion Pod")
        try:
            if not any(each.type == "DisruptionTarget" and each.status == "True" for each in pod.status.conditions):
                body = {"metadata": {"uid": pod.uid}, "status": {"conditions": [condition]}}
                await self._client.patch(PodRecord.KIND, pod.name, pod.namespace, body, subresource="status")
            await self._client.delete(PodRecord.KIND, pod.name, pod.namespace, uid=pod.uid)
        except ApiError as error:
            if error.code not in (404, 409):  # deleted, or recreated under the same name
                raise
        self._due.pop(pod.uid, None)

    def _record(self, pod: PodRecord, what: str) -> None:
        self._events.record(pod, _SOURCE, _REASON, f"{what} {pod.namespace}/{pod.name}")
