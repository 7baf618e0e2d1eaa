"""The pod garbage collector: deletes pods whose node does not exist, which no kubelet would ever end.

A node may be missing for a moment only, so a pod waits for `QUARANTINE_SECONDS` before its node is read from the API
server. Its condition DisruptionTarget has the reason.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from mooring.base.clock import Clock, timestamp
from mooring.base.errors import ApiError
from mooring.base.log import Log
from mooring.client import ApiClient
from mooring.client.informer import Informer
from mooring.client.work_queue import WorkQueue
from mooring.simulated.records import Document, NodeRecord, PodRecord

QUARANTINE_SECONDS = 40.0


class PodGarbageCollector:
    """Syncs pods when they are bound, and when their node is deleted."""

    def __init__(
        self, client: ApiClient, nodes: Informer[NodeRecord], pods: Informer[PodRecord], *, clock: Clock
    ) -> None:
        self._client = client
        self._nodes = nodes
        self._pods = pods
        self._clock = clock
        self._is_running = False
        self._queue = WorkQueue("pod garbage collection", self._sync, clock=clock, log=Log("pod-garbage-collector"))
        nodes.subscribe(deleted=self._node_deleted)
        pods.subscribe(changed=self._pod_changed)

    def tasks(self) -> dict[str, Callable[[], Awaitable[None]]]:
        return {"pod garbage collection": self._run}

    async def _run(self) -> None:
        # What is listed first may be the pods: nodes are known now.
        self._is_running = True
        for pod in self._pods.all():
            self._pod_changed(pod)
        await self._queue.run()

    def _node_deleted(self, node: NodeRecord) -> None:
        for pod in self._pods.all():
            if pod.spec.node_name == node.name:
                self._pod_changed(pod)

    def _pod_changed(self, pod: PodRecord) -> None:
        if self._is_running and pod.spec.node_name and self._nodes.get(pod.spec.node_name) is None:
            self._queue.add_after(pod.key, QUARANTINE_SECONDS)

    async def _sync(self, key: str) -> None:
        pod = self._pods.get(key)
        if pod is None or not pod.spec.node_name or await self._exists(pod.spec.node_name):
            return
        try:
            await self._fail(pod)
            await self._client.delete(PodRecord.KIND, pod.name, pod.namespace, grace_seconds=0, uid=pod.uid)
        except ApiError as error:
            if error.code not in (404, 409):  # deleted, or recreated under the same name
                raise

    async def _exists(self, node: str) -> bool:
        if self._nodes.get(node) is not None:
            return True
        try:
            await self._client.get(NodeRecord.KIND, node)
        except ApiError as error:
            if error.code == 404:
                return False
            raise
        return True

    async def _fail(self, pod: PodRecord) -> None:
        if pod.is_finished:
            return
        condition: Document = {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "DeletionByPodGC",
            "message": "PodGC: node no longer exists",
            "lastTransitionTime": timestamp(self._clock.now()),
        }
        status = {"phase": "Failed", "conditions": [condition]}
        body = {"metadata": {"uid": pod.uid}, "status": status}
        await self._client.patch(PodRecord.KIND, pod.name, pod.namespace, body, subresource="status")
